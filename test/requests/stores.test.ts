// Goal: requests in PostgreSQL behave like those in a file, also for several processes at once.
// Method: the same random calls on both stores, which must answer alike; then many writers, and a
// whole request next to a ledger on a real server.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { postgresLedgers } from '../../src/ledger/postgres/index.ts';
import type {
  RequestState,
  RequestStore,
  StoredRequest,
  StoredToken,
} from '../../src/requests/index.ts';
import { openSqliteRequests } from '../../src/requests/index.ts';
import { openPostgresRequests } from '../../src/requests/postgres.ts';
import { freshDatabase, type TestDatabase } from '../postgres/server.ts';
import { openOffice, pay } from './office.ts';

let db: TestDatabase;
let url: string;
const folder = mkdtempSync(join(tmpdir(), 'stores-'));
before(async () => {
  db = await freshDatabase();
  url = db.url(db.role('requests_ledger'));
  await (await postgresLedgers(url).provisioning(db.url(), 'provision')).apply();
});
after(async () => {
  await db.drop();
  rmSync(folder, { recursive: true, force: true });
});

const STATES = ['pending', 'approved', 'committed', 'stale', 'declined'] as const;
const IDS = ['req_a', 'req_b', 'req_c'];

function requestOf(id: string, askedMs: number, by: string): StoredRequest {
  return {
    ...{ id, by, askedMs, run: 'r\n"é', adapter: 'books', operation: null, mode: 'on-call' },
    ...{ generation: 1, state: 'pending', expiresMs: askedMs + 5, asked: '{"a":1}' },
    ...{ license: null, occurrence: null, answeredBy: null, decline: null, detail: null },
    results: null,
  };
}

const step = fc.oneof(
  fc.record({
    kind: fc.constant('insert' as const),
    id: fc.constantFrom(...IDS),
    at: fc.integer({ min: 1, max: 3 }),
    by: fc.constantFrom('x', 'y'),
  }),
  fc.record({
    kind: fc.constant('change' as const),
    id: fc.constantFrom(...IDS),
    from: fc.uniqueArray(fc.constantFrom(...STATES), { minLength: 1 }),
    generation: fc.integer({ min: 1, max: 2 }),
    state: fc.constantFrom(...STATES),
    detail: fc.constantFrom(undefined, null, "it's"),
    license: fc.constantFrom(undefined, '{}'),
    unsigned: fc.boolean(),
    asked: fc.constantFrom(undefined, '{"a":1}', '{}'),
    was: fc.constantFrom(undefined, '{"a":1}', '{}'),
  }),
  fc.record({
    kind: fc.constant('renew' as const),
    id: fc.constantFrom(...IDS),
    from: fc.uniqueArray(fc.constantFrom(...STATES), { minLength: 1 }),
    generation: fc.integer({ min: 1, max: 2 }),
  }),
  fc.record({
    kind: fc.constant('list' as const),
    state: fc.option(fc.constantFrom(...STATES), { nil: undefined }),
    by: fc.constantFrom(undefined, 'x'),
    after: fc.constantFrom(undefined, ...IDS),
    before: fc.constantFrom(undefined, 3),
  }),
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

async function take(store: RequestStore, one: Step): Promise<unknown> {
  switch (one.kind) {
    case 'insert':
      return await store.insert(requestOf(one.id, one.at, one.by));
    case 'change': {
      const { id, from, generation, unsigned, state, detail, license, asked, was } = one;
      const more = {
        ...(detail !== undefined && { detail }),
        ...(license && { license }),
        ...(asked && { asked }),
      };
      const only = { from, generation, unsigned, ...(was && { asked: was }) };
      return await store.change(id, only, { state, ...more }, 7);
    }
    case 'renew': {
      const { id, from, generation } = one;
      return await store.renew(id, { from, generation }, { asked: '{}', expiresMs: 99 }, 8);
    }
    case 'list': {
      const { state, by, after: last, before: earlier } = one;
      return await store.list({
        limit: 2,
        ...(state && { state: state as RequestState }),
        ...(by && { by }),
        ...(last && { after: last }),
        ...(earlier && { askedBeforeMs: earlier }),
      });
    }
  }
}

test('both stores answer alike, whatever they are asked', async () => {
  let count = 0;
  const runs = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
    count += 1;
    const tables = 'request, effectmatch_ledger_requests.event';
    await db.run(`truncate effectmatch_ledger_requests.${tables} restart identity`);
    const stores = [
      await openSqliteRequests(join(folder, `${count}.db`)),
      await openPostgresRequests(url),
    ] as const;
    try {
      for (const one of steps) {
        const [file, server] = await Promise.all(stores.map((store) => take(store, one)));
        assert.deepEqual(plain(server), plain(file), JSON.stringify(one));
      }
      const last: ((store: RequestStore) => Promise<unknown>)[] = [
        (store) => store.events(0, 100),
        ...STATES.map((state) => (store: RequestStore) => store.count(state)),
        ...['req_', ...IDS].map((id) => (store: RequestStore) => store.search(id)),
      ];
      for (const ask of last) {
        const [file, server] = await Promise.all(stores.map(ask));
        assert.deepEqual(plain(server), plain(file), String(ask));
      }
    } finally {
      for (const store of stores) await store.close();
    }
  });
  await fc.assert(runs, { numRuns: 25 });
});

const plain = (value: unknown) => JSON.parse(JSON.stringify(value ?? null)) as unknown;

