import {
  type QualifiedName,
  quoteLiteral,
  quoteName,
  quoteQualified,
} from '../../../postgres/identifier.ts';
import { hardeningStatements } from '../certify/hardening.ts';
import { createFunction, FUNCTIONS } from './functions.ts';
import { createRecorders, dropRecorders, type Recorded } from './recorders.ts';
import { createRoles, type RoleNames } from './roles.ts';
import { GUARD, PROBE_TABLE, TABLES } from './tables.ts';

/**
 * One statement of a provisioning script, with why it is there and what the role that runs it must
 * be.
 */
export interface ProvisionStep {
  readonly sql: string;
  readonly why: string;
  readonly needs: string;
}

/**
 * A sequence that fills a column. A default draws from it with the rights of whoever inserts, an
 * identity does not.
 */
export interface DrawnSequence extends QualifiedName {
  readonly byDefault: boolean;
}

/** A function or procedure; the types of its inputs tell it from others of its name. */
export interface ProvisionedRoutine extends QualifiedName {
  readonly inputs?: readonly string[];
}

/** What a script is made for. */
export interface ProvisionPlan {
  readonly database: string;
  readonly roles: RoleNames;
  readonly relations: readonly (Recorded & { readonly sequences: readonly DrawnSequence[] })[];
  /** Views that operations may write through. */
  readonly views: readonly (QualifiedName & { readonly events: readonly string[] })[];
  /** Relations that approvals may depend on without writing them. */
  readonly reads: readonly QualifiedName[];
  /** Some of these tables have row security, which trusted logins read past. */
  readonly rowSecurity: boolean;
  /** Functions and procedures that agents may call. */
  readonly entryPoints: readonly ProvisionedRoutine[];
  readonly passwords: {
    readonly control: string | undefined;
    readonly execution: string | undefined;
  };
}

/**
 * A script that can be read, run, and run again: everything that the adapter relies on in the
 * database.
 */
export function provisionSteps(plan: ProvisionPlan): readonly ProvisionStep[] {
  const { roles, relations } = plan;
  const [owner, control, execution] = [roles.owner, roles.control, roles.execution].map(quoteName);
  const by = (
    needs: string,
    why: string,
    statements: readonly string[],
  ): readonly ProvisionStep[] => statements.map((sql) => ({ sql, why, needs }));
  const admin = 'CREATEROLE and ownership of the database';
  return [
    ...by(
      'CREATEROLE',
      'three roles: the owner of the records, the trusted login, the restricted login',
      [
        ...createRoles(roles),
        `do $$ begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    execute format('grant %s to %I', ${quoteLiteral(owner ?? '')}, current_user);
  end if;
end $$`,
      ],
    ),
    ...by('CREATEROLE', 'passwords of the two logins', setPasswords(plan)),
    ...by(admin, 'both logins connect, and the owner makes its schema', [
      `grant connect on database ${quoteName(plan.database)} to ${control}, ${execution}`,
      `grant create on database ${quoteName(plan.database)} to ${owner}`,
    ]),
    ...by(admin, 'the record channel, markers and trusted functions', [
      `set role ${owner}`,
      'create schema if not exists effectmatch',
      ...TABLES,
      ...FUNCTIONS.map(createFunction),
      ...GUARD,
      ...grantFunctions(roles),
      'revoke all on all tables in schema effectmatch from public',
      `grant usage on schema effectmatch to ${control}, ${execution}`,
      `grant select, insert, delete on effectmatch.marker to ${control}`,
      `grant select, delete on effectmatch.record, effectmatch.stage to ${control}`,
      `grant select on effectmatch.probe to ${control}`,
      `grant insert on effectmatch.probe to ${execution}`,
      ...createRecorders({ ...PROBE_TABLE, bulk: false, partitioned: false }, roles.execution),
      'reset role',
      `revoke create on database ${quoteName(plan.database)} from ${owner}`,
    ]),
    ...hardeningSteps(plan),
    ...relations.flatMap((relation) =>
      by(`ownership of ${quoteQualified(relation)}`, `recorders and rights on ${relation.name}`, [
        ...grantRelation(relation, roles),
        ...createRecorders(relation, roles.execution),
      ]),
    ),
    ...plan.views.flatMap((view) =>
      by(`ownership of ${quoteQualified(view)}`, `rights on view ${view.name}`, [
        `grant usage on schema ${quoteName(view.schema)} to ${execution}`,
        `grant ${['select', ...view.events].join(', ')} on ${quoteQualified(view)} to ${execution}`,
      ]),
    ),
    ...(plan.rowSecurity
      ? by(
          'superuser',
          'approvals may depend on rows with row security, and no policy runs for that',
          [`alter role ${control} bypassrls`, `alter role ${owner} bypassrls`],
        )
      : []),
    ...plan.reads.flatMap((relation) =>
      by(
        `ownership of ${quoteQualified(relation)}`,
        `approvals may depend on rows of ${relation.name}`,
        [...grantReads(relation, roles)],
      ),
    ),
    ...plan.entryPoints.flatMap((entry) =>
      by(`ownership of ${quoteQualified(entry)}`, 'an entry point that agents may call', [
        `revoke execute on routine ${quoteRoutine(entry)} from public`,
        `grant usage on schema ${quoteName(entry.schema)} to ${execution}`,
        `grant execute on routine ${quoteRoutine(entry)} to ${execution}`,
      ]),
    ),
  ];
}

