import type { AdapterFactory, Markers } from '../../src/contract/adapter.ts';
import { overlay, overlayAdapter } from './overlay.ts';

/**
 * An adapter whose markers are broken once it is admitted: admission tries them, and refuses an
 * adapter without. Its last step is that it forgets what it tried.
 */
export function breakMarkers<A>(
  factory: AdapterFactory<A>,
  broken: Partial<Pick<Markers, 'find' | 'void'>>,
) {
  return overlayAdapter(factory, (adapter) => {
    if (adapter.capability !== 'PROMOTABLE') return {};
    const { markers } = adapter;
    let isAdmitted = false;
    const find: Markers['find'] = (occurrence) =>
      isAdmitted && broken.find ? broken.find(occurrence) : markers.find(occurrence);
    const makeVoid: Markers['void'] = (marker) =>
      isAdmitted && broken.void ? broken.void(marker) : markers.void(marker);
    const forget: Markers['forget'] = async (occurrence) => {
      await markers.forget(occurrence);
      isAdmitted = true;
    };
    return { markers: overlay(markers, { find, void: makeVoid, forget }) };
  });
}
