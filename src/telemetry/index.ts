/**
 * Spans and metrics on OpenTelemetry. Give what {@link openTelemetry} returns to `telemetry` in the
 * configuration; without it nothing is measured. The application brings the SDK and says where its
 * data goes.
 *
 * @module
 */
import '../node-version.ts';

export type { Activity, Ending, Telemetry, Trace } from '../runtime/telemetry.ts';
export { openTelemetry, type TelemetryOptions } from './open-telemetry.ts';
