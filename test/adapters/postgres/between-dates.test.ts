// Goal: a date that was approved as lying between two others is one of the years between them.
// Method: one execution each against a real server; the attacks are dates whose texts lie between
// those of the bounds.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { between, insert } from '../../../src/index.ts';
import { assertCommitted, endingOf, openOffice } from './office.ts';

const SCHEMA =
  'create table due (id integer primary key, day date, at timestamptz, plain timestamp)';
const YEAR = between('2024-01-01', '2025-01-01');

test('dates beyond the year 9999 or before Christ do not lie between dates of our time', async () => {
  await using office = await openOffice(SCHEMA, { relations: ['due'] });
  const run = async (column: string, value: string, cell = YEAR) =>
    await office.run([insert('due', { id: 1, day: null, at: null, plain: null, [column]: cell })], {
      sql: `insert into due (id, ${column}) values (1, '${value}')`,
    });
  for (const column of ['day', 'at', 'plain']) {
    for (const value of ['20240-06-01', '2024-06-01 BC', 'infinity'])
      assert.equal(
        endingOf(await run(column, value)),
        'rejected diverged: DIVERGED',
        `${column} ${value}`,
      );
  }
  const later = between('2024-01-01', 'infinity');
  assert.equal(endingOf(await run('day', '2024-06-01 BC', later)), 'rejected diverged: DIVERGED');
  const past = between('1 Jan 2024 BC', '2 Jan 2024 BC');
  await assert.rejects(run('day', '2024-01-01 BC', past), {
    code: 'ERR_EM_MANIFEST_INVALID',
    message: /0001 to 9999/,
  });
  assertCommitted(await run('at', '2024-06-01 10:00:00.25+02'));
});
