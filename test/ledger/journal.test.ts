// Goal: nothing leaves a journal that its row does not fit, however well it is sealed. Method: rows
// made as a store makes them, sealed by the deployment itself, each with one thing that no rule
// allows.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Sealed } from '../../src/contract/seal.ts';
import {
  type JournalRow,
  openRow,
  rowDigest,
  settlementSlot,
  terminalSlot,
} from '../../src/ledger/journal.ts';
import { type MarkerRecord, markerRecord } from '../../src/protocol/marker.ts';
import { terminalRecord } from '../../src/protocol/terminal.ts';
import {
  fixtureContext,
  fixtureDigest,
  fixtureExecution,
  fixtureLicense,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';

const context = fixtureContext();
const request = fixtureRequest(context, fixtureLicense('one'), fixtureExecution('one'));
const [occurrence] = request.binding.occurrences;
assert.ok(occurrence !== undefined);
const claim = request.claim(occurrence).record;
const { execution } = claim;

function rowOf(
  kind: JournalRow['kind'],
  slot: string,
  { text, seal }: Sealed<unknown>,
): JournalRow {
  const row = {
    seq: 7,
    kind,
    occurrence: claim.occurrence,
    slot,
    text,
    sealKey: seal.key,
    sealMac: seal.mac,
  };
  return { ...row, digest: rowDigest(context, row) };
}

const marker = (disposition: MarkerRecord['disposition']): Sealed<MarkerRecord> =>
  context.sealer.seal(
    markerRecord,
    markerRecord.parse({
      version: 1,
      disposition,
      occurrence,
      execution,
      ...(disposition === 'void'
        ? { voidedAt: '2026-01-01T10:00:00.000Z' }
        : {
            approved: fixtureDigest('a'),
            observed: fixtureDigest('o'),
            certificate: fixtureDigest('c'),
            claim: fixtureDigest('l'),
            permit: fixtureDigest('p'),
            consumedAt: '2026-01-01T10:00:00.000Z',
          }),
    }),
  );

test('a row that fits is opened', () => {
  assert.equal(openRow(context, rowOf('void', 'permit', marker('void'))).kind, 'void');
  for (const kind of ['committed', 'rejected', 'diverged'] as const) {
    for (const slot of [terminalSlot(execution), settlementSlot(execution)]) {
      assert.equal(
        openRow(context, rowOf('terminal', slot, fixtureTerminal(context, claim, kind))).slot,
        slot,
      );
    }
  }
});

test('a committed marker in place of a void one is tampering', () => {
  assert.throws(() => openRow(context, rowOf('void', 'permit', marker('committed'))), {
    code: 'ERR_EM_JOURNAL_TAMPERED',
    message: /row 7: a marker that is not void/,
  });
});

test('an uncertain terminal settles nothing', () => {
  const uncertain = fixtureTerminal(context, claim, 'indeterminate');
  assert.equal(
    openRow(context, rowOf('terminal', terminalSlot(execution), uncertain)).kind,
    'terminal',
  );
  assert.throws(() => openRow(context, rowOf('terminal', settlementSlot(execution), uncertain)), {
    code: 'ERR_EM_JOURNAL_TAMPERED',
  });
});

test('a commitment that consumed its permit before it was claimed is not handed out', () => {
  const { record } = fixtureTerminal(context, claim, 'committed');
  const early = terminalRecord.parse({ ...record, consumedAt: '2025-01-01T00:00:00.000Z' });
  const row = rowOf(
    'terminal',
    terminalSlot(execution),
    context.sealer.seal(terminalRecord, early),
  );
  assert.throws(() => openRow(context, row), { code: 'ERR_EM_INVARIANT' });
});
