// The time to compare E with A: whether it is linear in the number of effects, and how it compares
// with the same comparison in Python.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { ApprovedEffect, ChangeRecord } from '../../src/protocol/effect.ts';
import type { Approved } from '../../src/protocol/manifest.ts';
import { prepareApproved } from '../../src/protocol/match.ts';
import { establish } from '../../src/protocol/observation.ts';
import { classify } from '../../src/protocol/outcome.ts';
import { canonObserved } from '../../src/protocol/profile.ts';
import type { Registration } from '../../src/protocol/registration.ts';
import {
  atLeast,
  atMost,
  type Cell,
  figure,
  medianCell,
  type Study,
  type StudyOptions,
} from '../study.ts';

const SIZES = [1, 10, 100, 500, 10_000, 1_000_000];
/** Everything about an execution but its records. */
const EVIDENCE = {
  candidate: 'candidate',
  evidence: 'evidence',
  channels: [],
  unattributed: 0,
  assigned: [],
  window: { fromMs: 0, toMs: 0 },
};

const registration: Registration = {
  profile: 'net-state',
  values: 'plain',
  targets: [
    {
      name: 'invoice',
      columns: ['id', 'status', 'amount_cents', 'note'],
      key: ['id'],
      volatile: [],
    },
  ],
};

function image(id: number): ChangeRecord {
  const before = { id, status: 'pending', amount_cents: 1000 + id, note: `invoice ${id}` };
  return {
    op: 'update',
    target: 'invoice',
    key: { id },
    before,
    after: { ...before, status: 'paid' },
  };
}

function approvedFor(effects: number): Approved {
  const effect = (id: number): ApprovedEffect => ({
    op: 'update',
    target: 'invoice',
    key: { id: { is: id } },
    before: { status: { is: 'pending' } },
    after: { status: { is: 'paid' } },
    count: 1,
  });
  return {
    version: 1,
    adapter: 'books',
    registration,
    effects: Array.from({ length: effects }, (_, id) => effect(id)),
    requires: [],
    watch: [],
    salt: '0'.repeat(32),
  };
}

/** Times one comparison from raw images to verdict, as the runtime makes it, in microseconds. */
function timeOnce(
  prepared: ReturnType<typeof prepareApproved>,
  records: readonly ChangeRecord[],
): number {
  const started = performance.now();
  const observation = establish({ ...EVIDENCE, records }, registration, []);
  const outcome = classify(prepared, observation, EVIDENCE);
  const elapsed = performance.now() - started;
  if (outcome.kind !== 'EXACT') throw new Error('the comparison must find the bags equal');
  return elapsed * 1000;
}

/**
 * Times many comparisons of `size` effects, in microseconds. Preparing A happens once per execution
 * and is not timed.
 */
export function timeComparisons(size: number, quick: boolean): readonly number[] {
  const prepared = prepareApproved(approvedFor(size));
  const records = Array.from({ length: size }, (_, id) => image(id));
  const rounds = Math.max(
    quick ? 2 : 5,
    Math.min(2000, Math.floor((quick ? 20_000 : 200_000) / size)),
  );
  for (let i = 0; i < Math.min(rounds, 500); i += 1) timeOnce(prepared, records);
  return Array.from({ length: rounds }, () => timeOnce(prepared, records));
}

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}

/** The heap bytes per effect that E takes during the comparison. */
function bytesPerEffect(records: readonly ChangeRecord[]): number {
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const effects = canonObserved(registration, records);
  collectGarbage();
  const bytes = process.memoryUsage().heapUsed - before;
  return bytes / effects.length;
}

class Python {
  readonly child: ChildProcess & {
    stdin: NonNullable<ChildProcess['stdin']>;
    stdout: NonNullable<ChildProcess['stdout']>;
  };
  readonly answers: AsyncIterator<string>;

  constructor() {
    this.child = spawn('python3', [new URL('./compare.py', import.meta.url).pathname], {
      stdio: ['pipe', 'pipe', 'inherit'],
    }) as Python['child'];
    this.answers = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  async time(effects: number, rounds: number): Promise<number> {
    this.child.stdin.write(`${JSON.stringify({ effects, rounds })}\n`);
    const answer = await this.answers.next();
    if (answer.done) throw new Error('python3 ended without an answer');
    return JSON.parse(answer.value).us;
  }

  async stop(): Promise<void> {
    this.child.stdin.end();
    if (this.child.exitCode === null) await once(this.child, 'exit');
  }
}

/** Alternates blocks of both, so that a slow phase of the machine affects both equally. */
async function beside(
  python: Python,
  effects: number,
  rounds: number,
): Promise<{ ours: readonly number[]; python: readonly number[] }> {
  const prepared = prepareApproved(approvedFor(effects));
  const records = Array.from({ length: effects }, (_, id) => image(id));
  for (let i = 0; i < 200; i += 1) timeOnce(prepared, records);
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let block = 0; block < 5; block += 1) {
    for (let i = 0; i < rounds; i += 1) ours.push(timeOnce(prepared, records));
    theirs.push(await python.time(effects, rounds));
  }
  return { ours, python: theirs };
}

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  const cells: Cell[] = [];
  const perEffect = new Map<number, readonly number[]>();
  for (const size of SIZES.filter((candidate) => !quick || candidate <= 10_000)) {
    progress(`comparing ${size} effects`);
    const us = timeComparisons(size, quick);
    perEffect.set(
      size,
      us.map((time) => time / size),
    );
    cells.push(
      medianCell(`${size} effects`, us, 'us'),
      medianCell(`${size} effects, each`, us, 'us', 1 / size),
    );
  }
  const large = Math.max(...perEffect.keys());
  const [of = [], to = []] = [perEffect.get(large), perEffect.get(500)];
  const growth = { statistic: 'ratio', of, to } as const;
  cells.push(atMost(`cost per effect at ${large} over 500`, growth, 'x', 3));
  cells.push(
    figure(
      'memory of E at 10000, each',
      bytesPerEffect(Array.from({ length: 10_000 }, (_, id) => image(id))),
      'bytes',
    ),
  );

  if (spawnSync('python3', ['--version']).status !== 0) {
    progress('python3 is not installed: the figures beside Python are not measured');
    return cells;
  }
  progress('beside Python, 500 effects');
  const python = new Python();
  try {
    const result = await beside(python, 500, quick ? 20 : 200);
    cells.push(medianCell('500 effects, Python', result.python, 'us'));
    cells.push(
      atMost('500 effects, beside Python', { statistic: 'median', of: result.ours }, 'us', 500),
    );
    cells.push(
      atLeast(
        '500 effects, times faster than Python',
        { statistic: 'ratio', of: result.python, to: result.ours },
        'x',
        5,
      ),
    );
  } finally {
    await python.stop();
  }
  return cells;
}

export const compareStudy: Study = {
  name: 'compare',
  about:
    'comparison of 1 to 1,000,000 effects, from row images to the verdict; Python at 500 effects',
  run,
};
