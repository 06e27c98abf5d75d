import { markerTable } from '../../sqlite/marker-table.ts';
import { MARKER_TABLE } from './control.ts';

/** The marker table beside the document. A promotion is short, and one that hangs is left alone. */
export const { findMarker, insertMarker, markersOf, faultOf } = markerTable({
  table: MARKER_TABLE,
  voidDeadlineMs: 250,
});
