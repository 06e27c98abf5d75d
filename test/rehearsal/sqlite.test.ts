// Goal: an approved rehearsal either reproduces exactly or is refused; nothing commits that the
// approver did not see. Method: random operations on real SQLite with triggers, clocks, sequences,
// chance and other writers in between; an independent connection and an oracle of our own compare
// what became durable with what was shown.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EffectMatchError } from '../../src/errors.ts';
import { actionOf, countMarkers, openOffice, readRows } from './office.ts';
import { compareRows, isWhatWasShown } from './oracle.ts';

const TRIGGERS = {
  logs: `create trigger logs after insert on item begin
    insert into log (item, at, note) values (new.id, unixepoch('now', 'subsec'), 'new item'); end;`,
  stocks: `create trigger stocks after insert on item begin update stock set qty = qty - new.qty where id = 1; end;`,
  counts: `create trigger counts after update on stock when (select count(*) from log) % 2 = 0 begin
    insert into log (note) values ('even'); end;`,
  dice: `create trigger dice after update on stock when new.id = 2 begin
    update item set token = abs(random() % 3) where id = 21; end;`,
  sweeps: `create trigger sweeps after delete on log begin update stock set qty = qty + 1 where id = 3; end;`,
};
const STATEMENTS = [
  "insert into item (name) values ('a')",
  "insert into item (name, qty) values ('b', 2), ('c', 3)",
  "insert into item (name, qty, made) values ('d', 5, '2021-05-05 05:05:05')",
  "insert into item (name, token) values ('e', random())",
  "insert into item (name, token) values ('f', abs(random() % 2))",
  "insert into log (item, note) values (last_insert_rowid(), 'ref')",
  'insert into log (item) select max(id) from item',
  "insert into log (at, note) values (unixepoch('now'), strftime('%Y', 'now'))",
  'update stock set qty = qty - 1 where id = 1',
  'update stock set qty = qty * 2 where id = 2',
  "update item set made = datetime('now') where id = 21",
  'update stock set qty = (select count(*) from log) where id = 3',
  'delete from log where id = 7',
  'delete from stock where id = 2',
];
const DISTURBANCES = [
  '',
  '',
  "insert into item (name) values ('other')",
  "insert into log (note) values ('other')",
  'update stock set qty = qty + 1',
  'delete from item where id = 21',
  "update item set qty = 9, name = 'changed' where id = 21",
];

test('property: an approved rehearsal reproduces exactly what was shown, or is refused', {
  timeout: 120_000,
}, async () => {
  const tally = { unplannable: 0, committed: 0, committedAfterChange: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.subarray(Object.values(TRIGGERS)),
      fc.array(fc.constantFrom(...STATEMENTS), { minLength: 1, maxLength: 3 }),
      fc.constantFrom(...DISTURBANCES),
      async (triggers, sql, disturbance) => {
        await using office = await openOffice(triggers.join('\n'));
        const untouched = readRows(office.file);
        const proposal = await office.plan(sql).catch((error: unknown) => {
          assert.ok(error instanceof EffectMatchError, String(error));
          assert.equal(error.code, 'ERR_EM_REHEARSAL_REFUSED', error.message);
          return undefined;
        });
        assert.deepEqual(readRows(office.file), untouched, 'a rehearsal leaves nothing');
        assert.equal(countMarkers(office.file), 0);
        if (proposal === undefined) {
          tally.unplannable += 1;
          return;
        }
        assert.equal(proposal.draft.source, 'rehearsed');
        const license = office.sign(proposal);
        if (disturbance !== '') office.change(disturbance);
        const before = readRows(office.file);
        const fromMs = Date.now();
        const terminal = await office.runtime.execute(license, actionOf(sql));
        const after = readRows(office.file);
        if (terminal.kind !== 'committed') {
          assert.equal(terminal.kind, 'rejected');
          assert.deepEqual(after, before);
          if (disturbance === '' && !/random/.test(`${sql} ${triggers}`)) {
            assert.fail(
              `an honest second run was refused: ${JSON.stringify(terminal)}\n${proposal.rendering}`,
            );
          }
          tally.refused += 1;
          return;
        }
        tally.committed += 1;
        if (disturbance !== '') tally.committedAfterChange += 1;
        const found = compareRows(before, after);
        const shown = isWhatWasShown(proposal.approved.effects, found, {
          fromMs,
          toMs: Date.now(),
        });
        assert.ok(shown, `shown:\n${proposal.rendering}\nfound: ${JSON.stringify(found)}`);
      },
    ),
    { numRuns: 120 },
  );
  const { unplannable, committed, committedAfterChange, refused } = tally;
  assert.ok(
    committed > 5 && unplannable > 0 && refused > 0 && committedAfterChange > 0,
    JSON.stringify(tally),
  );
});

