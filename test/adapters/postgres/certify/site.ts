import pg from 'pg';
import { readRelations } from '../../../../src/adapters/postgres/catalog.ts';
import type {
  BoundaryFacts,
  PostgresSurvey,
  RegisteredRelation,
} from '../../../../src/adapters/postgres/certify/facts.ts';
import { surveyBoundary } from '../../../../src/adapters/postgres/certify/survey.ts';
import { provisionSteps } from '../../../../src/adapters/postgres/provision/provision.ts';
import { Connection } from '../../../../src/postgres/connection.ts';
import { parseTarget, quoteName } from '../../../../src/postgres/identifier.ts';
import {
  freshDatabase,
  type SharedServer,
  type TestDatabase,
  type Version,
} from '../../../postgres/server.ts';

/**
 * A small business with what real schemas have: a definer function, a trigger, a cascade, a domain,
 * a partition.
 */
export const SCHEMA = (owner: string) => `
  create role ${owner} nologin;
  grant create on database current_database_name to ${owner};
  create schema app authorization ${owner};
  set role ${owner};
  create domain app.money as numeric(12, 2) check (value >= 0);
  create table app.vendor (id int primary key, name text not null, blocked boolean not null default false);
  create table app.invoice (id int primary key, vendor int references app.vendor on delete cascade, amount app.money not null, status text not null default 'pending');
  create table app.note (id bigserial primary key, invoice int references app.invoice deferrable initially deferred, body text);
  create table app.event (at date not null, what text) partition by range (at);
  create table app.event_2026 partition of app.event for values from ('2026-01-01') to ('2027-01-01');
  create table app.hidden (id int, what text);
  create sequence app.free;
  create function app.on_paid() returns trigger language plpgsql as $$ begin
    if new.status = 'paid' then insert into app.note (invoice, body) values (new.id, 'paid'); end if; return null; end $$;
  create trigger on_paid after update on app.invoice for each row execute function app.on_paid();
  create function app.pay(which int) returns void language plpgsql security definer set search_path = app, pg_temp as $$ begin
    update invoice set status = 'paid' where id = which; end $$;
  revoke all on all functions in schema app from public;
  reset role;`;

export interface Site extends AsyncDisposable {
  readonly db: TestDatabase;
  readonly facts: BoundaryFacts;
  readonly control: Connection;
  readonly roles: {
    readonly owner: string;
    readonly control: string;
    readonly execution: string;
    readonly app: string;
  };
  survey(change?: Partial<BoundaryFacts>): ReturnType<typeof surveyBoundary>;
  /**
   * Runs statements as superuser, each by itself, with `{exec}`, `{app}` and so on replaced by
   * quoted names.
   */
  apply(statements: readonly string[]): Promise<void>;
  /** Facts with the relations as they are now. */
  refresh(): Promise<BoundaryFacts>;
}

/**
 * A provisioned and hardened database whose boundary is closed. `names` fixes role names on a
 * server of one's own.
 */
export async function openSite({
  version,
  server,
  fixedNames = false,
}: {
  version?: Version;
  server?: SharedServer;
  fixedNames?: boolean;
} = {}): Promise<Site> {
  const db = server
    ? await server.createDatabase(fixedNames ? 'business' : undefined)
    : await freshDatabase(version === undefined ? {} : { version });
  const role = (name: string) => (fixedNames ? name : db.role(name));
  const roles = {
    owner: role('em_owner'),
    others: role('em_others'),
    control: role('em_control'),
    execution: role('em_exec'),
    app: role('app_owner'),
  };
  await db.run(SCHEMA(roles.app).replace('current_database_name', `"${db.name}"`));
  const names = ['app.vendor', 'app.invoice', 'app.note', 'app.event'];
  const relations = names.map((name) => ({
    ...(parseTarget(name) ?? { schema: '', name }),
    bulk: name === 'app.vendor',
    partitioned: name === 'app.event',
    sequences: name === 'app.note' ? [{ schema: 'app', name: 'note_id_seq', byDefault: true }] : [],
  }));
  const steps = provisionSteps({
    boundary: 'server',
    database: db.name,
    roles,
    relations,
    views: [],
    reads: [],
    lenders: [roles.app],
    rowSecurity: false,
    entryPoints: [{ schema: 'app', name: 'pay' }],
    passwords: { control: undefined, execution: undefined },
  });
  await db.run(steps.map(({ sql }) => sql).join(';\n'));
  const control = await Connection.open(db.url(roles.control), 'test control');
  const refresh = async (): Promise<BoundaryFacts> => {
    await using admin = await Connection.open(db.url(), 'test');
    const inspected = await readRelations(admin, relations);
    const registered = inspected.map((found, index): RegisteredRelation => {
      if (found.kind === 'unusable') throw new Error(found.why);
      return { ...found.relation, bulk: relations[index]?.bulk ?? false, volatile: [] };
    });
    const [entry] = await db.run(`select 'app.pay(int)'::regprocedure::oid::int as oid`);
    return {
      backend: 'pg_test',
      executor: roles.execution,
      owner: roles.owner,
      control: roles.control,
      relations: registered,
      entryPoints: [{ oid: Number(entry?.oid), name: 'app.pay(int)' }],
      restrictions: ['no outbound network from the database host'],
    };
  };
  const apply = async (statements: readonly string[]) => {
    const names: Record<string, string> = {
      exec: roles.execution,
      owner: roles.owner,
      app: roles.app,
      control: roles.control,
      db: db.name,
    };
    const admin = new pg.Client({ connectionString: db.url() });
    await admin.connect();
    try {
      for (const statement of statements) {
        const sql = statement.replace(/\{(exec|owner|app|control|db)\}/g, (_, key: string) =>
          quoteName(names[key] ?? ''),
        );
        await admin.query(sql).catch((cause: unknown) => {
          throw new Error(`${String(cause)} in ${sql}`, { cause });
        });
      }
    } finally {
      await admin.end();
    }
  };
  const facts = await refresh();
  return {
    ...{ db, facts, control, roles, refresh, apply },
    survey: (change = {}) => surveyBoundary(control, { ...facts, ...change }),
    async [Symbol.asyncDispose]() {
      await control.close();
      await db.drop();
    },
  };
}

/** Statements that close everything that is open, in order and without repetition. */
export function fixStatements({ problems }: PostgresSurvey): readonly string[] {
  const fixes = new Map(problems.map(({ fix }) => [fix.join('\n'), fix]));
  return [...fixes.values()].flat();
}
