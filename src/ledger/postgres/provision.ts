import type { Provisioning, ProvisioningKind } from '../../contract/adapter.ts';
import { errorsOf } from '../../errors.ts';
import { asFault, connectionTarget } from '../../postgres/connection.ts';
import type { ConnectionOptions } from '../../postgres/options.ts';
import {
  openAdministrator,
  type ProvisionStep,
  provisioningOf,
  stepsFor,
} from '../../postgres/provisioning.ts';
import type { Queries } from './fetch.ts';
import { SQL, VERSION } from './sql.ts';

/**
 * Plans how to provision the ledger's schema, or how to remove it with everything in it. A role
 * that cannot log in owns the tables; the ledger's login may append to them.
 */
export async function planLedger(
  admin: ConnectionOptions,
  connection: ConnectionOptions,
  schema: string,
  what: ProvisioningKind,
): Promise<Provisioning> {
  const { user: login, password, database } = connectionTarget(connection);
  await using session = await openAdministrator(admin);
  const { rows } = await session.query('select pg_catalog.current_database(), current_user');
  const [here = '', administrator] = (rows[0] ?? []).map(String);
  if (login === undefined || login === administrator)
    throw refused('the ledger needs its own login; the administrator cannot be it');
  if (database !== here)
    throw refused(`the ledger is in database "${database}" and the administrator in "${here}"`);
  const names = { schema, requests: `${schema}_requests`, owner: `${schema}_owner` };
  const values = { ...names, login, database: here, version: VERSION };
  const steps = what === 'provision' ? provisionSteps(values, password) : removalSteps(values);
  return provisioningOf(admin, steps);
}

type Values = Readonly<
  Record<'schema' | 'requests' | 'owner' | 'login' | 'database' | 'version', string>
>;

function provisionSteps(values: Values, password: string | undefined): readonly ProvisionStep[] {
  const fill = (...names: readonly string[]) =>
    names.map((name) => SQL.provision.get(name, values));
  const needs = 'CREATEROLE and ownership of the database';
  const secret =
    password === undefined ? [] : [SQL.provision.get('set_password', { ...values, password })];
  return [
    ...stepsFor('CREATEROLE', 'two roles: the owner of the ledger, and the login that appends', [
      ...fill('create_owner', 'create_login', 'lend_owner'),
      ...secret,
    ]),
    ...stepsFor(needs, 'the login connects, and the owner makes its schema', [
      ...fill('connect', 'pin_path', 'let_owner_create', 'let_owner_write_functions'),
    ]),
    ...stepsFor(needs, 'tables, to which the login may only append', [
      ...fill('become_owner', 'create_schema', 'close_schema'),
      ...SQL.tables.all(values),
      ...SQL.decide.all(values),
      ...fill('use_schema', 'read_tables', 'append', 'take_turns', 'count_positions'),
      ...fill('count_claims_right', 'settle_claims', 'raise_plans', 'decide_right'),
    ]),
    ...stepsFor(needs, 'the requests of agents, next to the ledger', [
      ...SQL.requests.all(values),
      ...fill('leave_owner', 'stop_owner_creating'),
    ]),
  ];
}

function removalSteps({ schema, requests, owner, login }: Values): readonly ProvisionStep[] {
  const each = (name: string) => [login, owner].map((role) => SQL.provision.get(name, { role }));
  const needs = 'ownership of the objects';
  return [
    ...stepsFor(needs, 'the ledger', [
      SQL.provision.get('drop_schema', { schema }),
      SQL.provision.get('drop_schema', { schema: requests }),
    ]),
    ...stepsFor(needs, 'rights of the roles in this database', each('drop_owned')),
    ...stepsFor(needs, 'roles that no other database uses', each('drop_role')),
  ];
}

/**
 * Archives journal rows that a checkpoint covered before a given time, except those of attempts
 * that have not ended. They stay readable and verified, and what they spent stays spent.
 */
export async function archiveRows(
  admin: ConnectionOptions,
  queries: Queries,
  before: Date,
): Promise<{ readonly rows: number }> {
  await using session = await openAdministrator(admin);
  try {
    await session.query('begin');
    await session.query(queries.get('lock').text);
    const { text, values } = queries.get('archive_rows', before.toISOString());
    const { rows } = await session.query(text, values);
    await session.query('commit');
    return { rows: Number(rows[0]?.[0]) };
  } catch (error) {
    throw asFault(error, 'ERR_EM_STORE_UNAVAILABLE', 'nothing was archived');
  }
}

const refused = errorsOf('ERR_EM_CONFIG_INVALID', 'store: ');
