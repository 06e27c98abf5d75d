/**
 * The console for approvers and operators, as a `fetch` handler.
 *
 * @module
 */
import '../node-version.ts';

export { type ConsoleApp, type ConsoleOptions, createConsole } from './app.ts';
export type { ConsoleConfig, OidcConfig, PersonConfig } from './configuration.ts';
export type { ConsoleLogin } from './login.ts';
