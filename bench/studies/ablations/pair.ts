import type { RawRecords } from '../../raw.ts';
import { type Cell, exactly, reproduced } from '../../study.ts';

/**
 * How a run ended, judged from the state read back. After `stopped` nothing is wrong; `admitted`
 * did what must not happen.
 */
export type Ending = 'stopped' | 'admitted' | 'neither';

/**
 * A fault that the full system stops, and the same fault with exactly one mechanism removed.
 */
export interface Pair {
  readonly name: string;
  /**
   * How often the paper ran each side. All runs of a side ended the same way. Absent if the paper
   * does not have this row.
   */
  readonly paper?: number;
  /** How runs end without the mechanism: `admitted`, unless another mechanism stops the fault. */
  readonly removedEnds?: Ending;
  /** One run per task, or a single run if the pair does not use the tasks. */
  runs(removed: boolean): readonly { readonly name: string; run(): Promise<Ending> }[];
  /** The same runs without the fault. Both sides must commit them. */
  controls?(removed: boolean): readonly { readonly name: string; run(): Promise<boolean> }[];
  /** Presents used licenses and permits again after the fault. Nothing may commit twice. */
  replays?(): readonly { readonly name: string; run(): Promise<boolean> }[];
}

/** Repeats both sides and counts how they end. */
export async function runPair(
  pair: Pair,
  repetitions: number,
  raw: RawRecords,
  quick: boolean,
): Promise<Cell[]> {
  const cells: Cell[] = [];
  const cell = (words: string, value: number, expected: number) =>
    quick || pair.paper === undefined || expected !== pair.paper
      ? exactly(`${pair.name}: ${words}`, value, 'runs', expected)
      : reproduced(`${pair.name}: ${words}`, value, 'runs', pair.paper);
  for (const removed of [false, true]) {
    const runs = pair.runs(removed);
    const controls = pair.controls?.(removed) ?? [];
    const wanted: Ending = removed ? (pair.removedEnds ?? 'admitted') : 'stopped';
    let [faults, clean] = [0, 0];
    for (let repetition = 1; repetition <= repetitions; repetition += 1) {
      const place = (name: string) =>
        [pair.name, removed ? 'removed' : 'full', name, repetition].join('|');
      for (const { name, run } of runs) {
        const { ending } = await raw.run(place(name), async () => ({ ending: await run() }));
        if (ending === wanted) faults += 1;
      }
      for (const { name, run } of controls) {
        const { committed } = await raw.run(place(`control ${name}`), async () => ({
          committed: await run(),
        }));
        if (committed) clean += 1;
      }
    }
    cells.push(
      cell(`${removed ? 'removed' : 'full'}, ${wanted}`, faults, runs.length * repetitions),
    );
    if (removed && pair.replays !== undefined)
      cells.push(await runReplays(pair, pair.replays(), repetitions, raw));
    if (controls.length > 0) {
      const words = `clean control, ${removed ? 'removed' : 'full'}, committed`;
      cells.push(exactly(`${pair.name}: ${words}`, clean, 'runs', controls.length * repetitions));
    }
  }
  return cells;
}

/** Presents permits and licenses again after the ablation. */
async function runReplays(
  pair: Pair,
  replays: ReturnType<NonNullable<Pair['replays']>>,
  repetitions: number,
  raw: RawRecords,
): Promise<Cell> {
  let refused = 0;
  for (let repetition = 1; repetition <= repetitions; repetition += 1)
    for (const { name, run } of replays) {
      const place = [pair.name, 'removed', `replay ${name}`, repetition].join('|');
      const { isRefused } = await raw.run(place, async () => ({ isRefused: await run() }));
      if (isRefused) refused += 1;
    }
  const words = 'permit replays after the ablation, no second commit';
  return exactly(`${pair.name}: ${words}`, refused, 'runs', replays.length * repetitions);
}