test('of many writers one changes a request, and events appear in the order of their numbers', async () => {
  const stores = await Promise.all(Array.from({ length: 6 }, () => openPostgresRequests(url)));
  const [first] = stores;
  try {
    const ids = Array.from({ length: 20 }, (_, n) => `req_many${n}`);
    const seen: number[] = [];
    const all = (async () => {
      for (const id of ids) {
        await Promise.all(stores.map((store) => store.insert(requestOf(id, 1, 'x'))));
        const only = { from: ['pending'], generation: 1 } as const;
        const change = { state: 'approved', occurrence: `occ_${id}` } as const;
        const won = await Promise.all(stores.map((store) => store.change(id, only, change, 2)));
        assert.equal(won.filter(Boolean).length, 1, id);
      }
    })();
    let isOver = false;
    void all.finally(() => {
      isOver = true;
    });
    // A watcher that only asks for what is new must miss nothing.
    let isLast = false;
    while (!isLast) {
      isLast = isOver;
      for (const { seq, id } of (await first?.events(seen.at(-1) ?? 0, 500)) ?? [])
        if (id.startsWith('req_many')) seen.push(seq);
    }
    await all;
    assert.equal(seen.length, 40);
    const only = { from: ['pending'], generation: 1 } as const;
    await first?.insert(requestOf('req_thief', 1, 'x'));
    const stolen = { state: 'approved', occurrence: 'occ_req_many0' } as const;
    await assert.rejects(async () => await first?.change('req_thief', only, stolen, 2), {
      code: 'ERR_EM_STORE_UNAVAILABLE',
    });
    assert.equal((await first?.find('req_thief'))?.state, 'pending', 'and it goes on');
  } finally {
    for (const store of stores) await store.close();
  }
});

test('a request next to a ledger in PostgreSQL is asked, signed and executed once', async () => {
  using office = openOffice();
  await using host = await office.start({ store: url });
  await using other = await office.start({ store: await openPostgresRequests(url) });
  const { id, proposal } = await host.requests.ask({ by: 'agent', run: 'run', ...pay('globex') });
  await other.requests.answer(id, office.alice.sign(proposal, { expiresIn: '10m' }));
  await Promise.all([host.requests.execute(id), other.requests.execute(id)]);
  assert.equal((await other.requests.get(id)).state, 'committed');
  assert.equal(office.payments().length, 1);
});

test('a database that is not prepared is refused', async () => {
  const opened = openPostgresRequests(url, { schema: 'nowhere' });
  await assert.rejects(opened, { code: 'ERR_EM_STORE_UNAVAILABLE', message: /provision --ledger/ });
});

test('tokens and the delivery log behave alike in both stores', async () => {
  const stores = [
    await openSqliteRequests(join(folder, 'tokens.db')),
    await openPostgresRequests(url),
  ] as const;
  const answers = [];
  for (const store of stores) {
    const token: StoredToken = {
      ...{ id: 'tok_1', digest: 'sha256:1', kind: 'operator', holder: 'carol' },
      ...{ scopes: ['read', 'answer'], createdMs: 1, expiresMs: 100 },
    };
    await store.addToken(token);
    await store.addToken({ ...token, id: 'tok_2', digest: 'sha256:2', createdMs: 2 });
    await assert.rejects(store.addToken({ ...token, id: 'tok_3' }));
    assert.deepEqual({ ...(await store.findToken('sha256:1')) }, token);
    const ended = [await store.endToken('tok_1', 50), await store.endToken('tok_1', 70)];
    assert.deepEqual([...ended, await store.endToken('tok_9', 1)], [true, true, false]);
    const entry = {
      receiver: 'desk',
      seq: 1,
      attempt: 1,
      atMs: 5,
      delivered: false,
      result: '500',
    };
    await store.logDelivery(entry);
    assert.equal(await store.delivered('desk'), 0);
    await store.logDelivery({ ...entry, attempt: 2, delivered: true, result: '204' });
    await store.logDelivery({ ...entry, receiver: 'other', seq: 9, delivered: true });
    await store.logDelivery({ ...entry, receiver: 'late', atMs: 31 * 86_400_000 });
    answers.push({
      tokens: await store.tokens(),
      unknown: await store.findToken('sha256:9'),
      delivered: [await store.delivered('desk'), await store.delivered('nowhere')],
      last: await store.lastDelivery('late'),
      log: await store.deliveries(0, 10),
      none: await store.deliveries(4, 10),
    });
    await store.close();
  }
  const [file, server] = answers.map((answer) => JSON.parse(JSON.stringify(answer)));
  assert.deepEqual(server, file);
  assert.equal(file.tokens[1].expiresMs, 50);
  assert.deepEqual(file.delivered, [1, 0]);
  assert.equal(file.log.length, 1, 'what is older than thirty days is removed');
});

test('a file of the first version is taken over with everything in it', async () => {
  const file = join(folder, 'first.db');
  const old = new DatabaseSync(file);
  old.exec(`create table request (
      id text primary key, generation integer not null, state text not null, by text not null,
      run text not null, adapter text not null, operation text, mode text not null,
      askedMs integer not null, expiresMs integer not null, asked text not null,
      license text, occurrence text unique, answeredBy text, detail text, results text) strict;
    create table event (
      seq integer primary key autoincrement, id text not null, atMs integer not null, state text not null
    ) strict;
    create table delivery (receiver text primary key, seq integer not null) strict;
    insert into request values
      ('req_a', 1, 'pending', 'x', 'r', 'books', null, 'on-call', 1, 2, '{}', null, null, null, null, null);
    insert into event (id, atMs, state) values ('req_a', 1, 'pending');
    insert into delivery values ('desk', 1);
    pragma application_id = ${0x454d5251};
    pragma user_version = 1;`);
  old.close();
  for (const _ of ['taken over', 'opened again']) {
    const store = await openSqliteRequests(file);
    assert.equal((await store.find('req_a'))?.decline, null);
    assert.equal((await store.events(0, 10)).length, 1);
    assert.equal(await store.delivered('desk'), 1);
    assert.deepEqual(await store.tokens(), []);
    await store.close();
  }
});
