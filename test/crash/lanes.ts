/** Runs the work for every item, at most `lanes` at a time, in order of starting. The first fault stops the rest. */
export async function runLanes<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  let stopped = false;
  const lane = async () => {
    while (next < items.length && !stopped) {
      const index = next;
      next += 1;
      const item = items[index];
      if (item === undefined) continue;
      try {
        await work(item, index);
      } catch (error) {
        stopped = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
