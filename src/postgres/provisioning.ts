import type { LeftOut, Provisioning } from '../contract/adapter.ts';
import { asFault, Connection } from './connection.ts';
import type { ConnectionOptions } from './options.ts';

/**
 * One statement of a provisioning script, with why it is there and what the role that runs it must
 * be.
 */
export interface ProvisionStep {
  readonly sql: string;
  readonly why: string;
  readonly needs: string;
}

/** Statements that have the same reason and need the same rights. */
export function stepsFor(
  needs: string,
  why: string,
  statements: readonly string[],
): readonly ProvisionStep[] {
  return statements.map((sql) => ({ sql, why, needs }));
}

/** Steps as people read them and as an administrator runs them. */
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
  };
}

/** A session of the administrator's login. */
export async function openAdministrator(admin: ConnectionOptions): Promise<Connection> {
  try {
    const connection = await Connection.open(admin, 'effectmatch provision');
    // The owner of the database can store a path on it, and must not choose what the names of a
    // superuser mean.
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
  const { rows } = await connection.query(
    'select rolsuper from pg_catalog.pg_roles where rolname = current_user',
  );
  const isSuperuser = rows[0]?.[0] === 't';
  const leftOut: LeftOut[] = [];
  // Two provisionings at once would trip over each other's catalogue rows.
  await connection.script(
    "begin; select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('effectmatch provision'))",
  );
  for (const step of steps) {
    // Without the right to, PostgreSQL takes nothing away and only warns: it must not look done.
    if (step.needs.endsWith('superuser') && !isSuperuser) {
      leftOut.push({ statement: printable(step.sql), needs: step.needs });
      continue;
    }
    try {
      await connection.query(step.sql);
    } catch (error) {
      await connection.script('rollback').catch(() => {});
      const what = `"${firstLine(printable(step.sql))}" failed and nothing was changed; it needs ${step.needs}`;
      throw asFault(error, 'ERR_EM_ADAPTER_REFUSED', `postgres: ${what}`);
    }
    report?.(printable(step.sql));
  }
  await connection.script('commit');
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
