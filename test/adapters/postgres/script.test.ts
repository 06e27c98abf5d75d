// Goal: a script runs as the statements that PostgreSQL's own grammar finds in it, in one
// candidate, and is the same action as their list. Method: texts with semicolons that end nothing,
// through a whole runtime on a real server.
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { describeAction, parseAction } from '../../../src/adapters/postgres/action.ts';
import { loadGate, type StatementGate } from '../../../src/adapters/postgres/statement-gate.ts';
import { insert, update } from '../../../src/index.ts';
import { protectedDatabase } from '../../postgres/protected.ts';
import { runApproved, tellEnd } from './approve.ts';

let gate: StatementGate;
before(async () => {
  gate = await loadGate();
});
const parse = (action: unknown) => parseAction({ gate, entries: new Map() }, action);

const SCRIPT = `-- pays; nothing else
update invoice set status = 'paid; in full' where id = 1;
/* a note; with a /* nested; */ comment */
insert into note values (1, $text$it's; $$ paid $$;$text$), (2, E'a\\';b');`;

test('a script with strings, dollar quotes and comments commits as one action', async () => {
  await using place = await protectedDatabase(
    `create table invoice (id integer primary key, status text);
     create table note (id integer primary key, text text);
     insert into invoice values (1, 'pending')`,
    { relations: ['invoice', 'note'] },
  );
  const effects = [
    update('invoice', { id: 1 }, { status: ['pending', 'paid; in full'] }),
    insert('note', { id: 1, text: "it's; $$ paid $$;" }),
    insert('note', { id: 2, text: "a';b" }),
  ];
  const terminal = await runApproved(place, { effects, action: { script: SCRIPT } });
  assert.equal(tellEnd(terminal), 'committed');
});

test('a script is the same action as the list of its statements', () => {
  const found = gate.split(SCRIPT);
  const statements = found.kind === 'script' ? found.statements.map((sql) => ({ sql })) : [];
  assert.equal(statements.length, 2);
  assert.deepEqual(
    describeAction(parse({ script: SCRIPT })),
    describeAction(parse({ statements })),
  );
});

for (const [script, message] of [
  ['begin; select 1; commit', /^statement 1: BEGIN is not admitted/],
  ['select 1; set role postgres', /^statement 2: SET is not admitted/],
  ['select $1', /^statement 1: the statement takes 1 value, but 0 were given/],
  ["select 'open", /^script: it cannot be parsed/],
  ['-- nothing', /^the script has no statement/],
  ['\n', /^script: sql must be a string with statements/],
] as const) {
  test(`refuses: ${JSON.stringify(script)}`, () => {
    assert.throws(() => parse({ script }), { code: 'ERR_EM_ACTION_INVALID', message });
  });
}
