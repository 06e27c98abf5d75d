import { generateKeyPairSync, hash, sign, verify } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type PostgresBoundary, readBoundary } from '../../../src/adapters/postgres/boundary.ts';
import { Control, type PostgresDeployment } from '../../../src/adapters/postgres/control.ts';
import { readOptions } from '../../../src/adapters/postgres/options.ts';
import { CALLS } from '../../../src/adapters/postgres/prepared.ts';
import { isReset } from '../../../src/adapters/postgres/sessions.ts';
import { Connection, connectionTarget, type TextRow } from '../../../src/postgres/connection.ts';
import { OPERATION } from './books.ts';
import { openFloorLedger } from './floor-ledger.ts';
import { connect, type LedgerKind, type Path } from './paths.ts';
import type { Site } from './site.ts';

/**
 * How much a floor does: signature, claim, held candidate and marker; besides, what any protected
 * operation owes; besides, what any certified one owes. See {@link openFloor}.
 */
export const FLOORS = [
  'floor',
  'floor with what protection needs',
  'floor with what certification needs',
] as const;

type FloorKind = (typeof FLOORS)[number];

interface FloorOptions {
  readonly kind?: FloorKind;
  readonly ledger: LedgerKind;
  readonly sessions: FloorSessions;
  /** Runs before a reading of the configuration. */
  readonly disturb?: Disturb;
}

/** Another client commits before the first reading of the configuration, or before the final one. */
type Disturb = (reading: 'first' | 'final') => Promise<unknown>;

/**
 * The least that a protected operation can take with the functions that are in the database: a
 * license is verified, a claim is kept, the statement runs between `open` and `observe`, texts are
 * compared with what was expected, and the marker is committed with them. There are no records,
 * leases, certificates, typed values, refusals or recovery.
 *
 * With what protection needs, the ledger is also asked whether the claim stands, after the comparison
 * and while the candidate is held, and has the terminal before the caller is told. With what
 * certification needs, the configuration is read beside the claim, again beside that question, and
 * must be the same.
 */
