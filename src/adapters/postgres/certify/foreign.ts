import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import { type RelationRow, readRows, type TextReader } from './catalog.ts';
import { at, behind, type SurveyContext } from './facts.ts';
import { isTrustedExtension } from './functions.ts';
import { closeExecute, type Route } from './reach.ts';

/** An object that a role has the right to use. */
interface Usable {
  readonly role: string;
  readonly kind: string;
  readonly oid: number;
}

/** Functions, foreign tables, servers and wrappers that these roles may use, without superusers. */
export async function readUsable(
  control: TextReader,
  roles: readonly string[],
): Promise<readonly Usable[]> {
  return await readRows<Usable>(control, SQL.rights.get('usable_by'), [roles]);
}

/** Native code, foreign tables and servers that can be used by a role whose rights are lent. */
export async function surveyLentCode(context: SurveyContext): Promise<void> {
  const { control, catalog, facts, reach, outlets } = context;
  const roles = [facts.executor, ...reach.principals.keys()];
  for (const usable of await readUsable(control, roles)) {
    const route = reach.principals.get(usable.role);
    if (usable.kind === 'foreign table') openForeignTable(context, usable, route);
    else if (route === undefined) continue;
    else if (usable.kind === 'function') openNative(context, usable, route);
    else openForeignServer(context, usable, route);
  }
  for (const { name, version } of catalog.extensions) {
    const isOpen = outlets.problems.some(({ object }) =>
      catalog.functions.some((row) => row.extension === name && row.object === object),
    );
    if (isOpen || isTrustedExtension(name, facts)) continue;
    const outlet = `extension ${quoteName(name)} ${version}`;
    if (facts.tier === 'managed')
      outlets.denied(outlet, 'no statement and no code may name its functions', 'gate');
    else outlets.denied(outlet, 'no role that an execution can act as may execute its functions');
  }
}

function openForeignTable(
  { index, outlets }: SurveyContext,
  { role, oid }: Usable,
  route: Route | undefined,
): void {
  const row = index.relation.get(oid);
  if (row === undefined) return;
  const via = route ? `, whose rights are lent by ${route.by}` : '';
  const fix =
    row.owner === role
      ? `DROP FOREIGN TABLE ${row.object}`
      : `REVOKE ALL ON TABLE ${row.object} FROM PUBLIC, ${quoteName(role)}`;
  outlets.open(
    placeOf(row, role, route),
    `foreign table ${row.object}`,
    `${quoteName(role)}${via} may use it: its rows are on another server and do not roll back with ours`,
    fix,
  );
}

/** A relation that the execution login can use, or a role whose rights are lent. */
function placeOf(row: RelationRow, role: string, route: Route | undefined) {
  const place = at.relation(row);
  return route ? { ...place, behind: behind.role(role) } : place;
}

function openNative(
  { facts, index, outlets }: SurveyContext,
  { role, oid }: Usable,
  route: Route,
): void {
  const row = index.function.get(oid);
  if (facts.tier === 'managed') return;
  if (row === undefined || isTrustedExtension(row.extension, facts)) return;
  if (['sql', 'plpgsql', 'internal'].includes(row.language)) return;
  outlets.open(
    { ...at.owned(row), behind: behind.role(role) },
    `function ${row.object}`,
    `${quoteName(role)} may execute this ${row.language} function, and its rights are lent by ${route.by}`,
    ...closeExecute(row, role),
  );
}

/**
 * A role that may use a foreign server can create a table on it in a function, and what is sent
 * there does not roll back with ours.
 */
function openForeignServer(
  { catalog, facts, outlets }: SurveyContext,
  { role, kind, oid }: Usable,
  route: Route,
): void {
  const rows = kind === 'foreign server' ? catalog.servers : catalog.wrappers;
  const found = rows.find((row) => row.oid === oid);
  if (found === undefined) return;
  const name = kind.toUpperCase();
  const superuser = catalog.roles.find((row) => row.super)?.name ?? facts.owner;
  const owner = `ALTER ${name.replace('FOREIGN SERVER', 'SERVER')} ${found.object} OWNER TO ${quoteName(superuser)}`;
  outlets.open(
    { ...at.server(found.object), behind: behind.role(role) },
    `${kind} ${found.object}`,
    `${quoteName(role)} may use it, and its rights are lent by ${route.by}: what is sent to another server does not roll back with ours`,
    ...(found.owner === role ? [owner] : []),
    `REVOKE USAGE ON ${name} ${found.object} FROM PUBLIC, ${quoteName(role)}`,
  );
}

/**
 * Foreign tables behind views and parent tables. Reading one can make the other server write or run
 * a program, and its writes become durable with our commit or before it.
 */
export async function surveyForeignBeneath(context: SurveyContext): Promise<void> {
  const { control, facts, index, reach, outlets } = context;
  const roles = [facts.executor, ...reach.principals.keys()];
  const query = SQL.rights.get('foreign_beneath');
  const rows = await readRows<{ role: string; root: number; oid: number }>(control, query, [roles]);
  for (const { role, root, oid } of rows) {
    const [above, foreign] = [index.relation.get(root), index.relation.get(oid)];
    if (above === undefined || foreign === undefined) continue;
    // Partitions of registered tables, and tables that a role owns, are judged elsewhere.
    if (index.registered.has(root) || foreign.owner === role) continue;
    const route = reach.principals.get(role);
    const via = route ? `, whose rights are lent by ${route.by},` : '';
    const fix =
      above.owner === role
        ? `DROP FOREIGN TABLE ${foreign.object} CASCADE`
        : `REVOKE ALL ON TABLE ${above.object} FROM PUBLIC, ${quoteName(role)}`;
    outlets.open(
      placeOf(above, role, route),
      `foreign table ${foreign.object} beneath ${above.object}`,
      `${quoteName(role)}${via} reads it through ${above.object}: what that makes the other server do does not roll back with ours`,
      fix,
    );
  }
}

/** Surveys foreign servers that the execution login could connect to. */
export function surveyServers({ catalog, facts, outlets }: SurveyContext): void {
  for (const { object, wrapper, owner } of catalog.servers) {
    const users = catalog.mappings.filter(({ server }) => server === object);
    const reached = users.filter(({ user }) => [facts.executor, 'public', '', null].includes(user));
    for (const { user } of reached) {
      const login = user === facts.executor ? quoteName(user) : 'PUBLIC';
      outlets.open(
        at.owned({ object, owner }),
        `user mapping of ${login} on ${object}`,
        `${quoteName(facts.executor)} can log in to another server with it`,
        `DROP USER MAPPING FOR ${login} SERVER ${object}`,
      );
    }
    if (reached.length > 0) continue;
    const why = 'no user mapping and no foreign table within reach';
    outlets.denied(`foreign server ${object} (${wrapper})`, why);
  }
  if (catalog.servers.length === 0) outlets.denied('foreign servers', 'none');
}
