import { markerTable } from '../../sqlite/marker-table.ts';

/**
 * The marker table of the control file. Every transaction on it is short. Whoever asks for a
 * committed marker finds the visible folder switched to it, because `redo` repeats the switch.
 */
export const { findMarker, insertMarker, markersOf, asUnavailable } = markerTable({
  table: 'marker',
  subject: 'the folder',
  voidDeadlineMs: 1000,
});