export async function openFloor(
  site: Site,
  { kind = 'floor', ledger, sessions, disturb }: FloorOptions,
): Promise<Path> {
  await using opened = new AsyncDisposableStack();
  const control = new Control(site.options.control);
  opened.defer(() => control.close());
  const deployment = await control.deployment();
  const { user: executor = '' } = connectionTarget(site.options.execution);
  const roles = { backend: deployment.backend, executor, ...(await control.roles()) };
  const boundary = await readBoundary(control, readOptions(site.options), roles);
  const note = control.promotedTransactions();
  const rows = opened.use(
    kind === 'floor' ? await openClaims(site, ledger) : await openFloorLedger(site, ledger, note),
  );
  const read = kind === 'floor with what certification needs' ? readerOf(control, disturb) : idle;
  const licenses = signedLicenses(ledger);
  const held = opened.move();
  return {
    name: `${kind}${disturb === undefined ? '' : ' among strangers'}, ${ledger} ledger`,
    writesOnce: true,
    approve: async (ids) => licenses.sign(ids),
    async run(id, client) {
      const text = licenses.verify(id);
      const occurrence = `occ_${hash('sha256', text).slice(0, 40)}`;
      const reading = read('first');
      await rows.claim(occurrence, text.toString());
      const before = await reading;
      const session = sessions.of(client);
      const pass = async () => {
        const [now, stands] = await Promise.all([read('final'), rows.stands?.(occurrence)]);
        if (now !== before || stands === false) throw new Error('the final gate is closed');
      };
      note(await runHeld(session, { deployment, boundary, occurrence, id, pass }));
      await rows.end(occurrence);
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

/** Sessions of the execution login, for several floors that run in turns. */
export interface FloorSessions extends AsyncDisposable {
  of(client: number): Connection;
}

/** Opens a session for each client, with everything prepared. */
export async function openFloorSessions(site: Site, clients: number): Promise<FloorSessions> {
  await using opened = new AsyncDisposableStack();
  const sessions: Connection[] = [];
  for (let client = 0; client < clients; client += 1) {
    const session = opened.use(await Connection.open(site.options.execution, 'floor'));
    await session.prepare({ ...CALLS, action: OPERATION });
    sessions.push(session);
  }
  const held = opened.move();
  return {
    of: (client) => sessions[client % clients] as Connection,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

const idle = async (_: 'first' | 'final') => undefined;

function readerOf(control: Control, disturb: Disturb | undefined) {
  return async (reading: 'first' | 'final') => {
    await disturb?.(reading);
    return await control.fingerprint();
  };
}

/** Signs a text for every operation, and verifies it. */
function signedLicenses(ledger: LedgerKind) {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const licenses = new Map<number, { readonly text: Buffer; readonly signature: Buffer }>();
  return {
    sign(ids: readonly number[]): void {
      for (const id of ids) {
        const text = Buffer.from(`${id} ${ledger} ${crypto.randomUUID()} ${'x'.repeat(1500)}`);
        licenses.set(id, { text, signature: sign(null, text, privateKey) });
      }
    },
    verify(id: number): Buffer {
      const license = licenses.get(id);
      if (license === undefined || !verify(null, license.text, publicKey, license.signature))
        throw new Error('not signed');
      return license.text;
    },
  };
}

interface HeldOperation {
  readonly deployment: PostgresDeployment;
  readonly boundary: PostgresBoundary;
  readonly occurrence: string;
  readonly id: number;
  /** Passes the final gate, or throws. */
  readonly pass: () => Promise<void>;
}

/** From BEGIN to COMMIT in two messages, as the adapter does it. Returns the transaction's id. */
async function runHeld(session: Connection, operation: HeldOperation): Promise<string> {
  const { deployment, boundary, occurrence, id, pass } = operation;
  const { sequenceOids, watched } = boundary;
  const staged = await session.run([
    { text: 'begin isolation level read committed read write' },
    { prepared: 'effectmatch_open', values: [occurrence, sequenceOids, '30000', '5000'] },
    { prepared: 'action', values: [String(id)] },
    { prepared: 'effectmatch_observe', values: [watched.oids, sequenceOids] },
  ]);
  if (staged.failure !== undefined) throw staged.failure.error;
  const xid = String(staged.replies[1]?.rows[0]?.[0]);
  const [facts, ...records] = staged.replies[3]?.rows ?? [];
  compare(boundary, facts, records, id);
  await pass();
  const text = JSON.stringify({ occurrence, observed: hash('sha256', JSON.stringify(records)) });
  const seal = hash('sha256', text);
  const mac = deployment.sign('promote', xid, '0', occurrence, 'floor', seal, text);
  const values = [xid, '0', occurrence, text, 'floor', seal, mac];
  const { promoting, resetting } = session.together(() => ({
    promoting: session.run([{ prepared: 'effectmatch_promote', values }, { text: 'commit' }]),
    resetting: isReset(session, true),
  }));
  const { replies } = await promoting;
  if (replies[1]?.command !== 'COMMIT') throw new Error('not committed');
  resetting.catch(() => {});
  return xid;
}

/** As many writes counted as recorded, and each record as it was expected. */
function compare(
  { leaves }: PostgresBoundary,
  facts: TextRow | undefined,
  records: readonly TextRow[],
  id: number,
): void {
  const wanted = new Set([
    `invoice (${id},pending,100) (${id},paid,100)`,
    `account (${id},1000,"owner ${id}") (${id},900,"owner ${id}")`,
    `payment ${id},100)`,
    `entry ${id},-100)`,
    `notification ${id},paid)`,
  ]);
  for (const [oid, op, , was, became] of records) {
    const generated = `${became?.slice(became.indexOf(',') + 1)}`;
    const image = op === 'U' ? `${was} ${became}` : generated;
    const target = leaves.get(String(oid))?.target.replace(/^.*\./, '');
    if (!wanted.delete(`${target} ${image}`)) throw new Error(`unexpected: ${target} ${image}`);
  }
  const counters = facts?.[3]?.split('\n')[1]?.split(' ') ?? [];
  const written = counters.filter((entry) => leaves.has(entry.split(':')[0] ?? ''));
  if (wanted.size > 0 || written.length !== 5) throw new Error('something is missing');
}

interface Claims extends AsyncDisposable {
  claim(occurrence: string, text: string): Promise<void>;
  /** Only a {@link FloorLedger} is asked. */
  readonly stands?: undefined;
  end(occurrence: string): void;
}

const CLAIM = 'create table floor_claim(occurrence text primary key, text text)';

/** A claim is one durable row; in the database its commit is not waited for, as in the product. */
async function openClaims(site: Site, ledger: LedgerKind): Promise<Claims> {
  if (ledger === 'SQLite') return openSqliteClaims(site);
  const connections = await connect(site.plainUrl, 1);
  const client = connections.client(0);
  await client.query(`drop table if exists floor_claim; ${CLAIM}`);
  await client.query('set synchronous_commit = off');
  return {
    async claim(occurrence, text) {
      const query = 'insert into floor_claim values ($1, $2)';
      await client.query({ name: 'claim', text: query, values: [occurrence, text] });
    },
    // The marker in the business transaction says the same.
    end: () => {},
    [Symbol.asyncDispose]: () => connections[Symbol.asyncDispose](),
  };
}

/** A claim is flushed; its end is not, because the marker in the backend says the same. */
export function openSqliteClaims({ folder }: Pick<Site, 'folder'>): Claims {
  const db = new DatabaseSync(join(folder, `floor-${crypto.randomUUID()}.db`));
  db.exec(`pragma journal_mode = wal; pragma synchronous = full; ${CLAIM}`);
  const insert = db.prepare('insert into floor_claim values (?, ?)');
  return {
    async claim(occurrence, text) {
      insert.run(occurrence, text);
    },
    end(occurrence) {
      db.exec('pragma synchronous = normal');
      insert.run(`end ${occurrence}`, 'x'.repeat(700));
      db.exec('pragma synchronous = full');
    },
    async [Symbol.asyncDispose]() {
      db.close();
    },
  };
}
