// Goal: each relation has the recorders that its columns need. Method: their list, without a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { recordersOf } from '../../../src/adapters/mysql/recorders.ts';

const PLACE = { controlDatabase: 'control', execution: 'agent@host' };
const [ID, NOTE] = [
  { name: 'id', kind: 'integer' },
  { name: 'note', kind: 'text' },
] as const;

test('only a relation whose server assigns identifiers records the chosen ones, from that column', () => {
  const plain = recordersOf(PLACE, { target: 't', columns: [NOTE, ID] });
  assert.deepEqual(
    plain.map(({ timing, event }) => `${timing} ${event}`),
    ['AFTER INSERT', 'AFTER UPDATE', 'AFTER DELETE'],
  );
  const assigning = recordersOf(PLACE, {
    target: 't',
    columns: [NOTE, { ...ID, isAssigned: true }],
  });
  assert.equal(assigning.length, 4);
  const chosen = assigning[3];
  assert.equal(`${chosen?.timing} ${chosen?.event}`, 'BEFORE INSERT');
  assert.match(chosen?.body ?? '', /and new\.`id` <> 0 then/);
  assert.doesNotMatch(chosen?.body ?? '', /new\.`note` <> 0/);
});
