/**
 * The HTTP API, as a `fetch` handler to serve or to mount.
 *
 * @module
 */
import '../node-version.ts';

export { type ApiApp, type ApiOptions, type CallLog, createApi } from './app.ts';
