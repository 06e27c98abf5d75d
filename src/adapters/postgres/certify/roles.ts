import { RUN_PROVISION } from '../../../backend/failure.ts';
import { quoteName } from '../../../postgres/identifier.ts';
import { SQL } from '../sql.ts';
import { DANGEROUS, dangerOf, READING_ROLES } from './builtins.ts';
import { readRows, type SystemCatalog } from './catalog.ts';
import { at, type BoundaryFacts, behind, type SurveyContext } from './facts.ts';
import type { Route } from './reach.ts';

const ATTRIBUTES = [
  ['super', 'SUPERUSER', 'passes every check of the server'],
  ['createrole', 'CREATEROLE', 'makes roles and gives itself memberships'],
  ['createdb', 'CREATEDB', 'makes databases'],
  ['replication', 'REPLICATION', 'creates replication slots, which survive a rollback'],
  ['bypassrls', 'BYPASSRLS', 'passes row security'],
  ['inherit', 'INHERIT', 'uses the rights of any role it is granted at once'],
] as const;

/** The execution login itself: attributes, memberships, what it owns. */
export function surveyExecutor({ catalog, facts, outlets }: SurveyContext): void {
  const role = catalog.roles.find(({ name }) => name === facts.executor);
  const sql = quoteName(facts.executor);
  const open = (outlet: string, why: string, fix: string, needs: string, object = sql) =>
    outlets.open({ object, needs }, outlet, why, fix);
  if (role === undefined) {
    const why = 'The execution login does not exist';
    open(`role ${sql}`, why, `CREATE ROLE ${sql} LOGIN NOINHERIT`, 'CREATEROLE');
    return;
  }
  for (const [attribute, keyword, why] of ATTRIBUTES) {
    const outlet = `role attribute ${keyword}`;
    if (!role[attribute]) outlets.denied(outlet, `${sql} is NO${keyword}`);
    else open(outlet, `${sql} ${why}`, `ALTER ROLE ${sql} NO${keyword}`, 'superuser');
  }
  const memberships = catalog.memberships.filter(({ member }) => member === facts.executor);
  for (const { role: granted, admin, grantor } of memberships) {
    const name = quoteName(granted);
    const by = (catalog.server[0]?.major ?? 0) >= 16 ? ` GRANTED BY ${quoteName(grantor)}` : '';
    open(
      `membership in ${name}`,
      `${sql} may become ${name}${admin ? ' and may grant it' : ''}`,
      `REVOKE ${name} FROM ${sql}${by} CASCADE`,
      `ADMIN OPTION on ${name}`,
    );
  }
  if (memberships.length === 0)
    outlets.denied('memberships and SET ROLE', `${sql} is a member of no role`);
  for (const { description } of catalog.owned) {
    const why = `${sql} owns it, and an owner may alter it and its grants`;
    const fix = `REASSIGN OWNED BY ${sql} TO ${quoteName(ownerFor(catalog, facts))}`;
    const needs = 'superuser, or a member of both roles';
    open(`ownership of ${description}`, why, fix, needs, description);
  }
  if (catalog.owned.length === 0) outlets.denied('ownership', `${sql} owns nothing`);
}

const OWNER_ATTRIBUTES = [
  ['login', 'NOLOGIN'],
  ['super', 'NOSUPERUSER'],
  ['replication', 'NOREPLICATION'],
  ['createrole', 'NOCREATEROLE'],
] as const;

/** The role that owns our own objects. */
export function surveyTrustedRoles({ catalog, facts, outlets }: SurveyContext): void {
  const owner = catalog.roles.find(({ name }) => name === facts.owner);
  const sql = quoteName(facts.owner);
  for (const [attribute, keyword] of OWNER_ATTRIBUTES) {
    if (!owner?.[attribute]) continue;
    outlets.open(
      at.server(sql),
      `role ${sql} that owns the evidence`,
      `It must be ${keyword}: the recorders run with its rights`,
      `ALTER ROLE ${sql} ${keyword}`,
    );
  }
  const schema = catalog.schemas.find(({ name }) => name === 'effectmatch');
  if (schema === undefined) return;
  if (schema.owner === facts.owner)
    outlets.denied('schema effectmatch', `owned by ${sql}, which cannot log in`);
  else
    outlets.open(
      at.server('effectmatch'),
      'schema effectmatch',
      `It belongs to ${quoteName(schema.owner)}, not to ${sql}`,
      `ALTER SCHEMA effectmatch OWNER TO ${sql}`,
    );
}

