import { markerTable } from '../../sqlite/marker-table.ts';

/** The marker table of the control file. Every transaction on it is short. */
export const { findMarker, insertMarker, markersOf } = markerTable({
  table: 'marker',
  voidDeadlineMs: 1000,
});
