// Goal: provisioning needs the right that it names, keeps the application's triggers and their order,
// and removing it leaves what the application and recovery need. Method: a real server, a table with
// triggers of both timings, and administrators with and without the right.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type MysqlOptions, planProvisioning } from '../../../src/adapters/mysql/index.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { freshDatabase } from '../../mysql/server.ts';

const SCHEMA = `create table t (id int auto_increment primary key, v int);
  create trigger early before insert on t for each row set new.v = new.v + 1;
  create trigger late after insert on t for each row set @seen = new.v;
  create trigger changed before update on t for each row set new.v = new.v + 1`;

describe('MariaDB: provisioning', { skip: skipWithoutMariadb() }, () => {
  test('puts recorders before triggers that run after a write, and after those that run before it', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const rows = await place.db.run(
      `select concat(action_timing, ' ', event_manipulation, ' ', trigger_name) as text
        from information_schema.triggers where trigger_schema = database()
        order by action_timing, event_manipulation, action_order`,
    );
    assert.deepEqual(
      rows.map(({ text }) => String(text).replace(/_[0-9a-f]{12}$/, '')),
      [
        ...['AFTER DELETE effectmatch_delete', 'AFTER INSERT effectmatch_insert'],
        ...['AFTER INSERT late', 'AFTER UPDATE effectmatch_update'],
        ...['BEFORE INSERT early', 'BEFORE INSERT effectmatch_chosen', 'BEFORE UPDATE changed'],
      ].sort(),
    );
  });

  test('removed: the triggers of the application, markers and identity stay, and it can be repeated', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const { db, control, options } = place;
    const left = async () => [
      (await db.run('show triggers')).map(({ Trigger }) => Trigger),
      (await db.run(`show tables from ${control}`)).flatMap((row) => Object.values(row)),
    ];
    for (const round of ['first', 'repeated']) {
      const removal = await planProvisioning(db.url(), options, 'remove');
      assert.equal(removal.keepsMarkers, true);
      await removal.apply();
      const expected = [
        ['early', 'late', 'changed'],
        ['deployment', 'marker'],
      ];
      assert.deepEqual(await left(), expected, round);
    }
    const all = await planProvisioning(db.url(), options, 'remove-markers');
    assert.equal(all.keepsMarkers, undefined);
    const again = await planProvisioning(db.url(), options);
    assert.equal(again.keepsMarkers, undefined);
    await again.apply();
  });

  test('keeps the passwords of accounts whose options state none', async () => {
    await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
    const { db, options } = place;
    const control = new URL(String(options.control));
    control.password = '';
    const { username: user, port } = new URL(String(options.execution));
    const execution = { host: '127.0.0.1', port: Number(port), user, database: db.name };
    const again = { ...options, control: control.href, execution };
    await (await planProvisioning(db.url(), again)).apply();
    const context = { name: 'db', clock: systemClock, reached: unobserved };
    await (await place.factory().open(context)).close();
  });

  test('by an administrator who may not set a definer is refused before anything is changed; removal is not', async () => {
    await using db = await freshDatabase();
    await db.run('create table t (id int primary key)');
    const admin = db.unique('admin');
    const options: MysqlOptions = {
      ...{ owner: db.unique('o'), controlDatabase: db.unique('effectmatch'), relations: ['t'] },
      control: db.url(db.unique('c'), 'secret'),
      execution: db.url(db.unique('e'), 'secret'),
    };
    await db.run(`create user ${admin}; grant all on *.* to ${admin} with grant option;
      revoke super, set user on *.* from ${admin}`);
    const plan = await planProvisioning(db.url(admin), options);
    await assert.rejects(plan.apply(), {
      code: 'ERR_EM_ADAPTER_REFUSED',
      message: /neither SUPER nor SET USER/,
    });
    const made = await db.run(
      `select user as name from mysql.user where user in ('${options.owner}', '${db.unique('c')}')
        union select schema_name from information_schema.schemata
        where schema_name = '${options.controlDatabase}'`,
    );
    assert.deepEqual(made, []);
    await db.run(`grant set user on *.* to ${admin}`);
    const steps: string[] = [];
    await plan.apply((step) => steps.push(step));
    assert.ok(steps.some((step) => step.includes('trigger')));
    await db.run(`revoke set user on *.* from ${admin}`);
    await (await planProvisioning(db.url(admin), options, 'remove')).apply();
    assert.deepEqual(await db.run('show triggers'), [], 'removal does not need the right');
  });
});
