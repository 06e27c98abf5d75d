import { spawnSync } from 'node:child_process';
import { extname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { sqlite } from '../../adapters/sqlite/index.ts';
import type { RuntimeConfig, SignedLicense } from '../../index.ts';
import { createRuntime, generated, insert, lineagesOf, row, update } from '../../index.ts';
import { DatabaseSync } from '../../sqlite/engine.ts';
import type { Scene } from './scene.ts';

const SCHEMA = `
  create table vendor (id integer primary key, blocked integer not null);
  create table invoice (id integer primary key, vendor integer not null, status text not null);
  create table notification (id integer primary key, invoice integer not null, text text not null);
  insert into vendor values (7, 0);
  insert into invoice values (4711, 7, 'pending');`;
const TRIGGER = `create trigger notify after update of status on invoice when new.status = 'paid'
  begin insert into notification (invoice, text) values (new.id, 'paid'); end`;
const RESET =
  "update invoice set status = 'pending'; update vendor set blocked = 0; delete from notification;";
const BLOCKING = 'update vendor set blocked = 1 where id = 7';

/** What the agent runs. */
export const PAYING = { sql: "update invoice set status = 'paid' where id = 4711" };

/**
 * The approved outcome: the invoice becomes paid if its vendor is not blocked, and nothing else
 * changes.
 */
const PAYMENT = {
  adapter: 'books',
  task: 'invoice-4711',
  planRevision: 1,
  effects: [update('invoice', { id: 4711 }, { status: ['pending', 'paid'] })],
  requires: [row('vendor', { id: 7 }, { blocked: 0 })],
  continuations: ['ship'],
};
const NOTIFICATION = insert('notification', { id: generated('new'), invoice: 4711, text: 'paid' });

/** The configuration of both processes. It has only the approver's public key. */
export function configOf(folder: string, publicKey: string): RuntimeConfig {
  return {
    store: join(folder, 'effectmatch.db'),
    keyring: join(folder, 'effectmatch.keys.json'),
    issuers: { 'ap-team': { key: publicKey, may: ['books'] } },
    adapters: {
      books: sqlite({
        file: join(folder, 'books.db'),
        relations: ['invoice', 'notification', 'vendor'],
      }),
    },
  };
}

/** Pays invoice 4711, in five acts. */
export async function payInvoice(scene: Scene): Promise<void> {
  change(scene, SCHEMA);
  await using runtime = await createRuntime(configOf(scene.folder, scene.key.publicKey));

  scene.act('The payment does exactly what was approved');
  const license = await scene.approve(runtime, PAYMENT);
  scene.tell('agent', PAYING.sql);
  const paid = await runtime.execute(license, PAYING);
  scene.verdict(paid, 'committed');
  look(scene, 'paid', 0, 'exactly as approved');
  await scene.ship(runtime, paid, 'released');

  scene.act('The same approval and the same SQL, but a trigger writes one more row');
  change(scene, RESET + TRIGGER);
  const diverged = await runtime.execute(await scene.approve(runtime, PAYMENT), PAYING);
  scene.verdict(diverged, 'diverged');
  look(scene, 'pending', 0, 'everything was rolled back');
  await scene.ship(runtime, diverged, 'rejected');

  scene.act('The vendor is blocked after the approval');
  const stale = await scene.approve(runtime, PAYMENT);
  scene.tell('meanwhile', BLOCKING);
  change(scene, BLOCKING);
  scene.verdict(await runtime.execute(stale, PAYING), 'precondition-broken');
  look(scene, 'pending', 0, 'the SQL never ran');

  scene.act('The extra row is approved too, but two workers use that approval at once');
  change(scene, RESET);
  const shared = await scene.approve(runtime, {
    ...PAYMENT,
    effects: [...PAYMENT.effects, NOTIFICATION],
  });
  const verdicts = await Promise.all([
    runtime.execute(shared, PAYING),
    runtime.execute(shared, PAYING),
  ]);
  const [winner, loser] = verdicts.sort((a, b) => a.kind.localeCompare(b.kind));
  scene.verdict(winner, 'committed');
  scene.verdict(loser, 'spent');
  look(scene, 'paid', 1, 'one payment');

  scene.act('The process is killed after the commit, before it records its verdict');
  change(scene, `${RESET} drop trigger notify`);
  const killed = await scene.approve(runtime, PAYMENT);
  const [lineage] = lineagesOf(killed);
  await payAndDie(scene, killed);
  look(scene, 'paid', 0, 'the commit is durable');
  await scene.ship(runtime, lineage, 'no-terminal');
  scene.tell('recovery', 'finds the marker, a row that was committed together with the payment');
  const [recovered] = await runtime.recover({ now: true });
  if (recovered?.kind === 'settled') scene.verdict(recovered.terminal, 'committed');
  await scene.ship(runtime, lineage, 'released');
  await scene.ship(runtime, lineage, 'already-released');
}

/** Changes the database without EffectMatch. */
function change({ folder }: Scene, sql: string): void {
  using db = new DatabaseSync(join(folder, 'books.db'));
  db.exec(sql);
}

/** Reads the database without EffectMatch. */
function look(scene: Scene, status: string, notifications: number, meaning: string): void {
  using db = new DatabaseSync(join(scene.folder, 'books.db'), { readOnly: true });
  const query = 'select status, (select count(*) from notification) as notifications from invoice';
  const found = { ...db.prepare(query).get() };
  const text = `invoice 4711 is "${found.status}", notifications: ${found.notifications}   (${meaning})`;
  scene.tell('database', text);
  scene.expect('database', found, { status, notifications });
}

/** Pays in a separate process that is killed right after its commit. */
async function payAndDie(scene: Scene, license: SignedLicense): Promise<void> {
  const file = fileURLToPath(new URL(`./worker${extname(import.meta.filename)}`, import.meta.url));
  const words = [file, scene.folder, scene.key.publicKey, JSON.stringify(license)];
  scene.tell('worker', 'a separate process pays');
  const { pid, signal, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  await setImmediate(); // a signal that arrived in the meantime ends the demo here
  scene.expect('worker', signal ?? stderr, 'SIGKILL');
  scene.tell('killed', `process ${pid}, by ${signal}`);
}
