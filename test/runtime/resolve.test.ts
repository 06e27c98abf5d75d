// Goal: what nobody could establish is closed by a signed act of a known operator, and by nothing
// else; it sends nothing and releases nothing. Method: a payment whose connection is cut before
// anything was done, resolved by right and wrong hands, through the runtime and through the real
// command.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { generateApprover, saveApproverKey } from '../../src/crypto/approver.ts';
import type { Decision } from '../../src/crypto/decision.ts';
import { signResolution } from '../../src/crypto/signed-decision.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { openRig, type Rig } from '../adapters/http/rig.ts';
import { runCommand } from '../cli/command.ts';
import { testKeyring } from '../keyring.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import {
  MemoryBackend,
  memoryAdapter,
  PROBE_TARGET,
  WORLD_TARGETS,
  type World,
} from '../world/world.ts';
import {
  claimedOccurrence,
  deploy,
  interrupt,
  invoiceWorld,
  LEASE_MS,
  ofKind,
  once,
  onlyOne,
  PAY,
} from './deploy.ts';

const operator = generateApprover('night-shift');
const stranger = generateApprover('night-shift');
const operators = { 'night-shift': { key: operator.publicKey } };
const EVIDENCE = 'The statement of the bank of today shows no such payment.';

/** A payment that is indeterminate, and the decision that it did not happen. */
async function lose(
  rig: Rig,
): Promise<{ runtime: Runtime; terminal: Terminal; decision: Decision }> {
  const runtime = await rig.start({ operators });
  const license = await rig.approve(runtime);
  rig.faults.arm('drop-before');
  const terminal = await runtime.execute(license, {});
  assert.equal(terminal.kind, 'indeterminate');
  const { occurrence, execution, lineage } = terminal;
  return {
    runtime,
    terminal,
    decision: { occurrence, execution, lineage, finding: 'did-not-happen', evidence: EVIDENCE },
  };
}

const signAs = ({ privateKey }: { readonly privateKey: string }, decision: Decision) =>
  signResolution({ operator: 'night-shift', privateKey }, decision);

test('a resolution closes the question, sends nothing, releases nothing, and leaves the verdict', async () => {
  await using rig = await openRig();
  const { runtime, terminal, decision } = await lose(rig);
  const resolution = signAs(operator, { ...decision, finding: 'happened' });
  assert.deepEqual(await runtime.resolve(resolution, EVIDENCE), resolution);
  assert.deepEqual(await runtime.resolve(resolution, EVIDENCE), resolution);
  assert.equal((await runtime.terminal(terminal.occurrence))?.kind, 'indeterminate');
  assert.deepEqual(await runtime.recover({ now: true }), []);
  const released = await runtime.continuation(terminal, 'book').release(() => 'booked');
  assert.deepEqual(released, { kind: 'halted', why: 'indeterminate' });
  assert.equal(rig.account.arrivals.get(terminal.occurrence), 1);
  assert.equal(await runtime.ledgers.document(resolution.evidence), EVIDENCE);
  assert.equal((await runtime.verifyJournal()).kind, 'intact');
});

test('strangers, other evidence, altered decisions and second thoughts are refused', async () => {
  await using rig = await openRig();
  const { runtime, decision } = await lose(rig);
  const good = signAs(operator, decision);
  const refused = { code: 'ERR_EM_RESOLUTION_REFUSED' };
  await assert.rejects(runtime.resolve(signAs(stranger, decision), EVIDENCE), refused);
  const unknown = signResolution({ operator: 'nobody', privateKey: operator.privateKey }, decision);
  await assert.rejects(runtime.resolve(unknown, EVIDENCE), refused);
  await assert.rejects(runtime.resolve(good, 'something else'), refused);
  await assert.rejects(runtime.resolve({ ...good, finding: 'happened' }, EVIDENCE), refused);
  await assert.rejects(runtime.resolve({ ...good, more: true }, EVIDENCE), {
    code: 'ERR_EM_RECORD_INVALID',
  });
  const elsewhere = { ...decision, occurrence: `occ_${'0'.repeat(40)}` as Decision['occurrence'] };
  await assert.rejects(runtime.resolve(signAs(operator, elsewhere), EVIDENCE), refused);
  await assert.rejects(
    runtime.resolve(signAs(operator, { ...decision, evidence: ' ' }), ' '),
    refused,
  );
  assert.equal(await runtime.ledgers.resolution(decision.occurrence), undefined);
  await runtime.resolve(good, EVIDENCE);
  await assert.rejects(
    runtime.resolve(signAs(operator, { ...decision, finding: 'happened' }), EVIDENCE),
    refused,
  );
});

