// node bench/recompute.ts [--quick]: makes the STATE tables of `public-outcomes` again from its raw
// records and compares them with the figures that the study wrote. It imports nothing of the
// runtime or of the study. Exit code 1 if a figure differs.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** One run as it is kept: what was decided, and digests of the states. */
export interface KeptRun {
  readonly run: string;
  readonly task: string;
  readonly variant: string;
  readonly condition: string;
  readonly committed: boolean;
  readonly states: {
    readonly initial: string;
    readonly approved: string;
    readonly durable: string;
  };
}

const PARTS: { readonly [part: string]: string } = {
  b: '(b)',
  'b, own tools': '(b) own tools,',
  c: '(c)',
  'c, own tools': '(c) own tools,',
};

/** Figures by name, from the records alone. */
export function recompute(records: readonly KeptRun[]): ReadonlyMap<string, number> {
  const figures = new Map<string, number>();
  const groups = Map.groupBy(records, ({ run, condition, variant }) => {
    const [part = ''] = run.split('|');
    return [PARTS[part], condition, variant].join('|');
  });
  for (const [key, runs] of groups) {
    const [title = '', condition = '', variant = ''] = key.split('|');
    if (title === '') continue;
    const right = runs.filter(isRight);
    const name = `${title} ${condition}: ${variant}`;
    if (variant === 'clean') figures.set(`${name}, right state`, right.length);
    else figures.set(`${name}, wrong commit`, runs.filter(isWrong).length);
    if (variant === 'clean' && title.startsWith('(c)'))
      figures.set(`${name}, saved`, right.filter(({ committed }) => committed).length);
  }
  return figures;
}

function isRight({ states }: KeptRun): boolean {
  return states.durable === states.approved;
}

/** Something that was not approved is durable, or is said to be committed. */
function isWrong(run: KeptRun): boolean {
  return !isRight(run) && (run.committed || run.states.durable !== run.states.initial);
}

function readRecords(file: string): readonly KeptRun[] {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const records = lines.map((line) => JSON.parse(line) as Partial<KeptRun> & { run: string });
  return records.filter((record) => record.states !== undefined) as KeptRun[];
}

function main(): void {
  const study = `public-outcomes${process.argv.includes('--quick') ? '-quick' : ''}`;
  const folder = process.env.EFFECTMATCH_BENCH_RESULTS ?? 'bench/results';
  const files = [join(folder, 'raw', `${study}.jsonl`), join(folder, `${study}.json`)] as const;
  const absent = files.find((file) => !existsSync(file));
  if (absent !== undefined) {
    console.error(`There is no ${absent}. Run: npm run bench -- public-outcomes`);
    process.exitCode = 1;
    return;
  }
  const { cells = [] } = JSON.parse(readFileSync(files[1], 'utf8')) as {
    cells?: readonly { readonly name: string; readonly value: number }[];
  };
  const figures = recompute(readRecords(files[0]));
  let differing = 0;
  for (const [name, value] of figures) {
    const written = cells.find((cell) => cell.name === name)?.value;
    if (written === value) continue;
    differing += 1;
    console.error(`${name}: the records say ${value}, the study wrote ${written}`);
  }
  console.log(`${figures.size - differing} of ${figures.size} figures agree`);
  if (differing > 0 || figures.size === 0) process.exitCode = 1;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) main();
