// Goal: an adapter serves the database that it was opened on, and no other that takes its name
// while it is open. Method: a real runtime; a copy of the database is put in its place, as a
// restore does, and a license of before is presented.
import assert from 'node:assert/strict';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { planProvisioning } from '../../../src/adapters/postgres/index.ts';
import type { Step } from '../../../src/contract/steps.ts';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import { insert } from '../../../src/protocol/draft.ts';
import type { Terminal } from '../../../src/protocol/terminal.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { protectedDatabase } from '../../postgres/protected.ts';
import { sharedServer } from '../../postgres/server.ts';

const ENTER = { sql: 'insert into entry values (1)' };

/** The attempt ended with a recorded refusal that says where the address leads. */
function assertMoved(terminal: Terminal, at: string): void {
  assert.ok(terminal.kind === 'rejected', JSON.stringify(terminal));
  assert.deepEqual([terminal.at, terminal.reason], [at, 'fault']);
  assert.match(terminal.detail, /another database.*\(ERR_EM_ADAPTER_UNAVAILABLE\)/);
}

test('a license is not executed on a copy that took the place of its database, nor is anything recovered there', async () => {
  await using site = await protectedDatabase('create table entry (id int primary key)', {
    relations: ['entry'],
  });
  await using folder = await mkdtempDisposable(join(tmpdir(), 'effectmatch-moved-'));
  const { issuer, publicKey, privateKey } = generateApprover('ap-team');
  let dies = false;
  const reached = (step: Step) => {
    if (dies && step === 'path:claimed') throw new Error('interrupted');
  };
  await using runtime = await createRuntime(
    {
      store: join(folder.path, 'effectmatch.db'),
      keyring: join(folder.path, 'keys.json'),
      issuers: { [issuer]: { key: publicKey, may: ['books'] } },
      adapters: { books: site.factory() },
    },
    { reached },
  );
  const effects = [insert('entry', { id: 1 })];
  const sign = async (task: string) => {
    const proposal = await runtime.prepare({ adapter: 'books', task, planRevision: 1, effects });
    return await approver({ issuer, privateKey }).sign(proposal, { expiresIn: '10m' });
  };
  const license = await sign('entry');
  const interrupted = await sign('interrupted');
  dies = true;
  await assert.rejects(runtime.execute(interrupted, ENTER), /interrupted/);
  dies = false;

  const { db } = site;
  const server = await sharedServer();
  await using keeper = await server.createDatabase();
  const away = `${db.name}_away`;
  await keeper.run(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '${db.name}'`,
  );
  await keeper.run(`create database ${db.name}_copy template ${db.name}`);
  await keeper.run(`alter database ${db.name} rename to ${away}`);
  await keeper.run(`alter database ${db.name}_copy rename to ${db.name}`);
  try {
    await (await planProvisioning(db.url(), site.options)).apply();
    assertMoved(await runtime.execute(license, ENTER), 'boundary');
    assert.deepEqual(await db.run('select from entry'), []);
    const [left, ...others] = await runtime.recover({ now: true });
    assert.ok(
      left?.kind === 'unresolved' && others.length === 0,
      JSON.stringify([left, ...others]),
    );
    assert.equal(left.task, 'interrupted');
    assert.match(left.why, /another database/);
    assert.deepEqual(await db.run('select from effectmatch.marker'), []);
  } finally {
    await keeper.run(`drop database ${db.name} with (force)`);
    await keeper.run(`alter database ${away} rename to ${db.name}`);
  }
  const [settled] = await runtime.recover({ now: true });
  assert.equal(settled?.kind, 'settled', JSON.stringify(settled));
  assert.deepEqual(await db.run('select disposition from effectmatch.marker'), [
    { disposition: 'void' },
  ]);
});

test('nor is it executed where only the address of the execution login leads to a copy', async () => {
  await using site = await protectedDatabase('create table entry (id int primary key)', {
    relations: ['entry'],
  });
  await using folder = await mkdtempDisposable(join(tmpdir(), 'effectmatch-moved-'));
  const { db } = site;
  const [control, user] = [db.role('em_control'), db.role('em_exec')];
  const { host, port, createDatabase } = await sharedServer();
  await using copy = await createDatabase(`${db.name}_copy`, { template: db.name });
  const there = { control: copy.url(control), execution: copy.url(user) };
  await (await planProvisioning(copy.url(), { ...site.options, ...there })).apply();
  let database = db.name;
  const execution = {
    ...{ host, port, user },
    get database() {
      return database;
    },
  };
  const { issuer, publicKey, privateKey } = generateApprover('ap-team');
  await using runtime = await createRuntime({
    store: join(folder.path, 'effectmatch.db'),
    keyring: join(folder.path, 'keys.json'),
    issuers: { [issuer]: { key: publicKey, may: ['books'] } },
    adapters: { books: site.factory({ execution }) },
  });
  const effects = [insert('entry', { id: 1 })];
  const proposal = await runtime.prepare({
    adapter: 'books',
    task: 'entry',
    planRevision: 1,
    effects,
  });
  const license = approver({ issuer, privateKey }).sign(proposal, { expiresIn: '10m' });
  database = copy.name;
  await db.run('select pg_terminate_backend(pid, 5000) from pg_stat_activity where usename = $1', [
    user,
  ]);
  assertMoved(await runtime.execute(license, ENTER), 'stage');
  assert.deepEqual(await copy.run('select from entry'), []);
  assert.deepEqual(await db.run('select from entry'), []);
});
