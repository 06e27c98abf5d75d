// Goal: a rolled-back attempt says which sequences it moved, beside a verdict that claims nothing
// about them. Method: real attempts on a real server; where each sequence stands is asked of the
// server itself, as its superuser.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { EffectMatchError } from '../../../src/errors.ts';
import {
  approver,
  createRuntime,
  generateApprover,
  generated,
  insert,
  renderTerminal,
  update,
} from '../../../src/index.ts';
import { Connection } from '../../../src/postgres/connection.ts';
import { type Residue, storableResidue } from '../../../src/protocol/residue.ts';
import type { TerminalOf } from '../../../src/protocol/terminal.ts';
import { protectedDatabase } from '../../postgres/protected.ts';
import { demandHeld, openPort } from './drive.ts';

const SCHEMA = `
  create table invoice (id serial primary key, note text not null);
  create table plain (id integer primary key, n integer not null);
  create sequence other_seq;
  insert into plain values (1, 1)`;

test('rejected, failed, planned and shadowed inserts report the sequence they moved; others report none', async () => {
  await using place = await protectedDatabase(SCHEMA, { relations: ['invoice', 'plain'] });
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-residue-'));
  const { issuer, publicKey, privateKey } = generateApprover('ap-team');
  try {
    await using runtime = await createRuntime({
      store: join(folder, 'effectmatch.db'),
      keyring: join(folder, 'keys.json'),
      issuers: { [issuer]: { key: publicKey, may: ['books'] } },
      adapters: { books: place.factory() },
    });
    const stands = async (): Promise<string | null> => {
      const [row] = await place.db.run(
        `select pg_sequence_last_value('invoice_id_seq')::text as at`,
      );
      return (row?.at as string | null) ?? null;
    };
    const terms = { adapter: 'books', task: 'residue', planRevision: 1 };
    const sign = async (...effects: Parameters<typeof runtime.prepare>[0]['effects']) =>
      approver({ issuer, privateKey }).sign(await runtime.prepare({ ...terms, effects }), {
        expiresIn: '10m',
      });
    const added = () => sign(insert('invoice', { id: generated('new'), note: 'approved' }));
    const adding = (note: string | null) => ({
      sql: 'insert into invoice (note) values ($1)',
      values: [note],
    });
    const rejected = async (license: unknown, action: unknown, at: string) => {
      const from = await stands();
      const terminal = (await runtime.execute(license, action)) as TerminalOf<'rejected'>;
      assert.deepEqual([terminal.kind, terminal.at], ['rejected', at], terminal.detail);
      const recorded = (await runtime.ledgers.attempts(terminal.occurrence)).at(-1);
      assert.deepEqual(recorded, terminal, 'what is recorded says the same');
      return { terminal, from, to: await stands() };
    };

    const diverged = await rejected(await added(), adding('other'), 'comparison');
    assert.deepEqual([diverged.from, diverged.to], [null, '1'], 'the sequence really moved');
    const residue: Residue[] = [{ kind: 'sequence', name: 'invoice_id_seq', from: null, to: '1' }];
    assert.deepEqual(diverged.terminal.residue, residue);
    assert.match(
      renderTerminal(diverged.terminal),
      /Left behind: sequence .*invoice_id_seq.* moved from its start to 1/,
    );

    const failed = await rejected(await added(), adding(null), 'stage');
    assert.deepEqual([failed.from, failed.to], ['1', '2']);
    assert.deepEqual(failed.terminal.residue, [
      { kind: 'sequence', name: 'invoice_id_seq', from: '1', to: '2' },
    ]);

    const raised = await sign(update('plain', { id: 1 }, { n: [1, 2] }));
    const still = await rejected(
      raised,
      { sql: 'update plain set n = 3 where id = 1' },
      'comparison',
    );
    assert.equal(still.terminal.residue, undefined);
    assert.doesNotMatch(renderTerminal(still.terminal), /Left behind/);
    const stale = await rejected(
      raised,
      { sql: 'update plain set n = 3 where id = 1' },
      'authority',
    );
    assert.equal(stale.terminal.residue, undefined, 'nothing ran');

    let planned: readonly Residue[] = [];
    const from = await stands();
    await runtime.plan(
      { ...terms, action: adding('planned') },
      { onResidue: (moved) => (planned = moved) },
    );
    assert.deepEqual(
      planned,
      [{ kind: 'sequence', name: 'invoice_id_seq', from, to: await stands() }],
      'both runs together',
    );
    await assert.rejects(
      runtime.plan({ ...terms, action: adding(null) }),
      (error: EffectMatchError) => {
        assert.match(
          error.message,
          /rolled back: no data was changed\)\. Left behind: sequence .*invoice_id_seq/,
        );
        assert.doesNotMatch(error.message, /nothing was changed/);
        return true;
      },
    );

    const before = await stands();
    const { record } = await runtime.shadow(await added(), adding('approved'));
    assert.equal(record.would, 'commit');
    assert.deepEqual(record.residue, [
      { kind: 'sequence', name: 'invoice_id_seq', from: before, to: await stands() },
    ]);
    const drawn = await stands();
    const committed = await runtime.execute(await added(), adding('approved'));
    assert.ok(committed.kind === 'committed');
    const moved = [{ kind: 'sequence', name: 'invoice_id_seq', from: drawn, to: await stands() }];
    assert.deepEqual(committed.residue, moved, 'a commit says it too');
    assert.equal((await runtime.verifyJournal()).kind, 'intact');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('another sequence cannot be named by an action, opens the boundary when it is granted, and is reported where it can be read', async () => {
  const draw = `create function draw() returns void language sql security definer as
    $$ insert into public.plain select nextval('public.other_seq')::integer + 100, 1 $$`;
  await using port = await openPort(`${SCHEMA}; ${draw}`, {
    relations: ['invoice', 'plain'],
    entryPoints: ['draw'],
  });
  const stands = async () =>
    (await port.db.run(`select pg_sequence_last_value('other_seq')::text as at`))[0]?.at;
  const nextval = { sql: "insert into plain values (nextval('other_seq'), 1)" };
  await assert.rejects(
    port.hold(nextval),
    /nextval\(\) is not admitted: it acts outside the transaction/,
  );
  assert.equal(await stands(), null);
  await port.db.run(`grant usage on sequence other_seq to "${port.db.role('em_exec')}"`);
  const open = (await port.adapter.survey()).outlets.filter(
    ({ disposition }) => disposition === 'unclassified',
  );
  assert.ok(
    open.some(({ outlet, by }) => /other_seq/.test(outlet + by)),
    JSON.stringify(open),
  );
  await port.db.run(`revoke usage on sequence other_seq from "${port.db.role('em_exec')}"`);

  await port.adapter.survey();
  const unread = demandHeld(await port.hold({ call: 'draw', values: [] }));
  await unread.stage.discard();
  assert.deepEqual(
    unread.evidence.residue,
    [],
    'the stated limit: rights that a routine lends, on what we may not read',
  );
  assert.equal(await stands(), '1');
  await port.db.run(`grant select on sequence other_seq to "${port.db.role('em_owner')}"`);
  await port.adapter.survey();
  const read = demandHeld(await port.hold({ call: 'draw', values: [] }));
  await read.stage.discard();
  assert.deepEqual(read.evidence.residue, [
    { kind: 'sequence', name: 'other_seq', from: '1', to: '2' },
  ]);
});

test('where values are not stored, positions are not either', () => {
  const residue: Residue[] = [{ kind: 'sequence', name: 'invoice_id_seq', from: '41', to: '42' }];
  assert.deepEqual(storableResidue(residue, 'plain'), residue);
  assert.deepEqual(storableResidue(residue, 'digest'), [
    { kind: 'sequence', name: 'invoice_id_seq' },
  ]);
});

test('a sequence that only others moved meanwhile is not reported', async () => {
  await using port = await openPort(SCHEMA, { relations: ['invoice', 'plain'] });
  await using other = await Connection.open(port.db.url(), 'test');
  await other.script('begin; select from plain where id = 1 for update');
  const holding = port.hold({ sql: 'update plain set n = 2 where id = 1' });
  const waits = `select from pg_stat_activity where wait_event_type = 'Lock' and usename = $1`;
  while ((await port.db.run(waits, [port.db.role('em_exec')])).length === 0) await setTimeout(20);
  await other.script(`select nextval('invoice_id_seq'); commit`);
  const { evidence, stage } = demandHeld(await holding);
  assert.deepEqual([evidence.records.length, evidence.residue, evidence.drawn], [1, [], []]);
  await stage.discard();
});