/**
 * Rights whose use neither recorders nor counters would notice: superuser, replication, predefined
 * roles, parameters. Checks every role whose rights application code lends to the execution login.
 */
export async function surveyLentRights(context: SurveyContext): Promise<void> {
  const { control, catalog, facts, reach, outlets } = context;
  const query = SQL.rights.get('role_closure');
  const names = [...reach.principals.keys()];
  const closure = await readRows<{ member: string; role: string }>(control, query, [names]);
  const isSuper = (name: string) => catalog.roles.some((row) => row.name === name && row.super);
  for (const [name, route] of reach.principals) {
    const role = catalog.roles.find((row) => row.name === name);
    const sql = quoteName(name);
    const open = (fault: string, fix: readonly string[], needs = 'superuser') => {
      const why = `${sql} ${fault}, and its rights are lent by ${route.by}`;
      outlets.open(
        { object: sql, needs, behind: behind.role(name) },
        `rights of ${sql}`,
        why,
        ...fix,
      );
    };
    if (role?.super) open('is a superuser', route.close, 'the owner of the objects');
    else if (role?.replication) open('may replicate', [`ALTER ROLE ${sql} NOREPLICATION`]);
    else {
      const by = `lent by ${route.by}; its writes are counted for every table`;
      outlets.observed(`rights of ${sql}`, by);
    }
    const held = closure.filter(({ member }) => member === name).map((row) => row.role);
    for (const other of held) {
      const isServers = other.startsWith('pg_');
      const isDangerous = isServers ? !READING_ROLES.has(other) : isSuper(other);
      if (isServers && isDangerous && facts.tier === 'managed') {
        const by = 'the code that runs with these rights is read, and names nothing that uses them';
        outlets.denied(`${quoteName(other)} of ${sql}`, by, 'gate');
        continue;
      }
      const revoke = `REVOKE ${quoteName(other)} FROM ${sql} CASCADE`;
      if (isDangerous) open(`is a member of ${quoteName(other)}`, [revoke]);
    }
    for (const { kind, object, privilege, grantee } of catalog.grants) {
      if (kind !== 'PARAMETER' || ![name, ...held].includes(grantee)) continue;
      if (facts.tier === 'managed') {
        const by = 'the code that runs with this right is read, and sets no such parameter';
        outlets.denied(`parameter ${object} of ${sql}`, by, 'gate');
        continue;
      }
      const revoke = `REVOKE ${privilege} ON PARAMETER ${object} FROM ${quoteName(grantee)}`;
      open(`may ${privilege} the parameter ${object}`, [revoke]);
    }
  }
}

/** Dangerous built-ins that the execution login, or a role whose rights are lent, may call. */
export async function surveyBuiltins(context: SurveyContext): Promise<void> {
  const { control, facts, reach, outlets } = context;
  if (facts.tier === 'managed') {
    surveyReviewed(context);
    return;
  }
  const roles = [facts.executor, ...reach.principals.keys()];
  const rows = await readRows<{ role: string; name: string; object: string; grantees: string[] }>(
    control,
    SQL.rights.get('executable_builtins'),
    [roles],
  );
  const dangerous = rows.filter(({ name }) => dangerOf(name) !== undefined);
  for (const { role, name, object, grantees } of dangerous) {
    const route = reach.principals.get(role);
    const isMember = !grantees.includes('') && !grantees.includes(role);
    if (route !== undefined && isMember) {
      for (const group of grantees) openMembership(context, { role, group, route });
      continue;
    }
    const from = grantees
      .map((grantee) => (grantee === '' ? 'PUBLIC' : quoteName(grantee)))
      .join(', ');
    const via = route ? `, reached through ${route.by}` : '';
    const needs = 'superuser, or the owner of the built-in functions';
    outlets.open(
      { object, needs, behind: route && behind.role(role) },
      `built-in ${object}`,
      `${quoteName(role)} may execute it (granted to ${from})${via}; it ${dangerOf(name)}`,
      `REVOKE EXECUTE ON FUNCTION ${object} FROM ${from}`,
    );
  }
  const why = 'no volatile built-in outside the list of harmless ones is executable';
  if (!dangerous.some(({ role }) => role === facts.executor))
    outlets.denied('dangerous built-in functions', why);
}

