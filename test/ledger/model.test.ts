// Goal: every ledger decides every sequence of operations as the reference ledger does. Method:
// random commands run on both; results, error codes, and in the end journals and chains are
// compared.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import type { Ledgers } from '../../src/contract/ledgers.ts';
import { digestRecord, occurrenceId } from '../../src/crypto/digest.ts';
import { EffectMatchError } from '../../src/errors.ts';
import type { ClaimRecord } from '../../src/protocol/binding.ts';
import { type License, licenseRecord } from '../../src/protocol/license.ts';
import {
  announcedPlan,
  fixtureAcknowledgement,
  fixtureContext,
  fixtureExecution,
  fixtureLicense,
  fixturePermit,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import type { LedgerKit } from '../../src/testing/ledger-conformance.ts';
import { ledgerDatabase, postgresKit } from './postgres-store.ts';
import { referenceLedgers } from './reference.ts';
import { sqliteKit } from './sqlite-store.ts';

const context = fixtureContext();
const LICENSES: readonly License[] = [
  fixtureLicense('one', { task: 'shared' }),
  fixtureLicense('two', { task: 'shared', planRevision: 2, occurrences: 2 }),
  { ...fixtureLicense('one', { task: 'shared' }), planRevision: 3 },
];

/**
 * A command names everything it needs by small numbers, so that sequences often meet in the same
 * occurrence.
 */
const weighted = <T>(...choices: readonly (readonly [number, T])[]): fc.Arbitrary<T> =>
  fc.constantFrom(
    ...choices.flatMap(([weight, value]) => Array.from({ length: weight }, () => value)),
  );
const command = fc.record({
  op: weighted(
    [10, 'claim' as const],
    [16, 'record' as const],
    [8, 'consume' as const],
    [4, 'void' as const],
    [16, 'acknowledge' as const],
    [1, 'announce' as const],
    [1, 'renew' as const],
  ),
  license: weighted([10, 0], [4, 1], [1, 2]),
  index: weighted([4, 0], [1, 1]),
  execution: fc.nat(2),
  kind: weighted(
    [3, 'committed' as const],
    [1, 'rejected' as const],
    [1, 'diverged' as const],
    [2, 'indeterminate' as const],
  ),
  odd: weighted([3, false], [1, true]),
});
const FIRST = { license: 0, index: 0, execution: 0, kind: 'committed', odd: false } as const;
const CLAIM = { ...FIRST, op: 'claim' } as const;
const ANNOUNCE = { ...FIRST, op: 'announce', execution: 2 } as const;
/** Most sequences begin with a claim that succeeds, some with one whose plan is superseded. */
const opening = weighted<readonly (typeof CLAIM | typeof ANNOUNCE)[]>(
  [1, []],
  [3, [CLAIM]],
  [1, [ANNOUNCE, CLAIM]],
);
type Command = typeof command extends fc.Arbitrary<infer T> ? T : never;

async function run(ledgers: Ledgers, command: Command): Promise<unknown> {
  const license = LICENSES[command.license] ?? assert.fail();
  const execution = fixtureExecution(`execution ${command.execution}`);
  const lineage = digestRecord(licenseRecord, license);
  const occurrence = occurrenceId({ ...license, license: lineage, index: command.index });
  const request = fixtureRequest(context, license, execution, command.odd ? 3_600_000 : 0);
  const holder = (await ledgers.holder(occurrence))?.claim.record;
  const claim: ClaimRecord = {
    ...(holder ?? request.claim(occurrence).record),
    ...(command.odd && { execution }),
  };
  switch (command.op) {
    case 'claim':
      return await ledgers.claim(request);
    case 'record':
      return await ledgers.record(
        fixtureTerminal(context, claim, command.kind),
        command.odd ? 'flushed' : 'relaxed',
      );
    case 'consume':
      return await ledgers.consumePermit(fixturePermit(context, claim));
    case 'void':
      return await ledgers.voidPermit(occurrence, claim.execution);
    case 'acknowledge': {
      const state = command.odd ? 'completed' : 'released';
      return await ledgers.acknowledge(fixtureAcknowledgement(context, holder ?? claim, { state }));
    }
    case 'announce':
      return await ledgers.announcePlan(license.task, command.execution);
    case 'renew':
      return await ledgers.renew(occurrence, claim.execution, 3_600_000);
  }
}

interface Outcome {
  readonly value?: unknown;
  readonly code?: string;
}

/** What a caller can tell: the value, or the code of the fault. */
async function outcomeOf(work: Promise<unknown>): Promise<Outcome> {
  try {
    return { value: await work };
  } catch (error) {
    if (error instanceof EffectMatchError) return { code: error.code };
    throw error;
  }
}

function labelOf(op: string, { value, code }: Outcome): string {
  const { reason, kind } = (typeof value === 'object' ? value : {}) as {
    readonly reason?: string;
    readonly kind?: string;
  };
  return `${op} ${code ?? reason ?? kind ?? String(value)}`;
}

/** Everything the port shows, except for times on the store's clock. */
async function shown(ledgers: Ledgers): Promise<unknown> {
  const journal = await ledgers.journal({ limit: 1000 });
  const occurrences = [...new Set(journal.map(({ record }) => record.occurrence))];
  const about = occurrences.map(async (occurrence) => ({
    terminal: await ledgers.terminal(occurrence),
    attempts: await ledgers.attempts(occurrence),
    acknowledgements: await ledgers.acknowledgements(occurrence),
    permit: (await ledgers.permit(occurrence))?.kind,
    holder: (await ledgers.holder(occurrence))?.claim,
    expired: (await ledgers.holder(occurrence))?.leaseExpired,
  }));
  return {
    journal: journal.map((entry) =>
      entry.kind === 'void' ? { ...entry, record: entry.record.execution } : entry,
    ),
    about: await Promise.all(about),
    unsettled: (await ledgers.unsettled()).map(({ claim }) => claim),
    leased: (await ledgers.unsettled({ includeLeased: true })).map(({ claim }) => claim),
    plan: await announcedPlan(ledgers, 'shared'),
    verdict: await ledgers.verify(),
  };
}

async function compareWithReference(kit: LedgerKit, numRuns: number): Promise<void> {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(
      opening,
      fc.array(command, { minLength: 10, maxLength: 50 }),
      async (first, rest) => {
        const store = await kit.create();
        const compared = await store.open(context);
        const reference = await referenceLedgers().open(context);
        try {
          for (const command of [...first, ...rest]) {
            const expected = await outcomeOf(run(reference, command));
            const actual = await outcomeOf(run(compared, command));
            assert.deepEqual(actual, expected, JSON.stringify(command));
            seen.add(labelOf(command.op, expected));
          }
          assert.deepEqual(await shown(compared), await shown(reference));
        } finally {
          await compared.close();
          await store.remove();
        }
      },
    ),
    { numRuns },
  );
  const reached = [
    'claim claimed',
    'claim spent',
    'claim nonce-reused',
    'claim plan-superseded',
    'record committed',
    'record indeterminate',
    'record ERR_EM_TERMINAL_CONFLICT',
    'record ERR_EM_INVARIANT',
    'consume consumed',
    'consume spent',
    'void void',
    'acknowledge true',
    'acknowledge false',
  ];
  assert.deepEqual(
    reached.filter((label) => !seen.has(label)),
    [],
    'the commands reach every kind of decision',
  );
}

test('property: SQLite and the reference decide alike, and the journal is intact after any sequence', async () => {
  await compareWithReference(sqliteKit, 100);
});

test('property: PostgreSQL and the reference decide alike, and the journal is intact after any sequence', async () => {
  await compareWithReference(postgresKit, 60);
});

after(async () => await (await ledgerDatabase()).drop());
