/**
 * Spans and metrics on OpenTelemetry. Set `telemetry` in the configuration to the result of
 * {@link openTelemetry}; without it nothing is measured. The application provides the SDK and
 * decides where the data goes.
 *
 * @module
 */
import '../node-version.ts';

export type { Activity, Ending, Telemetry, Trace } from '../runtime/telemetry.ts';
export { openTelemetry, type TelemetryOptions } from './open-telemetry.ts';