/** One finding for all built-ins that a role may call as a member of another role. */
function openMembership(
  { outlets }: SurveyContext,
  lent: { readonly role: string; readonly group: string; readonly route: Route },
): void {
  const [role, group] = [quoteName(lent.role), quoteName(lent.group)];
  const needs = `superuser, or ADMIN OPTION on ${group}`;
  outlets.open(
    { object: role, needs, keep: RUN_PROVISION, behind: behind.role(lent.role) },
    `rights of ${role}`,
    `It may call built-ins that act outside the transaction, as a member of ${group}, and its rights are lent by ${lent.route.by}`,
    `REVOKE ${group} FROM ${role}`,
  );
}

/** Built-ins that every role may call because defaults cannot be revoked, by what they would do. */
function surveyReviewed({ unclosed, outlets }: SurveyContext): void {
  const groups = Map.groupBy(unclosed, ([, why]) => why);
  for (const [why, members] of groups) {
    const names = members.map(([name]) => name).join(', ');
    const by = `no statement and no code of the application may name ${names}`;
    outlets.denied(`built-in that ${why}`, by, 'gate');
  }
}

/**
 * A role other than the execution login that can own things: the owner of the first registered
 * relation, or else of the database.
 */
export function ownerFor(catalog: SystemCatalog, facts: BoundaryFacts): string {
  const registered = catalog.relations.find(({ oid }) => oid === facts.relations[0]?.oid);
  const isUsable = registered !== undefined && registered.owner !== facts.executor;
  return isUsable ? registered.owner : (catalog.server[0]?.owner ?? facts.owner);
}

/**
 * MD5 digests, as the server computes them, of the few built-ins of PostgreSQL 15 and 17 whose body
 * is an SQL string.
 */
const SQL_TEXTS: readonly string[] = [
  '693d427fcd1b0b7b530633f099a2c224', // quote_literal
  '945146006b285e964ac83073e10a3d6b', // quote_nullable
  'd046c267fcecd57d0b3fce72693ceda7', // textanycat
  '0c69a54529e0b0d08acb589274812be8', // anytextcat
  '867fc328ffe013628f28861c201d2ca9', // _pg_expandarray of 15
  'f0ed363c107a0828181f785bb538b85b', // _pg_expandarray of 17
];

/**
 * Built-ins that were replaced or given rights. Nothing else in the survey would notice, because
 * built-ins are judged by name. Checks all roles that an execution or our own functions run as.
 */
export async function surveyReplaced({
  control,
  facts,
  reach,
  outlets,
}: SurveyContext): Promise<void> {
  const roles = [facts.executor, facts.control, facts.owner, ...reach.principals.keys()];
  const rows = await readRows<{
    object: string;
    definer: boolean;
    configured: boolean;
    roles: readonly string[];
  }>(control, SQL.rights.get('replaced_builtins'), [
    roles,
    Object.values(DANGEROUS).flat(),
    SQL_TEXTS,
  ]);
  for (const { object, definer, configured, roles: able } of rows) {
    const callers = able.map(quoteName).join(', ');
    const open = (why: string, fix: string) =>
      outlets.open(at.server(object), `built-in ${object}`, why, fix);
    if (definer)
      open(
        'It is SECURITY DEFINER, with the rights of a superuser, and the server came with it otherwise',
        `ALTER ROUTINE ${object} SECURITY INVOKER`,
      );
    else if (configured)
      open(
        'It has its own settings, and the server came with it otherwise',
        `ALTER ROUTINE ${object} RESET ALL`,
      );
    else
      open(
        `It is not the one that the server came with, and ${callers} may execute it`,
        `REVOKE EXECUTE ON ROUTINE ${object} FROM PUBLIC, ${callers}`,
      );
  }
  if (rows.length === 0)
    outlets.denied(
      'replaced built-in functions',
      'every built-in is the one that the server came with',
    );
}
