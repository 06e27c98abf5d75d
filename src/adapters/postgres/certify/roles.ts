import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import { dangerOf, READING_ROLES } from './builtins.ts';
import { type Catalog, type Role, readRows, type TextReader } from './catalog.ts';
import type { BoundaryFacts, Outlets } from './facts.ts';
import type { Reach, Route } from './reach.ts';

const ATTRIBUTES = [
  ['super', 'SUPERUSER', 'passes every check of the server'],
  ['createrole', 'CREATEROLE', 'makes roles and gives itself memberships'],
  ['createdb', 'CREATEDB', 'makes databases'],
  ['replication', 'REPLICATION', 'creates replication slots, which survive a rollback'],
  ['bypassrls', 'BYPASSRLS', 'passes row security'],
  ['inherit', 'INHERIT', 'uses the rights of any role it is granted at once'],
] as const;

/** The execution login itself: attributes, memberships, what it owns. */
export function surveyExecutor(catalog: Catalog, facts: BoundaryFacts, outlets: Outlets): void {
  const role = catalog.roles.find(({ name }) => name === facts.executor);
  const sql = quoteName(facts.executor);
  if (role === undefined) {
    const fix = [`CREATE ROLE ${sql} LOGIN NOINHERIT`];
    outlets.open({
      outlet: `role ${sql}`,
      object: sql,
      why: 'The execution login does not exist',
      fix,
      needs: 'CREATEROLE',
    });
    return;
  }
  for (const [attribute, keyword, why] of ATTRIBUTES) {
    const outlet = `role attribute ${keyword}`;
    if (!role[attribute]) outlets.denied(outlet, `${sql} is NO${keyword}`);
    else
      outlets.open({
        outlet,
        object: sql,
        why: `${sql} ${why}`,
        fix: [`ALTER ROLE ${sql} NO${keyword}`],
        needs: 'superuser',
      });
  }
  const memberships = catalog.memberships.filter(({ member }) => member === facts.executor);
  for (const { role: granted, admin, grantor } of memberships) {
    outlets.open({
      outlet: `membership in ${quoteName(granted)}`,
      object: sql,
      why: `${sql} may become ${quoteName(granted)}${admin ? ' and may grant it' : ''}`,
      fix: [
        `REVOKE ${quoteName(granted)} FROM ${sql}${majorOf(catalog) >= 16 ? ` GRANTED BY ${quoteName(grantor)} CASCADE` : ' CASCADE'}`,
      ],
      needs: `ADMIN OPTION on ${quoteName(granted)}`,
    });
  }
  if (memberships.length === 0)
    outlets.denied('memberships and SET ROLE', `${sql} is a member of no role`);
  for (const { description } of catalog.owned) {
    outlets.open({
      outlet: `ownership of ${description}`,
      object: description,
      why: `${sql} owns it, and an owner may alter it and its grants`,
      fix: [`REASSIGN OWNED BY ${sql} TO ${quoteName(ownerFor(catalog, facts))}`],
      needs: 'superuser, or a member of both roles',
    });
  }
  if (catalog.owned.length === 0) outlets.denied('ownership', `${sql} owns nothing`);
}

/** The roles that the product's own objects rest on. */
export function surveyTrustedRoles(catalog: Catalog, facts: BoundaryFacts, outlets: Outlets): void {
  const owner = catalog.roles.find(({ name }) => name === facts.owner);
  const sql = quoteName(facts.owner);
  const faults: (readonly [keyof Role, string])[] = [
    ['login', 'NOLOGIN'],
    ['super', 'NOSUPERUSER'],
    ['replication', 'NOREPLICATION'],
    ['createrole', 'NOCREATEROLE'],
  ];
  for (const [attribute, keyword] of faults) {
    if (!owner?.[attribute]) continue;
    outlets.open({
      outlet: `role ${sql} that owns the evidence`,
      object: sql,
      why: `It must be ${keyword}: the recorders run with its rights`,
      fix: [`ALTER ROLE ${sql} ${keyword}`],
      needs: 'superuser',
    });
  }
  const schema = catalog.schemas.find(({ name }) => name === 'effectmatch');
  if (schema && schema.owner !== facts.owner) {
    outlets.open({
      outlet: 'schema effectmatch',
      object: 'effectmatch',
      why: `It belongs to ${quoteName(schema.owner)}, not to ${sql}`,
      fix: [`ALTER SCHEMA effectmatch OWNER TO ${sql}`],
      needs: 'superuser',
    });
  } else if (schema) outlets.denied('schema effectmatch', `owned by ${sql}, which cannot log in`);
}