function quoteRoutine({ inputs, ...name }: ProvisionedRoutine): string {
  return `${quoteQualified(name)}${inputs === undefined ? '' : `(${inputs.join(', ')})`}`;
}

/**
 * What PostgreSQL lets everybody do by default and an agent must not. Most of it needs a superuser.
 */
function hardeningSteps({ database, roles }: ProvisionPlan): readonly ProvisionStep[] {
  const { owner, control, execution } = roles;
  return hardeningStatements({ database, owner, control, executor: execution });
}

/**
 * Takes away what {@link provisionSteps} added, markers last. Roles stay where other databases
 * still use them.
 */
export function removalSteps(plan: ProvisionPlan): readonly ProvisionStep[] {
  const roles = [plan.roles.execution, plan.roles.control, plan.roles.owner].map(quoteName);
  const step = (sql: string, why: string): ProvisionStep => ({
    sql,
    why,
    needs: 'ownership of the objects',
  });
  return [
    ...plan.relations.flatMap((relation) =>
      dropRecorders(relation).map((sql) => step(sql, 'recorders')),
    ),
    step('drop schema if exists effectmatch cascade', 'the record channel and the markers'),
    ...roles.map((role) => step(`drop owned by ${role}`, 'rights of the roles in this database')),
    ...roles.map((role) =>
      step(
        `do $$ begin drop role if exists ${role}; exception when dependent_objects_still_exist then null; end $$`,
        'roles that no other database uses',
      ),
    ),
  ];
}

function setPasswords({ roles, passwords }: ProvisionPlan): readonly string[] {
  return (['control', 'execution'] as const).flatMap((role) => {
    const password = passwords[role];
    return password === undefined
      ? []
      : [`alter role ${quoteName(roles[role])} password ${quoteLiteral(password)}`];
  });
}

function grantFunctions(roles: RoleNames): readonly string[] {
  return FUNCTIONS.flatMap(({ name, caller }) => [
    `revoke all on function effectmatch.${name} from public`,
    ...(caller === 'nobody'
      ? []
      : [`grant execute on function effectmatch.${name} to ${quoteName(roles[caller])}`]),
  ]);
}

function grantRelation(
  relation: ProvisionPlan['relations'][number],
  { owner, control, execution }: RoleNames,
): readonly string[] {
  const table = quoteQualified(relation);
  return [
    `grant usage on schema ${quoteName(relation.schema)} to ${quoteName(owner)}, ${quoteName(control)}, ${quoteName(execution)}`,
    grantTypes(table, execution),
    `grant select, insert, update, delete on ${table} to ${quoteName(execution)}`,
    `grant select, update on ${table} to ${quoteName(owner)}`,
    `grant select on ${table} to ${quoteName(control)}`,
    ...relation.sequences.flatMap((sequence) => [
      ...(sequence.byDefault
        ? [`grant usage on sequence ${quoteQualified(sequence)} to ${quoteName(execution)}`]
        : []),
      `grant select on sequence ${quoteQualified(sequence)} to ${quoteName(owner)}`,
    ]),
  ];
}

/**
 * Values are cast to the types of the columns with the rights of the execution login, so it must
 * see their schemas.
 */
function grantTypes(table: string, execution: string): string {
  return `do $$ declare s name; begin
  for s in select distinct n.nspname from pg_catalog.pg_attribute as a
      join pg_catalog.pg_type as t on t.oid = a.atttypid join pg_catalog.pg_namespace as n on n.oid = t.typnamespace
      where a.attrelid = ${quoteLiteral(table)}::pg_catalog.regclass and a.attnum > 0 and not a.attisdropped and n.nspname <> 'pg_catalog' loop
    execute format('grant usage on schema %I to %I', s, ${quoteLiteral(execution)});
  end loop;
end $$`;
}

function grantReads(relation: QualifiedName, { owner, control }: RoleNames): readonly string[] {
  const table = quoteQualified(relation);
  return [
    `grant usage on schema ${quoteName(relation.schema)} to ${quoteName(owner)}, ${quoteName(control)}`,
    `grant select, update on ${table} to ${quoteName(owner)}`,
    `grant select on ${table} to ${quoteName(control)}`,
  ];
}
