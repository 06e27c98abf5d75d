// Goal: rows are found by exactly the keys that are asked for, one by one and in runs, and images
// have the same id exactly if their keys are stored equally. Method: a real server; images by hand.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MysqlConnection } from '../../../src/adapters/mysql/connection.ts';
import type { TracedRelation } from '../../../src/adapters/mysql/observation.ts';
import { readImages } from '../../../src/adapters/mysql/reading.ts';
import { idOf, isSameImage, openImage } from '../../../src/adapters/mysql/row-image.ts';
import type { Row } from '../../../src/protocol/value.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { freshDatabase } from '../../mysql/server.ts';

const T = {
  target: 't',
  key: ['id'],
  columns: [{ name: 'id', kind: 'integer' }],
} as const satisfies TracedRelation;
const PAIR: TracedRelation = {
  target: 'pair',
  key: ['a', 'b'],
  columns: [
    { name: 'v', kind: 'text' },
    { name: 'a', kind: 'text' },
    { name: 'b', kind: 'text' },
  ],
};

test('ids tell keys apart, and not the other columns', () => {
  const id = (image: string) => idOf(PAIR, Buffer.from(image));
  assert.equal(id('1:x1:a2:bc'), id('-1:a2:bc'));
  assert.notEqual(id('-1:a2:bc'), id('-2:ab1:c'));
  assert.notEqual(id('--1:a'), id('-1:--'));
  assert.notEqual(idOf(T, Buffer.from('1:1')), idOf({ ...T, target: 's' }, Buffer.from('1:1')));
  assert.notEqual(id('1:x1:a2:bc'), id('unreadable'));
});

test('images are the same row if their bytes or their values are', () => {
  const open = (text: string) => openImage(T, Buffer.from(text));
  assert.ok(isSameImage(open('1:7'), open('1:7')));
  assert.ok(isSameImage(open('1:7'), open('3:007')));
  assert.ok(!isSameImage(open('1:7'), open('1:8')));
  assert.ok(isSameImage(null, null));
  assert.ok(!isSameImage(open('1:7'), null) && !isSameImage(null, open('1:7')));
});

test('one statement asks for at most 900 keys, of as many relations as there are', async () => {
  const asked: number[] = [];
  const query = async (sql: string) => {
    asked.push(sql.match(/union all/g)?.length ?? 0);
    return [];
  };
  const place = { connection: { query } as unknown as MysqlConnection, database: 'd' };
  const ask = async (...counts: readonly number[]) => {
    asked.length = 0;
    const wanted = counts.map((count) => ({
      relation: PAIR,
      keys: Array.from({ length: count }, (_, index) => ({ a: String(index), b: 'b' })),
    }));
    await readImages(place, wanted);
    return asked;
  };
  assert.deepEqual(await ask(1, 2, 3), [2]);
  assert.deepEqual(await ask(900), [0]);
  assert.deepEqual(await ask(450, 450), [1]);
  assert.deepEqual(await ask(500, 500), [1, 0]);
  assert.deepEqual(await ask(901), [0, 0]);
});

/** The statement that asks for rows with these keys. */
async function askedFor(relation: TracedRelation, keys: readonly Row[]): Promise<string> {
  const asked: string[] = [];
  const query = async (sql: string) => {
    asked.push(sql);
    return [];
  };
  const place = { connection: { query } as unknown as MysqlConnection, database: 'd' };
  await readImages(place, [{ relation, keys }]);
  assert.equal(asked.length, 1);
  return asked[0] ?? '';
}

test('many keys of two integer columns, or of a column of texts, are listed', async () => {
  const columns = ['a', 'b'].map((name) => ({ name, kind: 'integer' }) as const);
  const keys = Array.from({ length: 200 }, (_, a) => ({ a, b: 7 }));
  const pairs = await askedFor({ target: 'p', key: ['a', 'b'], columns }, keys);
  assert.match(pairs, /in \(\(0, 7\), \(1, 7\)/);
  assert.doesNotMatch(pairs, /between/);
  const texts = Array.from({ length: 200 }, (_, a) => ({ a: `no ${a}` }));
  const named = { target: 'n', key: ['a'], columns: [{ name: 'a', kind: 'text' }] } as const;
  const asked = await askedFor(named, texts);
  assert.equal(asked.match(/_utf8mb4 x'/g)?.length, 200);
  assert.doesNotMatch(asked, /between/);
});

test('a key is asked for as its column takes it', async () => {
  const columns = [{ name: 'at', kind: 'timestamp' } as const];
  const keys = [{ at: '2026-01-02T03:04:05Z' }];
  const asked = await askedFor({ target: 's', key: ['at'], columns }, keys);
  const plain = Buffer.from('2026-01-02T03:04:05').toString('hex');
  assert.ok(asked.includes(`in ((_utf8mb4 x'${plain}'))`), 'MariaDB takes no zone');
});

describe('MariaDB: reading rows', { skip: skipWithoutMariadb() }, () => {
  test('many integer keys are found in runs and one by one, and no others', async () => {
    await using db = await freshDatabase();
    await db.run(
      'create table t (id bigint primary key); insert into t select cast(seq as signed) - 5 from seq_0_to_5000',
    );
    await using connection = await MysqlConnection.open(db.url(), 10_000);
    const sent: string[] = [];
    const query = (sql: string) => {
      sent.push(sql);
      return connection.query(sql);
    };
    const place = { connection: { query } as MysqlConnection, database: db.name };
    const runs = [-7, -3, -2, -1, 0, 1, 9, 4994, 4995, 4996];
    const gaps = Array.from({ length: 2000 }, (_, index) => 11 + 2 * index);
    for (const wanted of [runs, gaps, [...runs, ...gaps].toReversed()]) {
      const keys = wanted.map((id) => ({ id }));
      const found = await readImages(place, [{ relation: T, keys }]);
      const stored = wanted.filter((id) => id >= -5 && id <= 4995);
      const images = stored.map((id) => `${String(id).length}:${id}`).sort();
      assert.deepEqual([...found.values()].map(String).sort(), images);
    }
    // Of few keys each is listed. Of many, only those without a neighbour; runs are ranges.
    const conditions = sent.map((sql) => /where (.*)\)$/s.exec(sql)?.[1] ?? '');
    const ranges = conditions.map((text) => text.match(/between -?\d+ and -?\d+/g) ?? []);
    assert.equal(ranges[0]?.length, 0);
    const [all, listed] = [ranges.flat(), conditions.slice(1).join(' ')];
    assert.deepEqual(all, ['between -3 and 1', 'between 4994 and 4996']);
    assert.match(listed, /in \(.*\(9\), \(11\), \(13\)/s);
    for (const [list] of listed.matchAll(/in \(.*?\)\)/g))
      assert.match(list, /^in \(\(-?\d+\)(?:, \(-?\d+\))*\)$/, 'a run is not in a list');
  });
});
