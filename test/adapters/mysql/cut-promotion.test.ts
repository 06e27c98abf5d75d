// Goal: wherever the way to MariaDB is cut while a candidate is promoted, what is said about it is
// so. Method: a relay in front of a real server cuts the promotion, or its answer, after every so
// many bytes; what is durable is then compared with what was said and with what a void marker meets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { mintProofs } from '../../../src/testing/proofs.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { protectedMariadb } from '../../mysql/protected.ts';
import { type Cut, Relay } from '../../relay.ts';

const skip = skipWithoutMariadb();

test('MariaDB: a promotion that is cut anywhere says no more than is so, and its marker settles the rest', {
  skip,
}, async () => {
  await using place = await protectedMariadb('create table item (id int primary key)', {
    relations: ['item'],
  });
  const { db, options, control } = place;
  const direct = new URL(String(options.execution));
  await using relay = await new Relay(Number(direct.port)).listen();
  direct.port = String(relay.port);
  const factory = place.factory({ execution: direct.href });
  const adapter = await factory.open({ name: 'cut', clock: systemClock, reached: unobserved });
  assert.ok(adapter.capability === 'PROMOTABLE');
  const said = new Set<string>();
  let id = 0;
  const promote = async (cut: Cut | undefined) => {
    id += 1;
    const proofs = mintProofs(adapter, `cut ${id}`);
    const action = adapter.parseAction({ sql: 'insert into item values (?)', values: [id] });
    const staged = await adapter.stage(proofs.claim, proofs.certificate, action);
    assert.ok(staged.kind === 'held', JSON.stringify(staged));
    const permit = proofs.permit(await staged.stage.observe());
    relay.passed = { client: 0, server: 0 };
    relay.armed = cut;
    const { kind } = await staged.stage.promote(permit);
    relay.armed = undefined;
    const passed = { ...relay.passed };
    const at = `${cut?.side} ${cut?.after}: ${kind}`;
    const settle = () => adapter.markers.void({ ...permit.marker, disposition: 'void' });
    let settled = await settle();
    while (settled.kind === 'busy') settled = await settle();
    const isDurable = (await db.run(`select 1 from item where id = ${id}`)).length === 1;
    const found = await adapter.markers.find(proofs.claim.sealed.record.occurrence);
    assert.equal(found?.disposition, isDurable ? 'committed' : 'void', at);
    assert.equal(settled.kind, isDurable ? 'conflict' : 'inserted', at);
    if (kind !== 'unknown') assert.equal(kind, isDurable ? 'confirmed' : 'refused', at);
    said.add(`${kind}, ${isDurable ? 'durable' : 'not'}`);
    return passed;
  };
  const { client, server } = await promote(undefined);
  for (const [side, bytes] of [
    ['client', client],
    ['server', server],
  ] as const) {
    for (let after = 0; after < bytes; after += Math.ceil(bytes / 40))
      await promote({ side, after });
  }
  await adapter.close();
  assert.deepEqual(await db.run(`select occurrence from ${control}.stage`), []);
  for (const end of ['confirmed, durable', 'unknown, durable', 'refused, not'])
    assert.ok(said.has(end), [...said].join('; '));
});
