// Goal: no study passes on a runtime that lacks the mechanism it measures. Method: the project is
// copied, one mechanism is broken in the copy, and the study runs there with --quick --strict; it
// must fail and say why. EFFECTMATCH_SABOTAGE=all runs every study, or names some; one runs always.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { after, test } from 'node:test';
import { findFolder } from '../../bench/data/folder.ts';

interface Edit {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

interface Sabotage {
  readonly studies: readonly string[];
  readonly edits: readonly Edit[];
  /** What the study says when it fails. */
  readonly says: RegExp;
}

const COMPARED = {
  file: 'src/runtime/promotable.ts',
  from: '= deployment.classify(prepared, observation, evidence);',
};
const CONTINUATION = 'src/runtime/continuation.ts';
const GATE = 'src/runtime/gate.ts';
const AUTHORITY = 'src/runtime/authority.ts';

const SABOTAGES: { readonly [broken: string]: Sabotage } = {
  'whatever was observed counts as approved': {
    studies: [
      ...['public-outcomes', 'mechanism-matrix', 'information', 'live-agents'],
      ...['backends', 'backends-mariadb', 'integrated', 'topologies', 'trace', 'escapes', 'peers'],
    ],
    edits: [
      {
        ...COMPARED,
        to: "= (observation.kind === 'complete' ? { kind: 'EXACT', effects: observation.effects } : { kind: 'INDETERMINATE', gaps: [] }) as Outcome;",
      },
    ],
    says: /^MISSED: /m,
  },
  'nothing that was observed counts as approved': {
    studies: [
      ...['core-cost', 'sqlite-cost', 'pg-cost', 'mariadb-cost', 'cost'],
      ...['agents', 'server', 'held-tasks', 'workflows'],
    ],
    edits: [
      { ...COMPARED, to: "= { kind: 'INDETERMINATE', gaps: ['broken on purpose'] } as Outcome;" },
    ],
    says: /broken on purpose|not committed|ensure: rejected/,
  },
  'any signature is accepted': {
    studies: ['ablations'],
    edits: [
      {
        file: 'src/runtime/runtime.ts',
        from: 'verifyLicense = verifySignature }',
        to: 'verifyLicense = () => true }',
      },
    ],
    says: /^MISSED: approval source/m,
  },
  'the boundary is not looked at again at the final gate': {
    studies: ['ablations', 'integrated'],
    edits: [{ file: GATE, from: 'if (!isConfirmed(', to: 'if (false && !isConfirmed(' }],
    says: /^MISSED: (final boundary check|TEMP granted|host capability granted)/m,
  },
  'any held candidate may be promoted': {
    studies: ['ablations'],
    edits: [{ file: GATE, from: 'now.candidate !== bound.candidate', to: 'false' }],
    says: /^MISSED: candidate binding/m,
  },
  'a license allows every action': {
    studies: ['ablations'],
    edits: [
      {
        file: AUTHORITY,
        from: 'if (actionDigest(tried, approved.salt) === license.action) return undefined;',
        to: 'if (tried !== undefined) return undefined;',
      },
    ],
    says: /^MISSED: execution binding, (STATE|PG) action/m,
  },
  'the state may differ from the approved one': {
    studies: ['ablations'],
    edits: [
      {
        file: AUTHORITY,
        from: 'if (taskStateDigest(approved, readings, revision) === license.taskState) return undefined;',
        to: 'if (readings !== undefined) return undefined;',
      },
    ],
    says: /^MISSED: execution binding, (STATE|PG) state/m,
  },
  'work goes on after a divergence': {
    studies: ['ablations', 'mechanism-matrix'],
    edits: [
      {
        file: 'src/protocol/continuation.ts',
        from: "    case 'diverged':\n    case 'indeterminate':",
        to: "    case 'diverged':\n      return { kind: 'release', terminal: terminal as never };\n    case 'indeterminate':",
      },
      // The ledger checks it a second time.
      {
        file: 'src/ledger/rules.ts',
        from: "claim !== undefined && terminal?.kind === 'committed',\n    'only a committed",
        to: "claim !== undefined && terminal !== undefined,\n    'only a committed",
      },
    ],
    says: /^MISSED: (durable hazard|opaque remote extra)/m,
  },
  'equal effects count as different': {
    studies: ['compare'],
    edits: [
      {
        file: 'src/protocol/match.ts',
        from: 'return taken === exact.length;',
        to: 'return false;',
      },
      {
        file: 'src/protocol/match.ts',
        from: "if (wanted.length === 0 && !differs) return { kind: 'equal' };",
        to: '',
      },
      {
        file: 'src/protocol/match.ts',
        from: "return { kind: 'equal', ...generatedBy(match.pairings) };",
        to: "return { kind: 'budget', steps: 0 };",
      },
    ],
    says: /the comparison must find the bags equal/,
  },
  'an open boundary is certified': {
    studies: ['boundary'],
    edits: [
      {
        file: 'src/runtime/boundary.ts',
        from: "open.length === 0 ? undefined : refuse('outlet-unclassified'",
        to: "open.length >= 0 ? undefined : refuse('outlet-unclassified'",
      },
    ],
    says: /^MISSED: /m,
  },
  'recovery takes the marker of a commit for a void one': {
    studies: ['recovery', 'crashes', 'more-ablations'],
    edits: [
      {
        file: 'src/runtime/settle.ts',
        from: "if (result.kind === 'inserted') return { kind: 'void' };",
        to: "if (result.kind !== 'busy') return { kind: 'void' };",
      },
    ],
    says: /^MISSED: /m,
  },
  'work is released as often as it is asked for': {
    studies: ['concurrency'],
    edits: [
      {
        file: CONTINUATION,
        from: "if (isReleased || isCompleted) return { kind: 'halted', why: 'already-released' };",
        to: '',
      },
      {
        file: CONTINUATION,
        from: 'if (!(await deployment.ledgers.acknowledge(asked.acknowledgement)))\n    return',
        to: "if ((await deployment.ledgers.acknowledge(asked.acknowledgement)) as unknown === 'never')\n    return",
      },
    ],
    says: /^MISSED: /m,
  },
};

const ALWAYS = 'compare';
const asked = process.env.EFFECTMATCH_SABOTAGE;
const isAsked = (study: string) =>
  study === ALWAYS || asked === 'all' || (asked?.split(',').includes(study) ?? false);

let copied: string | undefined;
after(() => copied && rmSync(copied, { recursive: true, force: true }));

/** A copy of everything that a study runs; packages are those of the original. */
function copyProject(): string {
  if (copied !== undefined) return copied;
  copied = mkdtempSync(join(tmpdir(), 'effectmatch-sabotage-'));
  chmodSync(copied, 0o711); // A server may run as another user.
  for (const name of ['src', 'bench', 'test', 'examples', 'scripts', 'package.json'])
    cpSync(name, join(copied, name), {
      recursive: true,
      filter: (path) => path !== join('bench', 'results'),
    });
  for (const name of ['package-lock.json', 'tsconfig.json', 'tsconfig.build.json'])
    cpSync(name, join(copied, name));
  symlinkSync(resolve('node_modules'), join(copied, 'node_modules'));
  symlinkSync(resolve('integrations'), join(copied, 'integrations'));
  return copied;
}

function runBroken(study: string, edits: readonly Edit[]) {
  const project = copyProject();
  const originals = new Map(edits.map(({ file }) => [file, readFileSync(file, 'utf8')]));
  try {
    for (const { file, from, to } of edits) {
      const path = join(project, file);
      writeFileSync(
        path,
        readFileSync(path, 'utf8').replace(from, () => to),
      );
    }
    const { EFFECTMATCH_TEST_POSTGRES: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
    return spawnSync(
      process.execPath,
      ['--no-warnings', 'bench/main.ts', study, '--quick', '--strict'],
      {
        cwd: project,
        encoding: 'utf8',
        env: {
          ...env,
          EFFECTMATCH_DATA: resolve(findFolder(undefined)),
          EFFECTMATCH_BENCH_RESULTS: join(project, 'results'),
        },
      },
    );
  } finally {
    for (const [file, text] of originals) writeFileSync(join(project, file), text);
  }
}

test('there is a sabotage for every study, and each still finds what it breaks', () => {
  const studies = globSync('bench/studies/*.ts').map((file) => basename(file, '.ts'));
  const covered = new Set(Object.values(SABOTAGES).flatMap((one) => one.studies));
  assert.deepEqual([...covered].sort(), studies.sort());
  for (const { file, from } of Object.values(SABOTAGES).flatMap(({ edits }) => edits))
    assert.equal(readFileSync(file, 'utf8').split(from).length, 2, `${file}: ${from}`);
});

for (const [broken, { studies, edits, says }] of Object.entries(SABOTAGES))
  for (const study of studies.filter(isAsked))
    test(`${study} fails if ${broken}`, () => {
      const { status, stdout, stderr } = runBroken(study, edits);
      assert.ok(status === 1 || status === 3, `it ended with ${status}: ${stdout}${stderr}`);
      assert.doesNotMatch(stdout, /NOT RUN/);
      assert.match(stderr, says, `${stdout}${stderr}`);
      const first = stderr.split('\n').find((line) => says.test(line)) ?? '';
      console.log(`${study}: exit ${status}: ${first.trim().slice(0, 160)}`);
    });
