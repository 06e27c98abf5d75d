// Goal: a MariaDB server that is killed at any step of an attempt, or around its COMMIT, costs no
// verdict and no effect. Method: a real server, killed from within the steps of a real runtime; after
// its restart a fresh runtime recovers, and rows, markers and verdicts are compared.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Step } from '../../../src/contract/steps.ts';
import { approver, generateApprover, generated, insert } from '../../../src/index.ts';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { startServer } from '../../mysql/server.ts';

const KEY = generateApprover('approver');
/** When the server dies: at a step, or so many milliseconds after it. */
const MOMENTS: readonly (readonly [step: Step, afterMs?: number])[] = [
  ['path:claimed'],
  ['adapter:stage-opened'],
  ['adapter:action-done'],
  ['path:observed'],
  ['path:gate-passed'],
  ['adapter:marker-written'],
  ['adapter:marker-written', 0],
  ['adapter:marker-written', 1],
  ['adapter:marker-written', 2],
  ['adapter:marker-written', 4],
  ['adapter:commit-returned'],
];

describe('MariaDB: server killed', { skip: skipWithoutMariadb() }, () => {
  test('at every step and around COMMIT: verdicts and rows agree after recovery', async () => {
    await using server = await startServer();
    const place = await protectedMariadb(
      'create table t (id int auto_increment primary key, v int not null)',
      { relations: ['t'] },
      await server.createDatabase(),
    );
    const ends = new Set<string>();
    for (const [v, [step, afterMs]] of MOMENTS.entries()) {
      let isArmed = false;
      const kill = () => {
        if (server.pid !== undefined) process.kill(server.pid, 'SIGKILL');
      };
      const reached = (now: Step) => {
        if (!isArmed || now !== step) return;
        isArmed = false;
        if (afterMs === undefined) kill();
        else setTimeout(kill, afterMs);
      };
      const store = temporaryLedgers();
      const config = {
        store,
        keyring: testKeyring(),
        issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
        adapters: { db: place.factory() },
      };
      const runtime = await createRuntime(config, { reached });
      const effects = [insert('t', { id: generated('new'), v })];
      const task = { adapter: 'db', task: `kill ${v}`, planRevision: 1, effects };
      const license = approver(KEY).sign(await runtime.prepare(task), { expiresIn: '10m' });
      isArmed = true;
      const action = { sql: 'insert into t (v) values (?)', values: [v] };
      const told = await runtime.execute(license, action).then(
        ({ kind }) => kind,
        () => 'fault',
      );
      await runtime.close().catch(() => {});
      await server.kill();
      await server.restart();

      const fresh = await createRuntime(config);
      await fresh.recover({ now: true });
      const verdict = await fresh.ensure(license, action);
      await fresh.close();
      const rows = await place.db.run(`select count(*) as n from t where v = ${v}`);
      const where = `${step} ${afterMs ?? ''}: told ${told}, settled ${verdict.kind}`;
      assert.equal(rows[0]?.n, verdict.kind === 'committed' ? 1 : 0, where);
      if (told === 'committed') assert.equal(verdict.kind, 'committed', where);
      if (told === 'rejected') assert.equal(verdict.kind, 'rejected', where);
      ends.add(verdict.kind);
    }
    assert.deepEqual(await place.db.run(`select occurrence from ${place.control}.stage`), []);
    assert.deepEqual([...ends].sort(), ['committed', 'rejected']);
  });
});