test('what has a verdict is not resolved', async () => {
  await using rig = await openRig();
  const runtime = await rig.start({ operators });
  const { occurrence, execution, lineage, kind } = await runtime.execute(
    await rig.approve(runtime),
    {},
  );
  assert.equal(kind, 'committed');
  const decision = {
    occurrence,
    execution,
    lineage,
    finding: 'did-not-happen' as const,
    evidence: EVIDENCE,
  };
  await assert.rejects(runtime.resolve(signAs(operator, decision), EVIDENCE), /it is committed/);
});

/**
 * A world whose payment was sent by a process that died, and how to decide about it from a fresh
 * one.
 */
async function abandon(values: 'plain' | 'digest') {
  const world = invoiceWorld({ values });
  await interrupt(
    world,
    { kind: 'step', step: 'path:dispatched', ending: 'die' },
    { adapter: 'bank' },
  );
  const fresh = await deploy(world, { operators });
  const occurrence = await claimedOccurrence(fresh.runtime);
  const { record } = (await fresh.runtime.ledgers.holder(occurrence))?.claim ?? assert.fail();
  const { execution, license: lineage } = record;
  const resolve = (evidence: string) =>
    fresh.runtime.resolve(
      signAs(operator, { occurrence, execution, lineage, finding: 'happened', evidence }),
      evidence,
    );
  return { world, fresh, resolve };
}

test('an attempt that may still be running is not resolved, and evidence has its bounds', async () => {
  const { world, fresh, resolve } = await abandon('plain');
  await using _ = fresh;
  const refused = { code: 'ERR_EM_RESOLUTION_REFUSED' };
  world.advance(LEASE_MS - 1);
  await assert.rejects(resolve(EVIDENCE), { ...refused, message: /may still be running/ });
  world.advance(1);
  await assert.rejects(resolve('x'.repeat(1_000_001)), {
    ...refused,
    message: /1 to 1000000 characters/,
  });
  const longest = 'x'.repeat(1_000_000);
  const resolution = await resolve(longest);
  assert.equal(await fresh.runtime.ledgers.document(resolution.evidence), longest);
});

test('an attempt that lives is not resolved, also after it was recovered before its lease had run out', async () => {
  let resolving: Promise<unknown> = Promise.resolve();
  const decide = async () => {
    await using other = await deploy(world, { operators });
    const open = onlyOne(await other.runtime.recover({ now: true }));
    assert.equal(open.kind, 'unresolved');
    const { occurrence, execution, lineage } = ofKind(
      'indeterminate',
      await other.runtime.terminal(open.occurrence),
    );
    const decision = {
      occurrence,
      execution,
      lineage,
      finding: 'did-not-happen' as const,
      evidence: EVIDENCE,
    };
    resolving = other.runtime.resolve(signAs(operator, decision), EVIDENCE);
    await resolving.catch(() => {});
  };
  const world: World = invoiceWorld({ pause: once('adapter.dispatch', decide) });
  await using first = await deploy(world);
  const license = await first.approve({ adapter: 'bank' });
  const terminal = await first.runtime.execute(license, PAY);
  await assert.rejects(resolving, {
    code: 'ERR_EM_RESOLUTION_REFUSED',
    message: /may still be running/,
  });
  ofKind('committed', terminal);
});

test('where values are not stored, evidence is not either', async () => {
  const { world, fresh, resolve } = await abandon('digest');
  await using _ = fresh;
  world.advance(LEASE_MS);
  const resolution = await resolve(EVIDENCE);
  assert.equal(resolution.finding, 'happened');
  assert.equal(await fresh.runtime.ledgers.document(resolution.evidence), undefined);
});

