import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { bundleProgram } from '../../../test/bundle.ts';
import { protectedDatabase } from '../../../test/postgres/protected.ts';
import { startServer, type TestDatabase } from '../../../test/postgres/server.ts';
import { POSTGRES_SCHEMA, POSTGRES_TRIGGER, type Scenario, SQLITE_SCHEMA } from './scenarios.ts';
import { type Customer, startService } from './service.ts';
import {
  CONNECTOR_FILE,
  type Place,
  type Row,
  type Snapshot,
  SQLITE_FILE,
  TABLES,
} from './task.ts';

const APPLICATION = 'clerk';

/** PostgreSQL and the service, from which every run gets a separate database and account. */
export interface Site extends AsyncDisposable {
  /** Where processes keep what Node compiled; they share nothing else. */
  readonly compiled: string;
  /** The program of such a process, bundled: loading its modules takes longer than what it does. */
  readonly program: string;
  open(scenario: Scenario, isProtected: boolean): Promise<World>;
}

/** The state of one run. */
export interface World extends AsyncDisposable {
  readonly place: Place;
  readonly customer: Customer;
  /** Everything that is durable in all three backends, read over separate connections. */
  read(): Promise<Snapshot>;
}

export async function openSite(): Promise<Site> {
  await using started = new AsyncDisposableStack();
  const server = started.use(await startServer());
  const service = started.use(await startService());
  const plain = await server.createDatabase('plain');
  await plain.run(`create role ${APPLICATION} login; grant all on schema public to ${APPLICATION}`);
  await plain.run(`set role ${APPLICATION}; ${POSTGRES_SCHEMA}`);
  await server
    .createDatabase('trigger', { template: 'plain' })
    .then((db) => db.run(`set role ${APPLICATION}; ${POSTGRES_TRIGGER}`));
  const compiled = started.adopt(mkdtempSync(join(tmpdir(), 'effectmatch-compiled-')), (folder) =>
    rmSync(folder, { recursive: true, force: true }),
  );
  const program = await bundleProgram(new URL('./worker.ts', import.meta.url));
  const owned = started.move();
  let runs = 0;
  return {
    compiled,
    program,
    async open(scenario, isProtected) {
      runs += 1;
      const name = `run-${runs}`;
      const hasPostgres = scenario.steps.some(
        (step) => step.kind === 'row' && step.where === 'postgres',
      );
      const template = scenario.hasTrigger ? 'trigger' : 'plain';
      const db = hasPostgres ? await server.createDatabase(undefined, { template }) : undefined;
      const provisioned =
        db !== undefined && isProtected
          ? (await protectedDatabase('', { relations: [...TABLES.postgres] }, { db })).options
          : undefined;
      const folder = mkdtempSync(join(tmpdir(), 'effectmatch-matrix-'));
      writeFileSync(
        join(folder, CONNECTOR_FILE),
        JSON.stringify({ defaults: scenario.connector ?? {} }),
      );
      {
        using desk = new DatabaseSync(join(folder, SQLITE_FILE));
        desk.exec(SQLITE_SCHEMA);
      }
      const customer = service.customer(name);
      const place: Place = {
        folder,
        ...(db !== undefined && { postgres: db.url(APPLICATION) }),
        ...(provisioned !== undefined && { provisioned }),
        service: { origin: service.origin, customer: name },
        capability: scenario.capability,
      };
      return {
        place,
        customer,
        read: async () => ({
          ...(await readPostgres(db)),
          ...readSqlite(folder),
          ...readService(customer),
        }),
        async [Symbol.asyncDispose]() {
          rmSync(folder, { recursive: true, force: true });
          await db?.drop();
        },
      };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function readPostgres(db: TestDatabase | undefined): Promise<Snapshot> {
  const snapshot: Record<string, readonly Row[]> = {};
  for (const table of db === undefined ? [] : TABLES.postgres) {
    snapshot[table] = (await db?.run(`select * from ${table} order by id`)) as readonly Row[];
  }
  return snapshot;
}

function readSqlite(folder: string): Snapshot {
  using db = new DatabaseSync(join(folder, SQLITE_FILE), { readOnly: true });
  const rows = (table: string) =>
    db
      .prepare(`select * from ${table} order by id`)
      .all()
      .map((row) => ({ ...row }) as Row);
  return Object.fromEntries(TABLES.sqlite.map((table) => [table, rows(table)]));
}

/** Leaves out the payments that admission made as a probe. */
function readService({ account: { payments, notices, payees } }: Customer): Snapshot {
  const rows = (map: ReadonlyMap<string, object>) =>
    [...map].map(([id, row]) => ({ id, ...row }) as Row);
  return {
    payment: rows(payments).filter(({ memo }) => memo !== 'probe'),
    notice: rows(notices),
    payee: rows(new Map([...payees].map(([id, { iban }]) => [id, { iban }]))),
  };
}
