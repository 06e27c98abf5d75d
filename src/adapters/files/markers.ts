import { markerTable } from '../../sqlite/marker-table.ts';

/** The marker table in the control file. All of its transactions are short. */
export const { findMarker, insertMarker, markersOf } = markerTable({
  table: 'marker',
  voidDeadlineMs: 1000,
});