test('the command resolves without any backend, tells so, and show and journal tell it afterwards', async () => {
  await using rig = await openRig();
  const { runtime, terminal } = await lose(rig);
  await runtime.close();
  await rig.service[Symbol.asyncDispose]();
  const path = (name: string) => join(rig.folder, name);
  saveApproverKey(path('operator.key.json'), operator);
  writeFileSync(path('statement.txt'), EVIDENCE);
  const config = { store: 'ledger.db', keyring: 'keys.json', issuers: {}, operators, adapters: {} };
  writeFileSync(path('effectmatch.config.mjs'), `export default ${JSON.stringify(config)};`);
  const call = (...args: string[]) => runCommand(args, { cwd: rig.folder });
  const resolving = ['resolve', terminal.occurrence.slice(0, 14), '--key', 'operator.key.json'];

  assert.equal(
    (await call(...resolving, '--finding', 'perhaps', '--evidence', 'statement.txt')).code,
    1,
  );
  assert.equal(
    (await call(...resolving, '--finding', 'did-not-happen', '--evidence', 'nowhere.txt')).code,
    1,
  );
  const done = await call(
    ...resolving,
    '--finding',
    'did-not-happen',
    '--evidence',
    'statement.txt',
  );
  assert.equal(done.code, 0, done.stderr);
  assert.match(
    done.stdout,
    /^resolved {2}occ_[0-9a-f]{40} {2}did-not-happen, says night-shift\nNothing was sent/,
  );

  const shown = await call('show', terminal.occurrence);
  assert.equal(shown.code, 4);
  assert.match(shown.stdout, /Resolution\n {2}\S+ {2}did-not-happen, says night-shift/);
  const listed = await call('journal', '--kind', 'resolution');
  assert.match(listed.stdout, / resolved +occ_\S+ +pay acme\n +did-not-happen, says night-shift\n/);
  assert.equal((await call('journal', '--verify')).code, 0);
  assert.ok(!readFileSync(path('ledger.db')).includes(operator.privateKey));
});

test('an attempt whose occurrence a machine with another keyring has committed is closed by an operator', async () => {
  const world = invoiceWorld();
  const { license } = await interrupt(world, { kind: 'step', step: 'path:claimed', ending: 'die' });
  const store = temporaryLedgers(world.clock);
  await using other = await deploy(world, { store, keyring: testKeyring() });
  ofKind('committed', await other.runtime.execute(license, PAY));
  world.advance(LEASE_MS);

  await using here = await deploy(world, { operators });
  const open = onlyOne(await here.runtime.recover());
  assert.ok(open.kind === 'unresolved');
  assert.match(open.why, /machines that share a backend share a keyring/);
  const terminal = ofKind('indeterminate', await here.runtime.terminal(open.occurrence));
  assert.match(terminal.gap, /does not verify/);
  assert.equal(onlyOne(await here.runtime.recover()).kind, 'unresolved', 'until somebody decides');
  const { occurrence, execution, lineage } = terminal;
  const evidence = 'The ledger of the other machine has the receipt.';
  const decision = { occurrence, execution, lineage, finding: 'happened' as const, evidence };
  await here.runtime.resolve(signAs(operator, decision), evidence);
  assert.deepEqual(await here.runtime.recover({ now: true }), []);
  assert.equal((await here.runtime.verifyJournal()).kind, 'intact');
});

test('an attempt whose database was replaced by another one is closed by an operator', async () => {
  const world = invoiceWorld();
  await interrupt(world, { kind: 'step', step: 'path:claimed', ending: 'die' });
  world.advance(LEASE_MS);
  const replacement = new MemoryBackend('books-2', [...WORLD_TARGETS, PROBE_TARGET], {});
  const adapters = { books: memoryAdapter(replacement, { values: 'plain' }) };
  const issuers = {
    'ap-team': { ...world.start().config.issuers['ap-team'], may: ['books'] },
  } as never;
  await using here = await deploy(world, { operators, adapters, issuers });
  const open = onlyOne(await here.runtime.recover());
  assert.ok(open.kind === 'unresolved');
  assert.match(open.why, /another backend/);
  const { occurrence, execution, lineage } = ofKind(
    'indeterminate',
    await here.runtime.terminal(open.occurrence),
  );
  const decision = {
    occurrence,
    execution,
    lineage,
    finding: 'did-not-happen' as const,
    evidence: EVIDENCE,
  };
  await here.runtime.resolve(signAs(operator, decision), EVIDENCE);
  assert.deepEqual(await here.runtime.recover({ now: true }), []);
});
