// Goal: wherever the way to the server is cut while a candidate is promoted, what is said about it
// is so. Method: a relay in front of a real server cuts the promotion, or its answer, after every
// so many bytes; what is durable is then compared with what the promotion said and with what a void
// marker meets.
import assert from 'node:assert/strict';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { postgres } from '../../../src/adapters/postgres/index.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { mintProofs } from '../../../src/testing/proofs.ts';
import { protectedDatabase } from '../../postgres/protected.ts';

/** How many bytes still pass, once it is armed; everything else does. */
interface Cut {
  readonly side: 'client' | 'server';
  readonly after: number;
}

class Relay implements AsyncDisposable {
  armed: Cut | undefined;
  /** What passed since it was armed. */
  passed = { client: 0, server: 0 };
  port = 0;
  readonly #sockets: Socket[] = [];
  readonly #server = createServer((client) => {
    const server = connect(this.#target, '127.0.0.1');
    this.#sockets.push(client, server);
    for (const socket of [client, server]) socket.on('error', () => {});
    this.#pass('client', client, server);
    this.#pass('server', server, client);
  });
  readonly #target: number;

  constructor(target: number) {
    this.#target = target;
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const address = this.#server.address();
    this.port = typeof address === 'object' && address !== null ? address.port : 0;
    return this;
  }

  #pass(side: 'client' | 'server', from: Socket, to: Socket): void {
    from.on('data', (bytes) => {
      const left =
        this.armed?.side === side
          ? Math.max(0, this.armed.after - this.passed[side])
          : bytes.length;
      this.passed[side] += bytes.length;
      to.write(bytes.subarray(0, left));
      if (left < bytes.length) for (const socket of [from, to]) socket.destroySoon();
    });
    from.on('close', () => to.destroySoon());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

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
