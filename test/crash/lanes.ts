/**
 * Runs the work for every item, at most `lanes` at a time. A fault keeps further items from
 * starting and is thrown once those under way have ended, so that nothing is cleaned up under a
 * case that still runs.
 */
export async function runLanes<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const faults: unknown[] = [];
  const lane = async () => {
    while (next < items.length && faults.length === 0) {
      const index = next;
      next += 1;
      const item = items[index];
      if (item === undefined) continue;
      try {
        await work(item, index);
      } catch (error) {
        faults.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  if (faults.length > 0) throw faults[0];
}
