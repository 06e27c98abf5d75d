import type { LoginChange, Provisioning, ProvisioningKind } from '../../../contract/adapter.ts';
import { invariant } from '../../../errors.ts';
import { type Connection, connectionTarget } from '../../../postgres/connection.ts';
import type { ConnectionOptions } from '../../../postgres/options.ts';
import { openAdministrator, provisioningOf } from '../../../postgres/provisioning.ts';
import { type RelationInspection, readRelations, resolveNames } from '../catalog.ts';
import { demandEntries } from '../entry.ts';
import { type PostgresOptions, type RegisteredName, readOptions, refused } from '../options.ts';
import { SQL } from '../sql.ts';
import { demandViews } from '../view.ts';
import { listLenders } from './lenders.ts';
import { type ProvisionPlan, provisionSteps, removalSteps } from './provision.ts';

const DEFAULT_OWNER = 'effectmatch_owner';

/**
 * Plans how to prepare a database for protected operations, or how to undo that. `admin` is a login
 * that owns the database and its tables and may create roles. It is needed only here.
 */
export async function planProvisioning(
  admin: ConnectionOptions,
  options: PostgresOptions,
  what: ProvisioningKind = 'provision',
): Promise<Provisioning> {
  await using connection = await openAdministrator(admin);
  const plan = await readPlan(connection, options, what);
  if (what !== 'provision') {
    const markers = what === 'remove' ? 'keep' : 'drop';
    const removal = provisioningOf(admin, removalSteps(plan, { markers }));
    return { ...removal, keepsMarkers: markers === 'keep' };
  }
  const changes = await listChanges(connection, plan);
  return { ...provisioningOf(admin, provisionSteps(plan)), changes };
}

/** What the server boundary changes for the logins that use this database. */
async function listChanges(
  connection: Connection,
  { roles, lenders, boundary }: ProvisionPlan,
): Promise<readonly LoginChange[]> {
  if (boundary === 'managed') return [];
  const { owner, control, execution, others } = roles;
  const { rows } = await connection.query(SQL.rights.get('other_logins'), [
    [owner, control, execution, others],
    lenders,
  ]);
  const keep = `keeps what every role can do now, as a member of ${others}`;
  const lose =
    `loses temporary tables, session advisory locks, set_config(), pg_notify() and large objects, because code that ` +
    `operations reach runs with its rights; grant it what it needs by name, or set boundary: 'managed'`;
  return rows.map(([login, lent]) => ({
    login: String(login),
    keeps: lent !== 't',
    how: lent === 't' ? lose : keep,
  }));
}

async function readPlan(
  connection: Connection,
  options: PostgresOptions,
  what: ProvisioningKind,
): Promise<ProvisionPlan> {
  const settings = await resolveNames(connection, readOptions(options));
  const { database, control, execution } = await readLogins(connection, options);
  const inspections = await readRelations(connection, [...settings.relations, ...settings.reads]);
  const relations = settings.relations.map((registered, index) =>
    planRelation(registered, inspections[index]),
  );
  const isRemoval = what !== 'provision';
  const entries = isRemoval ? [] : await demandEntries(connection, settings.entryPoints);
  const entryPoints = entries.map(({ schema, name, arguments: list }) => ({
    schema,
    name,
    inputs: list.filter(({ input }) => input).map(({ type }) => type),
  }));
  const views = isRemoval ? [] : await demandViews(connection, settings.views);
  const owner = options.owner ?? DEFAULT_OWNER;
  const registered = inspections
    .slice(0, settings.relations.length)
    .flatMap((found) => (found.kind === 'usable' ? [found.relation] : []))
    .map((relation) => ({ ...relation, bulk: false, volatile: [] }));
  const logins = { owner, control: control.user, executor: execution.user };
  const lenders =
    isRemoval || settings.boundary === 'managed'
      ? []
      : await listLenders(connection, {
          ...logins,
          relations: registered,
          views,
          entryPoints: entries.map(({ oid, target }) => ({ oid, name: target })),
        });
  return {
    boundary: settings.boundary,
    database,
    relations,
    views,
    reads: settings.reads,
    entryPoints,
    lenders,
    rowSecurity: inspections.some((found) => found.kind === 'usable' && found.rowSecurity),
    roles: { owner, control: control.user, execution: execution.user, others: nameOthers(owner) },
    passwords: { control: control.password, execution: execution.password },
  };
}

/** The name of the role that keeps what PUBLIC had, derived from the owner of the records. */
export function nameOthers(owner: string): string {
  return owner.includes('owner') ? owner.replace('owner', 'others') : `${owner}_others`;
}

/** The two logins. They must differ, and connect to the administrator's database. */
async function readLogins(connection: Connection, options: PostgresOptions) {
  const control = connectionTarget(options.control);
  const execution = connectionTarget(options.execution);
  const [user, other] = [control.user, execution.user];
  if (user === undefined || other === undefined || user === other)
    throw refused('control and execution must be two different logins');
  const { rows } = await connection.query('select pg_catalog.current_database()');
  const database = String(rows[0]?.[0]);
  if (control.database !== database || execution.database !== database)
    throw refused(
      `control and execution must connect to "${database}", the database that is provisioned`,
    );
  return {
    database,
    control: { user, password: control.password },
    execution: { user: other, password: execution.password },
  };
}

function planRelation(
  { schema, name, bulk }: RegisteredName,
  inspection: RelationInspection | undefined,
): ProvisionPlan['relations'][number] {
  invariant(inspection !== undefined, 'every name is inspected');
  if (inspection.kind === 'unusable')
    throw refused(`relation "${inspection.target}" cannot be registered: ${inspection.why}`);
  const { columns, partitioned } = inspection.relation;
  const sequences = columns.flatMap(({ sequence, draws, identity }) =>
    draws.map((drawn) => ({
      schema: drawn.schema,
      name: drawn.name,
      byDefault: drawn.oid === sequence?.oid && !identity,
    })),
  );
  return { schema, name, bulk, partitioned, sequences };
}
