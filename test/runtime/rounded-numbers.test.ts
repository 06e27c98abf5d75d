// Goal: an integer that JavaScript may have rounded never passes for the one that was meant, and
// costs no license. Method: every way into the system is given 2^53 and above; what is refused
// leaves the license usable.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { z } from 'zod';
import { parseAction as parseSnapshot } from '../../src/adapters/snapshot/action.ts';
import { snapshot } from '../../src/adapters/snapshot/index.ts';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { plainSchema } from '../../src/backend/manifest-schema.ts';
import { normaliseManifest } from '../../src/backend/normalise.ts';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import {
  between,
  draftManifest,
  insert,
  oneOf,
  real,
  row,
  to,
  update,
} from '../../src/protocol/draft.ts';
import { defineOperation } from '../../src/runtime/operation.ts';
import { parseInput } from '../../src/runtime/propose.ts';
import { createRuntime } from '../../src/runtime/runtime.ts';
import { toolModule } from '../adapters/snapshot/tool-module.ts';
import { ofKind } from './deploy.ts';

const folder = mkdtempSync(join(tmpdir(), 'effectmatch-rounded-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const ROUNDED = [2 ** 53, -(2 ** 53), 2 ** 53 + 2, 1e20, 1e300];

test('effects, constraints and requirements refuse numbers beyond 2^53 and name BigInt', () => {
  const refusal = { code: 'ERR_EM_MANIFEST_INVALID', message: /beyond 2\^53.*BigInt.*real/ };
  for (const value of ROUNDED) {
    assert.throws(() => insert('t', { id: value }), refusal);
    assert.throws(() => insert('t', { id: 1, data: { deep: [value] } }), refusal);
    assert.throws(() => update('t', { id: 1 }, { v: [1, value] }), refusal);
    assert.throws(() => update('t', { id: value }, { v: 1 }), refusal);
    assert.throws(() => to(value), refusal);
    assert.throws(() => oneOf(1, value), refusal);
    assert.throws(() => between(0, value), refusal);
    assert.throws(() => row('t', { id: value }, { v: 1 }), refusal);
  }
  for (const value of [2 ** 53 - 1, -(2 ** 53) + 1, 2n ** 53n, 1.5, 0.1 + 0.2])
    insert('t', { id: value });
});

test('real() states a floating-point number of any size', () => {
  const target = { name: 't', columns: ['id', 'v'], key: ['id'], volatile: [] };
  const registration = { profile: 'row-event', values: 'plain', targets: [target] } as const;
  const effects = [insert('t', { id: 1, v: real(1e20) })];
  assert.deepEqual(effects[0]?.after, {
    id: { is: 1 },
    v: { is: { $real: '100000000000000000000' } },
  });
  const manifest = draftManifest({ adapter: 'a', task: 't', planRevision: 1, effects });
  // JSON has one kind of number, so this is the number that a service or a document would hold.
  assert.deepEqual(normaliseManifest(plainSchema(registration), manifest).effects[0]?.after, {
    v: { is: 1e20 },
  });
});

test('calls of tools refuse numbers beyond 2^53', () => {
  for (const value of ROUNDED) {
    const action = { calls: [{ tool: 'a', args: { deep: [{ value }] } }] };
    assert.throws(() => parseSnapshot(action, ['a']), {
      code: 'ERR_EM_ACTION_INVALID',
      message: /beyond 2\^53.*BigInt/,
    });
  }
});

async function openBooks() {
  const file = join(folder, 'books.db');
  {
    using db = new DatabaseSync(file);
    db.exec('create table t (id integer primary key, v, r real)');
  }
  const key = generateApprover('desk');
  const book = defineOperation({
    name: 'book',
    adapter: 'books',
    input: z.object({ id: z.union([z.bigint(), z.number()]) }),
    approve: ({ id }) => ({ effects: [insert('t', { id, v: 1 })] }),
    action: ({ id }) => ({ sql: 'insert into t (id, v) values (?, 1)', values: [id] }),
  });
  const runtime = await createRuntime({
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { desk: { key: key.publicKey, may: ['books'] } },
    adapters: { books: sqlite({ file, relations: ['t'] }) },
    operations: { book },
  });
  return { runtime, sign: approver(key), file };
}

test('what is refused for its values or their number spends no license', async () => {
  const { runtime, sign, file } = await openBooks();
  await using _closed = runtime;
  const id = 9007199254740993n;
  const proposal = await runtime.prepare({
    ...{ adapter: 'books', task: 'one', planRevision: 1 },
    effects: [insert('t', { id, v: 'x', r: real(1e20) })],
  });
  const license = await sign.sign(proposal, { expiresIn: '10m' });
  const sql = 'insert into t (id, v, r) values (?, ?, ?)';
  for (const values of [
    [id, 'x'],
    [id, 'x', 1.5, 2],
    [Number(id), 'x', 1.5],
    [id, 'x', 1e20],
  ]) {
    const refused = ofKind('rejected', await runtime.execute(license, { sql, values }));
    assert.deepEqual([refused.at, refused.reason], ['action', 'action-invalid']);
  }
  ofKind(
    'committed',
    await runtime.execute(license, { sql, values: [id, 'x', { $real: '1e20' }] }),
  );
  using db = new DatabaseSync(file);
  assert.deepEqual(
    { ...db.prepare('select cast(id as text) as id, v, r from t').get() },
    { id: String(id), v: 'x', r: 1e20 },
  );

  const options = { task: 'two', planRevision: 1 };
  for (const rounded of ROUNDED) {
    const refusal = { code: 'ERR_EM_INPUT_INVALID', message: /beyond 2\^53.*BigInt/ };
    await assert.rejects(runtime.propose('book', { id: rounded }, options), refusal);
  }
  await runtime.propose('book', { id: 9007199254740995n }, options);
});

test('a state with a number beyond 2^53 is approved with real()', async () => {
  const adapter = await snapshot({
    file: join(folder, 'state.db'),
    initial: { users: [{ id: 'u', size: 1 }] },
    collections: { users: { path: '/users', key: 'id' } },
    tools: toolModule({}),
  }).open({ name: 'a', clock: { now: () => 0, monotonic: () => 0 }, reached: () => {} });
  const effects = [update('users', { id: 'u' }, { size: [1, real(1e20)] })];
  const manifest = draftManifest({ adapter: 'a', task: 't', planRevision: 1, effects });
  assert.deepEqual((await adapter.normalise(manifest)).effects[0]?.after, { size: { is: 1e20 } });
  await adapter.close();
});

test('a schema neither hides a rounded number nor rounds one', async () => {
  const parse = (input: z.ZodType, untrusted: unknown) =>
    parseInput({ name: 'book', input } as never, untrusted);
  const refusal = { code: 'ERR_EM_INPUT_INVALID', message: /beyond 2\^53/ };
  await assert.rejects(parse(z.number().transform(String), 2 ** 53), refusal);
  await assert.rejects(parse(z.string().transform(Number), '9007199254740993'), refusal);
  assert.equal(await parse(z.number().transform(String), 5), '5');
});