test('identifiers that SQLite assigns are shown as generated, and what refers to them follows', async () => {
  await using office = await openOffice(TRIGGERS.logs);
  const proposal = await office.plan(["insert into item (name, qty) values ('a', 22)"]);
  assert.match(proposal.rendering, /\+ item id=<generated "new item.id 1">/);
  assert.match(
    proposal.rendering,
    /qty=22/,
    'a value of the row itself that happens to be equal stays what it is',
  );
  assert.match(proposal.rendering, /made=<now within 1s>/);
  assert.match(
    proposal.rendering,
    /\+ log id=<generated "new log.id 1">.*item=<generated "new item.id 1">/,
  );
  assert.match(proposal.rendering, /at=<now within 1s, in seconds>/);
  office.change("insert into item (name) values ('other'), ('others')");
  const terminal = await office.runtime.execute(
    office.sign(proposal),
    actionOf(["insert into item (name, qty) values ('a', 22)"]),
  );
  assert.equal(terminal.kind, 'committed', JSON.stringify(terminal));
});

test('a value that chance decides is refused, and the cell is named', async () => {
  await using office = await openOffice();
  await assert.rejects(office.plan(["insert into item (name, token) values ('x', random())"]), {
    code: 'ERR_EM_REHEARSAL_REFUSED',
    message: /insert "item", column "token": -?\d+ in the first rehearsal, -?\d+ in the second/,
  });
});

test('an action that fails is refused with its own error', async () => {
  await using office = await openOffice();
  const before = readRows(office.file);
  await assert.rejects(
    office.plan(['insert into stock (id, qty) values (9, 1)', 'insert into stock (id) values (1)']),
    {
      code: 'ERR_EM_REHEARSAL_REFUSED',
    },
  );
  await assert.rejects(office.plan(['create table t (x)']), { code: 'ERR_EM_REHEARSAL_REFUSED' });
  assert.deepEqual(readRows(office.file), before);
});

test('another action with the same outcome is refused: the approver was shown this one', async () => {
  await using office = await openOffice();
  const license = office.sign(await office.plan(['update stock set qty = 1 where id = 1']));
  const terminal = await office.runtime.execute(
    license,
    actionOf(['update stock set qty = 1 where id < 2']),
  );
  assert.equal(terminal.kind === 'rejected' && terminal.reason, 'other-action');
  assert.match(terminal.kind === 'rejected' ? terminal.detail : '', /it tried: .*where id < 2/);
});

test('a row touched only where nothing is compared cannot be approved, so its rehearsal is refused', async () => {
  await using office = await openOffice('', ['made', 'token']);
  await assert.rejects(office.plan(['update item set token = 5 where id = 21']), {
    code: 'ERR_EM_REHEARSAL_REFUSED',
    message: /cannot be approved as a whole[\s\S]*extra[\s\S]*item id=21/,
  });
  const sql = ["update item set token = random(), name = 'seen' where id = 21"];
  const proposal = await office.plan(sql);
  assert.match(proposal.rendering, /name: "old" -> "seen"\n/);
  assert.match(proposal.rendering, /Not compared: item.made, item.token/);
  assert.equal(
    (await office.runtime.execute(office.sign(proposal), actionOf(sql))).kind,
    'committed',
  );
});

test('where values are not stored, what cannot be approved is refused without them', async () => {
  await using office = await openOffice('', ['made', 'token'], 'digest');
  await assert.rejects(
    office.plan(['update item set token = 987654321 where id = 21']),
    (error: Error) => {
      assert.match(error.message, /cannot be approved as a whole/);
      assert.doesNotMatch(error.message, /987654321|extra/);
      return true;
    },
  );
});

test('an identifier that the action chose is shown as it is, however much else the action writes', async () => {
  await using office = await openOffice();
  const writing = (id: string) => [
    'update stock set qty = qty + 1',
    `insert into item (id, name, made) values (${id}, 'x', '2020-01-01')`,
  ];
  assert.match((await office.plan(writing('24'))).rendering, /\+ item id=24 /);
  assert.match(
    (await office.plan(writing('null'))).rendering,
    /\+ item id=<generated "new item.id 1"> /,
  );
});

test('rehearsals that take too long to compare are refused with that reason', async () => {
  await using office = await openOffice();
  const rows = 'with recursive c (i) as (select 1 union all select i + 1 from c where i < 1000)';
  const alike = `${rows} insert into item (name, made) select 'same', '2020-01-01' from c`;
  await assert.rejects(
    office.plan([alike, 'insert into log (item) select id from item where id > 21']),
    {
      code: 'ERR_EM_REHEARSAL_REFUSED',
      message: /cannot be approved as a whole: Comparison was given up/,
    },
  );
});

test('an action without effect can be planned, approved and reproduced', async () => {
  await using office = await openOffice();
  const license = office.sign(await office.plan(['update stock set qty = 1 where id = 99']));
  const terminal = await office.runtime.execute(
    license,
    actionOf(['update stock set qty = 1 where id = 99']),
  );
  assert.equal(terminal.kind, 'committed');
});
