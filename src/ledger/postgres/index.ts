/** A ledger in PostgreSQL, shared by any number of machines. @module */
import '../../node-version.ts';

import type { LedgersFactory } from '../../contract/ledgers.ts';
import { EffectMatchError } from '../../errors.ts';
import { asFault, Connection, connectionTarget } from '../../postgres/connection.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import { ledgersIn } from '../ledgers.ts';
import { copyLedger } from './copy.ts';
import { Queries } from './fetch.ts';
import { archiveRows, planLedger } from './provision.ts';
import { decideBody, SQL, VERSION } from './sql.ts';
import { PostgresStore } from './store.ts';

export type { ConnectionOptions } from '../../postgres/options.ts';

/** Where the tables are, and how long the ledger waits. */
export interface PostgresLedgerOptions {
  /** The schema that holds the tables and nothing else; `effectmatch_ledger` by default. */
  readonly schema?: string;
  /**
   * How long an operation waits for the server, and for other processes' decisions, before it fails
   * with `ERR_EM_STORE_BUSY` or `ERR_EM_STORE_UNAVAILABLE`; 30 000 by default.
   */
  readonly deadlineMs?: number;
}

/**
 * Ledgers in a PostgreSQL schema, in a separate database or next to the business data, for any
 * number of machines. `connection` is a login used only by the ledger, directly or through a
 * pooler. `effectmatch provision --ledger` creates the login and the tables.
 */
export function postgresLedgers(
  connection: ConnectionOptions,
  options: PostgresLedgerOptions = {},
): LedgersFactory & Required<Pick<LedgersFactory, 'provisioning' | 'copyFrom' | 'archive'>> {
  const { schema = 'effectmatch_ledger', deadlineMs = 30_000 } = options;
  const queries = new Queries(SQL.queries, schema, decideBody(schema));
  const open: LedgersFactory['open'] = async (context) => {
    const { namesLog } = await demandPrepared(connection, queries, schema);
    return ledgersIn(new PostgresStore(context, { connection, queries, deadlineMs, namesLog }));
  };
  return {
    open,
    provisioning: (admin, what) => planLedger(admin, connection, schema, what),
    copyFrom: (context, file) =>
      copyLedger(context, file, { connection, queries, factory: { open } }),
    archive: (admin, before) => archiveRows(admin, queries, before),
  };
}

/** Refuses a schema that is not provisioned, or a server where commits are not durable. */
async function demandPrepared(
  connection: ConnectionOptions,
  queries: Queries,
  schema: string,
): Promise<{ readonly namesLog: boolean }> {
  const { database } = connectionTarget(connection);
  const where = `the ledger in database "${database}", schema "${schema}"`;
  try {
    await using session = await Connection.open(connection, 'effectmatch ledger', 30_000);
    const { rows } = await session.query(queries.get('conditions').text);
    const [conditions = []] = rows;
    const fault = findFault(conditions);
    if (fault !== undefined) throw unavailable(where, fault);
    const version = (await session.query(queries.get('version').text)).rows[0]?.[0];
    if (version !== VERSION) {
      const what = `${where} has schema version ${version} and this release knows ${VERSION}`;
      throw new EffectMatchError('ERR_EM_STORE_NEWER', `${what}; use the release that wrote it`);
    }
    const [difference] = (await session.query(queries.get('structure').text)).rows[0] ?? [];
    if (difference != null) throw unavailable(where, `${difference}; restore it from a backup`);
    return { namesLog: conditions[7] === 't' };
  } catch (error) {
    throw asFault(error, 'ERR_EM_STORE_UNAVAILABLE', `${where} cannot be used`);
  }
}

function findFault(conditions: readonly (string | null)[]): string | undefined {
  const [fsync, fullPages, standby, encoding, path, usable, prepared, , current] = conditions;
  if (prepared !== 't' || usable !== 't')
    return 'it is not prepared for this login; run `effectmatch provision --ledger`';
  if (standby === 't') return 'the server is a standby; connect to the primary';
  if (fsync !== 'on' || fullPages !== 'on')
    return 'fsync and full_page_writes must be on: a commit there can be lost or torn';
  if (encoding !== 'UTF8') return `its encoding is ${encoding}; use a database with UTF8`;
  if (path !== 'pg_catalog, pg_temp')
    return 'the search path of its login was changed; run `effectmatch provision --ledger`';
  if (current !== 't')
    return 'its function was changed, or made by another release; run `effectmatch provision --ledger`';
  return undefined;
}

function unavailable(where: string, why: string): EffectMatchError<'ERR_EM_STORE_UNAVAILABLE'> {
  return new EffectMatchError('ERR_EM_STORE_UNAVAILABLE', `${where} cannot be used: ${why}`);
}
