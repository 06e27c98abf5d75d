// What is mutated, and which tests are tried on it. Slow tests that only repeat what quick ones show are left out.

const RUNTIME = [
  'authority',
  'gate',
  'promotable',
  'remote',
  'finish',
  'settle',
  'recover',
  'continuation',
  'boundary',
];
const PROTOCOL = ['terminal', 'continuation', 'state', 'observation'];

/** Source files whose every check must be held by a test. */
export const TARGETS = [
  ...[...RUNTIME, 'execute', 'admit'].map((name) => `src/runtime/${name}.ts`),
  ...PROTOCOL.map((name) => `src/protocol/${name}.ts`),
  'src/ledger/rules.ts',
  'src/adapters/sqlite/promotion.ts',
  'src/adapters/sqlite/markers.ts',
];

/** Tests that take long and kill nothing that quicker ones let live. */
const LEFT_OUT = [
  'test/runtime/interleaving.test.ts',
  'test/runtime/fault-properties.test.ts',
  'test/ledger/sqlite.test.ts',
  'test/ledger/sqlite-tamper.test.ts',
  'test/ledger/sqlite-flush.test.ts',
];

const SHARED = ['test/runtime/', 'test/adapters/conformance.test.ts', 'test/adapters/liars.test.ts'];
const TRIED_ON = {
  'src/runtime/': SHARED,
  'src/protocol/': [...SHARED, 'test/protocol/', 'test/ledger/'],
  'src/ledger/': ['test/ledger/', 'test/runtime/'],
  'src/adapters/sqlite/': ['test/adapters/sqlite/', 'test/adapters/conformance.test.ts', 'test/runtime/'],
};

/** The test files that are tried on a target, of all there are. */
export function testsFor(target, all) {
  const folder = Object.keys(TRIED_ON).find((prefix) => target.startsWith(prefix));
  const wanted = TRIED_ON[folder] ?? SHARED;
  return all.filter((file) => !LEFT_OUT.includes(file) && wanted.some((prefix) => file.startsWith(prefix)));
}
