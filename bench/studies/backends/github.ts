// GitHub: eight kinds of operations on an issue, each clean, with a title that another user
// changes, and without read-back.

import { approver } from '../../../src/crypto/approver.ts';
import { generated, insert, update } from '../../../src/protocol/draft.ts';
import type { Trouble } from '../../../test/adapters/github/fault-server.ts';
import { digestOf, keepFact, keepVerdict } from '../../facts.ts';
import type { RawRecords } from '../../raw.ts';
import { type Cell, exactly, reproduced } from '../../study.ts';
import {
  type Fields,
  type GithubSite,
  MAINTAINERS,
  OTHER_TITLE,
  openGithub,
} from './github-site.ts';

const REPETITIONS = 5;
const NEXT = 'next';

const BEFORE: Fields = {
  title: 'before',
  body: 'text',
  state: 'open',
  labels: ['a', 'bug'],
  assignees: ['octocat'],
};

interface Shape {
  readonly name: string;
  /** The initial issue; undefined if the operation creates it. */
  readonly from?: Fields;
  readonly to: Fields;
}

const CLOSED: Fields = { ...BEFORE, state: 'closed' };
const SHAPES: readonly Shape[] = [
  { name: 'creation', to: { ...BEFORE, title: 'new' } },
  { name: 'title', from: BEFORE, to: { ...BEFORE, title: 'after' } },
  { name: 'body', from: BEFORE, to: { ...BEFORE, body: 'other text' } },
  { name: 'closing', from: BEFORE, to: CLOSED },
  { name: 'reopening', from: CLOSED, to: BEFORE },
  { name: 'title and body', from: BEFORE, to: { ...BEFORE, title: 'after', body: 'other text' } },
  { name: 'body and closing', from: BEFORE, to: { ...CLOSED, body: 'other text' } },
  { name: 'reopening and body', from: CLOSED, to: { ...BEFORE, body: 'other text' } },
];

const VARIANTS: Readonly<Record<'clean' | 'changed title' | 'no read-back', Trouble>> = {
  clean: 'none',
  'changed title': 'out-of-band',
  'no read-back': 'no-read-back',
};
type Variant = keyof typeof VARIANTS;

interface Run {
  readonly variant: string;
  readonly terminal: string;
  /** How often the dependent work ran. */
  readonly releases: number;
  /** The number of writing requests that arrived. */
  readonly writes: number;
  /**
   * Whether the issue has the approved fields, and whether it has them except for the other user's
   * title.
   */
  readonly isApproved: boolean;
  readonly isTakenOver: boolean;
}

/** Runs one operation on its own issue. */
async function runShape(
  { runtime, server, ...site }: GithubSite,
  shape: Shape,
  trouble: Trouble,
  task: string,
) {
  const { from, to } = shape;
  const created = from === undefined ? undefined : await site.createIssue(from);
  const effect =
    from === undefined || created === undefined
      ? insert('issue', { number: generated('issue'), ...withLists(to) })
      : update('issue', { number: created }, changedFields(from, to));
  const next = { continuations: [NEXT], fieldMatch: [NEXT] };
  const proposal = await runtime.prepare({
    adapter: 'tracker',
    task,
    planRevision: 1,
    effects: [effect],
    ...next,
  });
  const license = approver(MAINTAINERS).sign(proposal, { expiresIn: '10m' });
  const before = server.writes;
  server.trouble = trouble;
  const terminal = keepVerdict(await runtime.execute(license, {}));
  let releases = 0;
  await runtime.continuation(terminal, NEXT).release(() => {
    releases += 1;
  });
  server.heal();
  const found = await site.readIssue(created ?? (await site.lastNumber()));
  // An issue that we create has a mark after its text. Other issues have none.
  const body =
    created === undefined
      ? (found.body?.replace(/\n\n<!-- effectmatch:\w+ -->$/, '') ?? null)
      : found.body;
  const states = {
    durable: digestOf({ ...found, body }),
    approved: digestOf(to),
    takenOver: digestOf({ ...to, title: OTHER_TITLE }),
  };
  keepFact({ states });
  return {
    terminal: terminal.kind,
    releases,
    writes: server.writes - before,
    isApproved: states.durable === states.approved,
    isTakenOver: states.durable === states.takenOver,
  };
}

function withLists({ labels, assignees, ...fields }: Fields) {
  return { ...fields, labels: [...labels], assignees: [...assignees] };
}

function changedFields(from: Fields, to: Fields) {
  const names = (['title', 'body', 'state'] as const).filter((name) => from[name] !== to[name]);
  return Object.fromEntries(
    names.map((name) => [name, [from[name], to[name]] as [string | null, string | null]]),
  );
}

export async function runGithub(
  raw: RawRecords,
  { quick, progress }: { readonly quick: boolean; progress(line: string): void },
): Promise<readonly Cell[]> {
  const repetitions = quick ? 1 : REPETITIONS;
  await using site = await openGithub();
  const runs: Run[] = [];
  for (const [variant, trouble] of Object.entries(VARIANTS)) {
    progress(`GitHub, ${variant}`);
    for (const shape of SHAPES) {
      for (let repetition = 1; repetition <= repetitions; repetition += 1) {
        const name = ['github', shape.name, variant, repetition].join('|');
        const ended = await raw.run(name, () => runShape(site, shape, trouble, name));
        runs.push({ ...ended, variant });
      }
    }
  }
  const all = SHAPES.length * repetitions;
  const count = (variant: Variant, holds: (run: Run) => boolean) =>
    runs.filter((run) => run.variant === variant && holds(run)).length;
  const cell = (name: string, value: number) =>
    quick
      ? exactly(`GitHub, ${name}`, value, 'runs', all)
      : reproduced(`GitHub, ${name}`, value, 'runs', 40);
  const isBlocked = ({ releases, writes }: Run) => releases === 0 && writes === 1;
  return [
    cell(
      'clean: fields match, released',
      count(
        'clean',
        (run) =>
          run.isApproved && run.terminal === 'committed' && run.releases === 1 && run.writes === 1,
      ),
    ),
    cell(
      'changed title: mismatch detected, blocked',
      count(
        'changed title',
        (run) => run.isTakenOver && run.terminal === 'diverged' && isBlocked(run),
      ),
    ),
    cell(
      'no read-back: blocked',
      count('no read-back', (run) => run.terminal === 'indeterminate' && isBlocked(run)),
    ),
    // The paper does not report the remote state of these runs.
    exactly(
      'GitHub, no read-back: fields match all the same',
      count('no read-back', (run) => run.isApproved),
      'runs',
      all,
    ),
  ];
}
