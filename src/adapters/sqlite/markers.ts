import { markerTable } from '../../sqlite/marker-table.ts';
import { MARKER_TABLE } from './control.ts';

/**
 * The marker table beside the business tables. A live stage holds the file longer than a void
 * marker waits.
 */
export const { findMarker, insertMarker, markersOf } = markerTable({
  table: MARKER_TABLE,
  voidDeadlineMs: 250,
});
