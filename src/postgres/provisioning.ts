import type { LeftOut, Provisioning, RightChange } from '../contract/adapter.ts';
import { asFault, Connection, sqlState } from './connection.ts';
import type { ConnectionOptions } from './options.ts';

/** One statement of a provisioning script, the reason for it, and the rights that it needs. */
export interface ProvisionStep {
  readonly sql: string;
  readonly why: string;
  readonly needs: string;
}

/** Steps for statements that have the same reason and need the same rights. */
export function stepsFor(
  needs: string,
  why: string,
  statements: readonly string[],
): readonly ProvisionStep[] {
  return statements.map((sql) => ({ sql, why, needs }));
}

/** A provisioning that prints, applies or rehearses these steps. */
export function provisioningOf(
  admin: ConnectionOptions,
  steps: readonly ProvisionStep[],
): Provisioning {
  return {
    print: () => steps.map(printStep).join('\n'),
    apply: async (report) => {
      await using applying = await openAdministrator(admin);
      return await applySteps(applying, steps, report);
    },
    rehearse: async () => {
      await using trying = await openAdministrator(admin);
      return await rehearseSteps(trying, steps);
    },
  };
}

/** Opens a session as the administrator. */
export async function openAdministrator(admin: ConnectionOptions): Promise<Connection> {
  try {
    const connection = await Connection.open(admin, 'effectmatch provision');
    // The database owner can store a search path on the database. It must not decide what names in
    // a superuser's session mean.
    await connection.script('set search_path = pg_catalog, pg_temp');
    return connection;
  } catch (error) {
    throw asFault(error, 'ERR_EM_ADAPTER_UNAVAILABLE', 'the administrator could not connect');
  }
}

async function applySteps(
  connection: Connection,
  steps: readonly ProvisionStep[],
  report: ((statement: string) => void) | undefined,
): Promise<readonly LeftOut[]> {
  return await inTurn(connection, async () => {
    const leftOut = await runSteps(connection, steps, report);
    await connection.script('commit');
    return leftOut;
  });
}

/** Concurrent provisionings would conflict on catalogue rows, so they take turns. */
const BEGIN =
  "begin; select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('effectmatch provision'))";
const DEADLOCK = '40P01';

/**
 * Does the work in a transaction that it ends itself, and rolls back if it fails. A vacuum of a
 * table that is provisioned can make it the victim of a deadlock: then it starts again.
 */
async function inTurn<T>(connection: Connection, work: () => Promise<T>, tries = 3): Promise<T> {
  await connection.script(BEGIN);
  try {
    return await work();
  } catch (error) {
    await connection.script('rollback').catch(() => {});
    const { cause } = error as Error;
    if (tries === 1 || sqlState(cause) !== DEADLOCK) throw error;
    return await inTurn(connection, work, tries - 1);
  }
}

/**
 * Runs all steps in a transaction that is rolled back, and returns which rights each role would
 * lose or gain.
 */
async function rehearseSteps(
  connection: Connection,
  steps: readonly ProvisionStep[],
): Promise<readonly RightChange[]> {
  return await inTurn(connection, async () => {
    const before = await readRights(connection);
    await runSteps(connection, steps, undefined);
    const after = await readRights(connection);
    await connection.script('rollback');
    const logins = [...before.keys()].filter((login) => after.has(login));
    return logins.map((login) => ({
      login,
      loses: [...(before.get(login) ?? [])].filter((right) => !after.get(login)?.has(right)),
      gains: [...(after.get(login) ?? [])].filter((right) => !before.get(login)?.has(right)),
    }));
  });
}

/** The rights of every role except superusers in this database, direct or through memberships. */
async function readRights(
  connection: Connection,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const { rows } = await connection.query(RIGHTS);
  return new Map(
    rows.map(([login, list]) => [String(login), new Set(JSON.parse(String(list)) as string[])]),
  );
}

const RIGHTS = `
select r.rolname, pg_catalog.json_agg(g.privilege || ' ON ' || g.object order by 1)
from pg_catalog.pg_roles as r, lateral (
  select p as privilege, 'DATABASE' as object from pg_catalog.unnest(array['CREATE', 'TEMPORARY', 'CONNECT']) as p
  where pg_catalog.has_database_privilege(r.oid, pg_catalog.current_database(), p)
  union all
  select p, 'SCHEMA ' || n.nspname from pg_catalog.pg_namespace as n, pg_catalog.unnest(array['CREATE', 'USAGE']) as p
  where n.nspname !~ '^(pg_|effectmatch)' and pg_catalog.has_schema_privilege(r.oid, n.oid, p)
  union all
  select 'USAGE', 'LANGUAGE ' || l.lanname from pg_catalog.pg_language as l
  where l.lanpltrusted and pg_catalog.has_language_privilege(r.oid, l.oid, 'USAGE')
  union all
  select 'EXECUTE', 'FUNCTION ' || p.oid::pg_catalog.regprocedure from pg_catalog.pg_proc as p
  where (p.provolatile = 'v' or p.oid >= 16384) and p.pronamespace::pg_catalog.regnamespace::text <> 'effectmatch'
    and pg_catalog.has_function_privilege(r.oid, p.oid, 'EXECUTE')
  union all
  select p, 'TABLE ' || c.oid::pg_catalog.regclass from pg_catalog.pg_class as c,
    pg_catalog.unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) as p
  where c.relkind in ('r', 'p', 'v', 'm', 'f') and c.oid >= 16384
    and c.relnamespace::pg_catalog.regnamespace::text <> 'effectmatch'
    and pg_catalog.has_table_privilege(r.oid, c.oid, p)
) as g
where not r.rolsuper and r.rolname !~ '^pg_'
group by r.rolname order by r.rolname`;

/** Returns the statements that were skipped because they need a superuser. */
async function runSteps(
  connection: Connection,
  steps: readonly ProvisionStep[],
  report: ((statement: string) => void) | undefined,
): Promise<readonly LeftOut[]> {
  const { rows } = await connection.query(
    'select rolsuper from pg_catalog.pg_roles where rolname = current_user',
  );
  const isSuperuser = rows[0]?.[0] === 't';
  const leftOut: LeftOut[] = [];
  for (const step of steps) {
    // A REVOKE without the necessary rights only warns, so it would look like a success.
    if (step.needs.endsWith('superuser') && !isSuperuser) {
      leftOut.push({ statement: printable(step.sql), needs: step.needs });
      continue;
    }
    try {
      await connection.query(step.sql);
    } catch (error) {
      const what = `"${firstLine(printable(step.sql))}" failed and nothing was changed; it needs ${step.needs}`;
      throw asFault(error, 'ERR_EM_ADAPTER_REFUSED', `postgres: ${what}`);
    }
    report?.(printable(step.sql));
  }
  return leftOut;
}

function printStep(step: ProvisionStep, index: number, steps: readonly ProvisionStep[]): string {
  const heading =
    steps[index - 1]?.why === step.why ? '' : `\n-- ${step.why} (needs ${step.needs})\n`;
  return `${heading}${printable(step.sql)};`;
}

function printable(sql: string): string {
  return sql.replace(/^(alter role .* password) .*$/s, "$1 '…'");
}

function firstLine(sql: string): string {
  return sql.split('\n')[0] ?? '';
}
