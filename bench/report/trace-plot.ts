import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type PlotTone, plotMatrix, type Square } from './charts.ts';
import { type Markup, NOTHING } from './markup.ts';
import type { Entry } from './verdict.ts';

/** The facts of one pass that the figure shows. */
const pass = z.object({
  run: z.string(),
  verdict: z.string(),
  extra: z.array(z.string()),
  status: z.string(),
  notifications: z.number(),
  workers: z.array(z.object({ terminal: z.string(), release: z.string() })),
  replay: z.string(),
});
type Pass = z.infer<typeof pass>;

const STEPS = [
  ...['approved', 'written beyond it', 'verdict', 'durable rows'],
  ...['a fresh worker', 'another one', 'the license again'],
];
const VARIANTS = [
  ['trigger', 'with the trigger'],
  ['control', 'without it'],
] as const;

/** Draws the steps of the paper's second figure, from the first pass; and how many are equal. */
export function plotTrace(entry: Entry): Markup {
  const passes = (entry.raw?.records ?? []).flatMap((record) => pass.safeParse(record).data ?? []);
  const rows = VARIANTS.flatMap(([variant, words]) => {
    const own = passes.filter(({ run }) => run.startsWith(`${variant}|`));
    const [first] = own;
    if (first === undefined) return [];
    const same = own.filter((one) => isDeepStrictEqual(factsOf(one), factsOf(first))).length;
    return [{ name: `${words}: ${same} of ${own.length} passes`, squares: squaresOf(first) }];
  });
  if (rows.length === 0) return NOTHING;
  const title =
    'The running example on PostgreSQL, as recorded. Green: as approved; amber: not approved; blue: stopped';
  return plotMatrix(title, STEPS, rows);
}

/** What must be the same in every pass. Which of two workers is released is left to chance. */
function factsOf({ run: _, workers, ...facts }: Pass): object {
  return { ...facts, workers: workers.map((worker) => JSON.stringify(worker)).sort() };
}

/** `insert notification 1` as people write it. */
function countFirst(change: string): string {
  return change.replace(/^(.+) (\d+)$/, '$2 × $1');
}

function squaresOf({ verdict, extra, status, notifications, workers, replay }: Pass): Square[] {
  const stopped = (isStopped: boolean): PlotTone => (isStopped ? 'fair' : 'good');
  const shown: readonly (readonly [text: string, tone: PlotTone])[] = [
    ['update invoice, once', 'good'],
    extra.length === 0 ? ['nothing', 'good'] : [extra.map(countFirst).join(', '), 'warn'],
    [verdict, stopped(verdict !== 'committed')],
    [`invoice ${status}, ${notifications} notices`, notifications === 0 ? 'good' : 'bad'],
    ...workers.map(({ terminal, release }): readonly [string, PlotTone] => [
      `reads ${terminal}: ${release}`,
      stopped(release !== 'released'),
    ]),
    [replay, stopped(replay !== 'committed')],
  ];
  return shown.map(([text, tone], index) => ({ text, tone, told: `${STEPS[index]}: ${text}` }));
}
