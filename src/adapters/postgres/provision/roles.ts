import { quoteLiteral, quoteName } from '../../../postgres/identifier.ts';

/** The three roles of a deployment. They are cluster-wide; one set may serve several databases. */
export interface RoleNames {
  /** Owns schema `effectmatch` and its functions; nobody logs in as it. */
  readonly owner: string;
  /** Trusted login: surveys, markers, recovery. Never runs agent SQL or application code. */
  readonly control: string;
  /** Restricted login that runs agent statements. */
  readonly execution: string;
}

/** What the restricted login is, and is not. */
const RESTRICTED = 'login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls';
const TRUSTED = 'login nosuperuser nocreatedb nocreaterole noreplication nobypassrls';
const OWNER = 'nologin nosuperuser nocreatedb nocreaterole noreplication nobypassrls';

/** Creates a role where it is missing and takes away what it must not have. */
export function createRoles(roles: RoleNames): readonly string[] {
  return [
    ...createRole(roles.owner, OWNER),
    ...createRole(roles.control, TRUSTED),
    ...createRole(roles.execution, RESTRICTED),
    // Outside the transaction that a stage opens for writing, this login writes nothing at all.
    `alter role ${quoteName(roles.execution)} set default_transaction_read_only = on`,
  ];
}

function createRole(name: string, attributes: string): readonly string[] {
  // Another database of the cluster may be provisioned at the same moment, and roles are shared.
  return [
    `do $$ begin
  if not exists (select from pg_catalog.pg_roles where rolname = ${quoteLiteral(name)}) then
    create role ${quoteName(name)} ${attributes};
  end if;
exception when duplicate_object or unique_violation then null;
end $$`,
  ];
}

export function dropRoles({ owner, control, execution }: RoleNames): readonly string[] {
  return [execution, control, owner].map((role) => `drop role if exists ${quoteName(role)}`);
}
