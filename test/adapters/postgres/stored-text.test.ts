// Goal: where values are stored as digests, no message that the database's own code words gets into
// the ledger. Method: triggers that raise a secret under codes of all kinds, ours included; the
// ledger's files are searched as bytes.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { approver, createRuntime, generateApprover, update } from '../../../src/index.ts';
import { protectedDatabase } from '../../postgres/protected.ts';

const SECRET = 'Zwetschgenkuchen';
const CODES = ['EM001', 'EM003', 'EM007', 'P0001', '23505', '40001', '42501', '57014'];

const SCHEMA = `
  create table patient (id int primary key, ward text not null, name text not null);
  insert into patient values (1, 'A', '${SECRET}');
  create table code (id int primary key, code text not null);
  insert into code values (1, 'P0001');
  create function tell() returns trigger language plpgsql as $$ begin
    raise exception using errcode = (select code from code), message = 'EffectMatch: ' || new.name, hint = new.name;
  end $$;
  create trigger tell after update on patient for each row execute function tell();
`;

test('no code by which a trigger raises a value brings that value into the ledger', async () => {
  await using site = await protectedDatabase(SCHEMA, {
    relations: ['patient', 'code'],
    values: 'digest',
  });
  await using folder = await mkdtempDisposable(join(tmpdir(), 'effectmatch-stored-'));
  const { issuer, publicKey, privateKey } = generateApprover('ward-team');
  await using runtime = await createRuntime({
    store: join(folder.path, 'ledger.db'),
    keyring: join(folder.path, 'keys.json'),
    issuers: { [issuer]: { key: publicKey, may: ['clinic'] } },
    adapters: { clinic: site.factory() },
    restageMs: 100,
  });
  const effects = [update('patient', { id: 1 }, { ward: ['A', 'B'] })];
  const action = { sql: "update patient set ward = 'B' where id = 1" };
  for (const code of CODES) {
    await site.db.run('update code set code = $1', [code]);
    const proposal = await runtime.prepare({
      adapter: 'clinic',
      task: 'move',
      planRevision: 1,
      effects,
    });
    const license = approver({ issuer, privateKey }).sign(proposal, { expiresIn: '10m' });
    assert.equal((await runtime.shadow(license, action)).record.would, 'reject');
    const terminal = await runtime.execute(license, action);
    assert.equal(terminal.kind === 'rejected' && terminal.at, 'stage');
    assert.doesNotMatch(JSON.stringify(terminal), new RegExp(SECRET), code);
  }
  const files = readdirSync(folder.path).filter((name) => name.startsWith('ledger.db'));
  const stored = files.map((name) => readFileSync(join(folder.path, name), 'latin1')).join('');
  assert.match(stored, /rejected/, 'there is something to search');
  assert.doesNotMatch(stored, new RegExp(SECRET));
});
