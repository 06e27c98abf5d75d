// Goal: one command tells everything about one occurrence, and its exit code tells the verdict.
// Method: real payments for what SQLite can end in; sealed records put into a real store for what
// only remote backends can; real processes read both.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, test } from 'node:test';
import type { Ledgers } from '../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../src/ledger/sqlite/index.ts';
import type { ClaimRecord } from '../../src/protocol/binding.ts';
import { canonical } from '../../src/protocol/canon.ts';
import { update } from '../../src/protocol/draft.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import {
  fixtureContext,
  fixtureExecution,
  fixtureLicense,
  fixturePermit,
  fixtureRequest,
  fixtureTerminal,
} from '../../src/testing/ledger/fixtures.ts';
import { Office, runCommand } from './command.ts';
import { makePayments } from './payments.ts';

const office = new Office();
after(() => office[Symbol.dispose]());
const { committed, diverged, refused } = await makePayments(office);
const show = (...args: string[]) => runCommand(['show', ...args], { cwd: office.folder });

test('a committed occurrence shows approval, claim, both attempts and what was released, with exit code 0', async () => {
  const { code, stdout } = await show(committed.occurrence);
  assert.equal(code, 0);
  assert.match(stdout, new RegExp(`^${committed.occurrence} {2}committed\\n`));
  assert.match(stdout, /task {6}"invoice-1", plan revision 1, on books/);
  assert.match(stdout, new RegExp(`claimed .* by ${committed.execution}`));
  assert.match(stdout, /signed by ap-team \(manifest\)/);
  assert.match(stdout, /~ invoice id=1 {2}status: "pending" -> "paid"/);
  assert.match(stdout, /committed: what became durable is what was approved/);
  assert.match(stdout, /\(another attempt holds the claim\)\n {4}rejected at authority \(spent\)/);
  assert.match(stdout, /Z {2}released {2}reconcile\n.*Z {2}completed {2}reconcile/);
  assert.ok('certificate' in committed && stdout.includes(`certificate ${committed.certificate}`));
});

test('a diverged attempt shows the row that nobody approved, with exit code 2, by any unique beginning of the id', async () => {
  const { code, stdout } = await show(diverged.occurrence.slice(4, 20));
  assert.equal(code, 2);
  assert.match(stdout, /rejected at comparison \(diverged\)/);
  assert.match(stdout, /extra {4}\+ notification id=1 {2}invoice_id=2/);
  assert.match(stdout, /not released {2}reconcile/);
});

test('an attempt that never claimed is shown as refused, with exit code 2', async () => {
  const { code, stdout } = await show(refused.occurrence);
  assert.equal(code, 2);
  assert.match(stdout, /never claimed/);
  assert.match(stdout, /rejected at authority \(not-yet-valid\)/);
});

test('as data, all of it is there', async () => {
  const { code, stdout } = await show(diverged.occurrence, '--json');
  assert.equal(code, 2);
  const shown = JSON.parse(stdout);
  assert.equal(shown.occurrence, diverged.occurrence);
  assert.deepEqual(shown.verdict, diverged);
  assert.deepEqual(shown.attempts, [diverged]);
  assert.equal(shown.claimed.claim.execution, diverged.execution);
  assert.equal(shown.claimed.license.issuer, 'ap-team');
  assert.deepEqual(shown.claimed.approved.effects, [
    update('invoice', { id: 2 }, { status: ['pending', 'paid'] }),
  ]);
  assert.deepEqual(shown.acknowledgements, []);
});

test('what is not there and what is no occurrence are different faults', async () => {
  const [absent, wrong] = await Promise.all([show(`occ_${'0'.repeat(40)}`), show('invoice-1')]);
  assert.match(absent.stderr, /^error ERR_EM_NOT_FOUND: no occurrence begins with occ_0000/);
  assert.match(
    wrong.stderr,
    /^error ERR_EM_USAGE: "invoice-1" is not an occurrence.*\nnext: .*journal --task/,
  );
  assert.equal(absent.code, 1);
  assert.equal(wrong.code, 1);
});

test('verdicts of remote backends have exit codes 3 and 4, no verdict has 5, and a common beginning lists all', async () => {
  const context = fixtureContext('show');
  const secret = createHash('sha256').update('show').digest('base64url');
  office.writeConfig(
    { store: "'remote.db'", keyring: "{ env: 'EM_TEST_KEYS' }" },
    'remote.config.ts',
  );
  const call = (...args: string[]) =>
    runCommand(['show', ...args, '--config', 'remote.config.ts'], {
      cwd: office.folder,
      env: { EM_TEST_KEYS: `fixture:${secret}` },
    });

  const ledgers = await sqliteLedgers(office.path('remote.db')).open(context);
  const claims = new Map<string, ClaimRecord>();
  for (const name of [
    'diverged',
    'indeterminate',
    'silent',
    ...Array.from({ length: 14 }, (_, n) => `more ${n}`),
  ]) {
    claims.set(name, await claim(ledgers, name));
  }
  const claimed = (name: string) => claims.get(name) as ClaimRecord;
  for (const kind of ['diverged', 'indeterminate'] as const) {
    await ledgers.consumePermit(fixturePermit(context, claimed(kind)));
    await ledgers.record(
      fixtureTerminal<Terminal['kind']>(context, claimed(kind), kind),
      'flushed',
    );
  }
  await ledgers.close();

  const [three, four, five] = await Promise.all(
    ['diverged', 'indeterminate', 'silent'].map((name) => call(claimed(name).occurrence)),
  );
  assert.equal(three?.code, 3, three?.stderr);
  assert.match(three?.stdout ?? '', /diverged: durable, and not what was approved/);
  assert.equal(four?.code, 4, four?.stderr);
  assert.match(four?.stdout ?? '', /could not be established: the reply was lost/);
  assert.equal(five?.code, 5, five?.stderr);
  assert.match(five?.stdout ?? '', /no verdict, so dependent work is halted/);
  assert.match(
    five?.stdout ?? '',
    /\nnext: .*effectmatch recover`|\nnext: it may be running: its lease/,
  );

  // Of 17 ids two begin with the same of 16 characters.
  const ids = [...claims.values()].map(({ occurrence }) => occurrence as string);
  const begin =
    ids.map((id) => id.slice(0, 5)).find((start, index, all) => all.indexOf(start) !== index) ?? '';
  const many = await call(begin);
  assert.equal(many.code, 1);
  assert.match(
    many.stderr,
    new RegExp(`^error ERR_EM_NOT_FOUND: \\d+ occurrences begin with ${begin}:\n`),
  );
  for (const id of ids.filter((candidate) => candidate.startsWith(begin)))
    assert.ok(many.stderr.includes(`  ${id}\n`));
  assert.match(many.stderr, /\nnext: give more of the id\n$/);

  async function claim(store: Ledgers, name: string): Promise<ClaimRecord> {
    const approved = {
      version: 1,
      adapter: 'books',
      registration: { profile: 'net-state', values: 'plain', targets: [] },
      effects: [],
      requires: [],
      watch: [],
      salt: '0'.repeat(32),
    };
    const request = fixtureRequest(context, fixtureLicense(name), fixtureExecution(name));
    const result = await store.claim({ ...request, approvedText: canonical(approved) });
    assert.equal(result.kind, 'claimed');
    return (result as Extract<typeof result, { kind: 'claimed' }>).claim.record;
  }
});
