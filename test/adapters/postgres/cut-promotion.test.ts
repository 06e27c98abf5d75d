// Goal: wherever the way to the server is cut while a candidate is promoted, what is said about it
// is so. Method: a relay in front of a real server cuts the promotion, or its answer, after every
// so many bytes; what is durable is then compared with what the promotion said and with what a void
// marker meets.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { postgres } from '../../../src/adapters/postgres/index.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { mintProofs } from '../../../src/testing/proofs.ts';
import { protectedDatabase } from '../../postgres/protected.ts';
import { type Cut, Relay } from '../../relay.ts';

test('a promotion that is cut anywhere says no more than is so, and its marker settles the rest', async () => {
  await using place = await protectedDatabase('create table item (id integer primary key)', {
    relations: ['item'],
  });
  const { db, options } = place;
  const direct = new URL(db.url(db.role('em_exec')));
  await using relay = await new Relay(Number(direct.port)).listen();
  direct.host = `127.0.0.1:${relay.port}`;
  const factory = postgres({ ...options, execution: direct.href });
  const adapter = await factory.open({ name: 'cut', clock: systemClock, reached: unobserved });
  assert.ok(adapter.capability === 'PROMOTABLE');
  const said = new Set<string>();
  let id = 0;
  const promote = async (cut: Cut | undefined) => {
    id += 1;
    const proofs = mintProofs(adapter, `cut ${id}`);
    const action = adapter.parseAction({ sql: 'insert into item values ($1)', values: [id] });
    const staged = await adapter.stage(proofs.claim, proofs.certificate, action);
    assert.ok(staged.kind === 'held', JSON.stringify(staged));
    const permit = proofs.permit(await staged.stage.observe());
    relay.passed = { client: 0, server: 0 };
    relay.armed = cut;
    const { kind } = await staged.stage.promote(permit);
    relay.armed = undefined;
    const at = `${cut?.side} ${cut?.after}: ${kind}`;
    let settled = await adapter.markers.void({ ...permit.marker, disposition: 'void' });
    while (settled.kind === 'busy')
      settled = await adapter.markers.void({ ...permit.marker, disposition: 'void' });
    const isDurable = (await db.run(`select from item where id = ${id}`)).length === 1;
    const found = await adapter.markers.find(proofs.claim.sealed.record.occurrence);
    assert.equal(found?.disposition, isDurable ? 'committed' : 'void', at);
    assert.equal(settled.kind, isDurable ? 'conflict' : 'inserted', at);
    if (kind !== 'unknown') assert.equal(kind, isDurable ? 'confirmed' : 'refused', at);
    said.add(`${kind}, ${isDurable ? 'durable' : 'not'}`);
  };
  await promote(undefined);
  await new Promise((resolve) => setTimeout(resolve, 100));
  const { client, server } = relay.passed;
  for (const [side, bytes] of [
    ['client', client],
    ['server', server],
  ] as const) {
    for (let after = 0; after < bytes; after += Math.ceil(bytes / 40))
      await promote({ side, after });
  }
  await adapter.close();
  assert.ok(said.has('confirmed, durable') && said.has('unknown, durable'), [...said].join('; '));
});