/**
 * Rights that neither recorders nor counters would notice being used, for the execution login and
 * for every role whose rights application code lends it: the server's own roles, replication,
 * superuser, dangerous built-ins.
 */
export async function surveyRights(
  control: TextReader,
  {
    catalog,
    facts,
    reach,
    outlets,
  }: { catalog: Catalog; facts: BoundaryFacts; reach: Reach; outlets: Outlets },
): Promise<void> {
  for (const [name, route] of reach.principals) {
    const role = catalog.roles.find((row) => row.name === name);
    if (role?.super)
      lent(outlets, name, 'is a superuser', route, route.close, 'the owner of the objects');
    else if (role?.replication) {
      lent(
        outlets,
        name,
        'may replicate',
        route,
        [`ALTER ROLE ${quoteName(name)} NOREPLICATION`],
        'superuser',
      );
    } else
      outlets.observed(
        `rights of ${quoteName(name)}`,
        `lent by ${route.by}; its writes are counted for every table`,
      );
  }
  const roles = [facts.executor, ...reach.principals.keys()];
  const closure = await readRows<{ member: string; role: string }>(
    control,
    SQL.rights.get('role_closure'),
    [roles.slice(1)],
  );
  for (const { member, role } of closure) {
    const route = reach.principals.get(member);
    const isDangerous = role.startsWith('pg_')
      ? !READING_ROLES.has(role)
      : catalog.roles.some((row) => row.name === role && row.super);
    if (route && isDangerous)
      lent(
        outlets,
        member,
        `is a member of ${quoteName(role)}`,
        route,
        [`REVOKE ${quoteName(role)} FROM ${quoteName(member)} CASCADE`],
        'superuser',
      );
  }
  for (const [member, route] of reach.principals) {
    const held = new Set([
      member,
      ...closure.filter((row) => row.member === member).map(({ role }) => role),
    ]);
    for (const { kind, object, privilege, grantee } of catalog.grants) {
      if (kind !== 'PARAMETER' || !held.has(grantee)) continue;
      const fix = [`REVOKE ${privilege} ON PARAMETER ${object} FROM ${quoteName(grantee)}`];
      lent(outlets, member, `may ${privilege} the parameter ${object}`, route, fix, 'superuser');
    }
  }
  await surveyBuiltins(control, roles, reach, outlets);
}

async function surveyBuiltins(
  control: TextReader,
  roles: readonly string[],
  reach: Reach,
  outlets: Outlets,
): Promise<void> {
  const rows = await readRows<{ role: string; name: string; object: string; grantees: string[] }>(
    control,
    SQL.rights.get('executable_builtins'),
    [roles],
  );
  const open = rows.flatMap((row) => {
    const danger = dangerOf(row.name);
    return danger === undefined ? [] : [{ ...row, danger }];
  });
  for (const { role, object, grantees, danger } of open) {
    const route = reach.principals.get(role);
    const from = grantees
      .map((grantee) => (grantee === '' ? 'PUBLIC' : quoteName(grantee)))
      .join(', ');
    outlets.open({
      outlet: `built-in ${object}`,
      object,
      why: `${quoteName(role)} may execute it (granted to ${from})${route ? `, reached through ${route.by}` : ''}; it ${danger}`,
      fix: [`REVOKE EXECUTE ON FUNCTION ${object} FROM ${from}`],
      needs: 'superuser, or the owner of the built-in functions',
    });
  }
  if (!open.some(({ role }) => role === roles[0])) {
    outlets.denied(
      'dangerous built-in functions',
      'no volatile built-in outside the list of harmless ones is executable',
    );
  }
}

function lent(
  outlets: Outlets,
  name: string,
  fault: string,
  route: Route,
  fix: readonly string[],
  needs: string,
): void {
  const sql = quoteName(name);
  const why = `${sql} ${fault}, and its rights are lent by ${route.by}`;
  outlets.open({ outlet: `rights of ${sql}`, object: sql, why, fix, needs });
}

/**
 * Someone other than the execution login to own things: the owner of the first registered relation.
 */
export function ownerFor(catalog: Catalog, facts: BoundaryFacts): string {
  const registered = catalog.relations.find(({ oid }) => oid === facts.relations[0]?.oid);
  const isUsable = registered !== undefined && registered.owner !== facts.executor;
  return isUsable ? registered.owner : (catalog.server[0]?.owner ?? facts.owner);
}

/** The server's major version. */
export function majorOf(catalog: Catalog): number {
  return catalog.server[0]?.major ?? 0;
}
