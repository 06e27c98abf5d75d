// What is mutated, and which tests are tried on it. Slow tests that only repeat what quick ones
// show are left out.
import { globSync } from 'node:fs';

const RUNTIME = [
  'authority',
  'attempt',
  'deployment',
  'gate',
  'promotable',
  'remote',
  'finish',
  'settle',
  'recover',
  'resolve',
  'continuation',
  'boundary',
  'operation',
  'policy',
  'prepare',
  'propose',
  'rehearse',
];
const PROTOCOL = [
  'terminal',
  'continuation',
  'state',
  'observation',
  'drawn',
  'outcome',
  'limits',
  'approve',
];
const CRYPTO = ['dsse', 'receipt', 'seal', 'signature', 'proposal'];

/** Folders that are covered as a whole, so that a new file is covered too. */
const FOLDERS = [
  'src/adapters/mysql',
  'src/adapters/postgres',
  'src/postgres',
  'src/adapters/http',
  'src/http',
  'src/adapters/github',
  'src/ledger',
  'src/workflow',
];

/** Source files whose every check must be held by a test. */
export const TARGETS = [
  ...[...RUNTIME, 'execute', 'admit', 'ensure', 'task', 'calls', 'draft'].map(
    (name) => `src/runtime/${name}.ts`,
  ),
  ...PROTOCOL.map((name) => `src/protocol/${name}.ts`),
  ...CRYPTO.map((name) => `src/crypto/${name}.ts`),
  'src/backend/promotable.ts',
  'src/adapters/files/promotion.ts',
  'src/adapters/snapshot/promotion.ts',
  'src/sqlite/commit.ts',
  'src/sqlite/marker-table.ts',
  ...FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.ts`)).sort(),
  'src/ledger/postgres/sql/tables.sql',
];

/** Tests that take long and kill nothing that quicker ones let live. */
const LEFT_OUT = [
  'test/runtime/interleaving.test.ts',
  'test/runtime/fault-properties.test.ts',
  'test/adapters/http/random-faults.test.ts',
  'test/adapters/postgres/differential/differential.test.ts',
  'test/adapters/postgres/large-answers.test.ts',
  ...['differential', 'kill', 'server-kill'].map((name) => `test/adapters/mysql/${name}.test.ts`),
];

/**
 * PostgreSQL tests of whole executions, races and lost connections: tried only on the files that
 * these go through.
 */
const POSTGRES_EXECUTIONS = [
  ...['concurrency', 'conformance', 'control', 'cut-promotion', 'late-writes', 'marker-required'],
  ...['session-state', 'witness'],
].map((name) => `test/adapters/postgres/${name}.test.ts`);
const POSTGRES_QUICK = [
  'test/adapters/postgres/',
  ...POSTGRES_EXECUTIONS.map((file) => `!${file}`),
];
/** The files of an execution; the others are about values, names, actions and the boundary. */
const POSTGRES_EXECUTION = [
  ...['adapter', 'boundary', 'candidate', 'control', 'failure', 'markers', 'observation'],
  ...['pooling', 'prepared', 'residue', 'sessions'],
];
/** Almost every test surveys a boundary; these are about what it finds. */
const POSTGRES_BOUNDARY = [
  'test/adapters/postgres/certify/',
  ...['constraint-triggers', 'overloads', 'provision', 'row-security', 'search-path', 'sequences'],
  ...['trusted-calls', 'uncertified-code', 'views'],
].map((name) => (name.includes('/') ? name : `test/adapters/postgres/${name}.test.ts`));
const HTTP_TESTS = ['test/adapters/http/', 'test/http/'];

const CONFORMANCE = 'test/adapters/conformance.test.ts';
const TRIED_ON = {
  'src/runtime/execute.ts': ['test/runtime/', CONFORMANCE, 'test/telemetry/'],
  'src/runtime/rehearse.ts': ['test/runtime/rehearse.test.ts', 'test/rehearsal/sqlite.test.ts'],
  'src/runtime/': ['test/runtime/', CONFORMANCE, 'test/adapters/liars.test.ts'],
  'src/protocol/': [
    ...[...PROTOCOL, 'gross', 'hours', 'match'].map((name) => `test/protocol/${name}.test.ts`),
    ...['authority', 'continuation', 'gate', 'channels', 'prepare'].map(
      (name) => `test/runtime/${name}.test.ts`,
    ),
  ],
  'src/crypto/': [
    ...['approver', 'receipt', 'seal', 'signature', 'bad-records'].map(
      (name) => `test/crypto/${name}.test.ts`,
    ),
    'test/runtime/authority.test.ts',
  ],
  'src/ledger/postgres/': ['test/ledger/postgres', 'test/ledger/model.test.ts'],
  'src/ledger/sqlite/': ['test/ledger/', 'test/runtime/recovery.test.ts'],
  'src/ledger/': [
    ...['rules', 'durability', 'journal', 'reference', 'sqlite', 'sqlite-tamper'].map(
      (name) => `test/ledger/${name}.test.ts`,
    ),
    'test/runtime/recovery.test.ts',
  ],
  'src/workflow/': [
    'test/workflow/',
    '!test/workflow/graphile.test.ts',
    'test/cli/workflow.test.ts',
  ],
  'src/backend/': ['test/backend/', CONFORMANCE],
  'src/adapters/files/': ['test/adapters/files/', CONFORMANCE],
  'src/adapters/snapshot/': ['test/adapters/snapshot/', CONFORMANCE],
  'src/adapters/sqlite/': [
    ...['markers', 'promotion', 'stage'].map((name) => `test/adapters/sqlite/${name}.test.ts`),
    CONFORMANCE,
  ],
  ...Object.fromEntries(
    POSTGRES_EXECUTION.map((name) => [
      `src/adapters/postgres/${name}.ts`,
      ['test/adapters/postgres/'],
    ]),
  ),
  'src/adapters/postgres/certify/': POSTGRES_BOUNDARY,
  'src/adapters/postgres/': POSTGRES_QUICK,
  'src/adapters/mysql/': ['test/adapters/mysql/', 'test/mysql/escapes/'],
  'src/postgres/': ['test/adapters/postgres/', 'test/postgres/exchange.test.ts'],
  'src/adapters/http/': [...HTTP_TESTS, CONFORMANCE],
  'src/http/': [...HTTP_TESTS, 'test/adapters/github/'],
  'src/adapters/github/': ['test/adapters/github/'],
};

/** Marker table and commit are shared by every adapter that commits in SQLite. */
TRIED_ON['src/sqlite/'] = [
  ...TRIED_ON['src/adapters/sqlite/'],
  'test/adapters/files/promotion.test.ts',
  'test/adapters/snapshot/commit.test.ts',
];

/** The test files that are tried on a target, of all there are; `!` before a file leaves it out. */
export function testsFor(target, all) {
  const folder = Object.keys(TRIED_ON).find((prefix) => target.startsWith(prefix));
  const wanted = TRIED_ON[folder] ?? [];
  const starts = (file) => wanted.some((prefix) => file.startsWith(prefix));
  const isLeftOut = (file) => LEFT_OUT.includes(file) || wanted.includes(`!${file}`);
  return all.filter((file) => starts(file) && !isLeftOut(file));
}
