// The paper's inventory of boundary configurations. Each is set up on a real server, and a payment
// is approved and executed under it. The study counts satisfied expectations: the payment passes,
// or it is refused at the right place for the right reason.
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, type Study, type StudyOptions } from '../study.ts';
import { CHANNEL, CONSTRUCTIONS, GROUPS, type Group } from './boundary/constructions.ts';
import { CONTINUATIONS, runContinuation } from './boundary/continuations.ts';
import { listen } from './boundary/ear.ts';
import { openSite, type Site } from './boundary/site.ts';
import { runTrial } from './boundary/trial.ts';
import { compareServers, judgeServers } from './boundary/two-servers.ts';

const REPETITIONS = 5;

/** One construction of the inventory, ready to be tried. */
interface Entry {
  readonly group: Group;
  readonly name: string;
  readonly passes: boolean;
  /** Returns what differed from the expectation. */
  try(): Promise<string | undefined>;
}

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const repetitions = quick ? 1 : REPETITIONS;
  const raw = new RawRecords(`boundary${quick ? '-quick' : ''}`, []);
  await using site = await openSite();
  await using ear = await listen(site.db, CHANNEL);
  const cells: Cell[] = [];
  const satisfied: { readonly group: Group; readonly passes: boolean; readonly count: number }[] =
    [];
  for (const entry of entriesOf(site, (construction) => runTrial(site, ear, construction))) {
    const { group, name, passes } = entry;
    progress(`${group}: ${name}`);
    let count = 0;
    for (let trial = 0; trial < repetitions; trial += 1) {
      const { wrong } = await raw.run(`${group}|${name}|${trial + 1}`, async () => ({
        group,
        construction: name,
        passes,
        wrong: (await entry.try()) ?? null,
      }));
      if (wrong === null) count += 1;
      else progress(`NOT AS EXPECTED: ${wrong}`);
    }
    satisfied.push({ group, passes, count });
    cells.push(
      exactly(
        `${group}: ${name}: ${passes ? 'passes' : 'is refused'}`,
        count,
        'trials',
        repetitions,
      ),
    );
  }
  const total = (name: string, group: Group | undefined, passes: boolean): Cell => {
    const those = satisfied.filter(
      (entry) => entry.passes === passes && (group ?? entry.group) === entry.group,
    );
    const count = those.reduce((sum, entry) => sum + entry.count, 0);
    const cell = exactly(
      `${name}, ${passes ? 'pass' : 'refuse'}`,
      count,
      'trials',
      those.length * repetitions,
    );
    return quick ? cell : { ...cell, paper: PAPER[group ?? 'total'][passes ? 0 : 1] };
  };
  for (const group of GROUPS) cells.push(total(group, group, true), total(group, group, false));
  cells.push(total('all', undefined, true), total('all', undefined, false));
  progress('the same configuration on two servers');
  const servers = await raw.run('two servers', () => compareServers(site));
  for (const [name, holds] of Object.entries(judgeServers(servers)))
    cells.push(exactly(name, Number(holds), 'of 1', 1));
  raw.finish();
  return cells;
}

/** The paper's satisfied expectations: payments that pass, and payments that are refused. */
const PAPER: Readonly<Record<Group | 'total', readonly [pass: number, refuse: number]>> = {
  'base/foreign database': [10, 10],
  'host/network': [10, 10],
  'asynchronous signals': [10, 15],
  'function/configuration drift': [5, 15],
  'continuation authority': [5, 15],
  total: [40, 65],
};

function entriesOf(
  site: Site,
  tryOne: (construction: (typeof CONSTRUCTIONS)[number]) => Promise<string | undefined>,
): readonly Entry[] {
  return [
    ...CONSTRUCTIONS.map((construction): Entry => {
      const { group, name, expected } = construction;
      return {
        group,
        name,
        passes: expected.kind === 'committed',
        try: () => tryOne(construction),
      };
    }),
    ...CONTINUATIONS.map((asked): Entry => {
      const { name, expected } = asked;
      const group = 'continuation authority';
      return {
        group,
        name,
        passes: expected === 'released',
        try: () => runContinuation(site, asked),
      };
    }),
  ];
}

export const boundaryStudy: Study = {
  name: 'boundary',
  about:
    'which PostgreSQL configurations are certified and which are refused, and what a commit releases',
  run,
};
