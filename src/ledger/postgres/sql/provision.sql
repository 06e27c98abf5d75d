-- Roles and rights of a ledger. Every statement can be repeated.

-- name: create_owner
-- Another database of the cluster may be provisioned at the same moment, and roles are shared.
do $effectmatch$
begin
  if not exists (select from pg_catalog.pg_roles where rolname = :'owner') then
    create role :"owner"
      nologin nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
  end if;
exception when duplicate_object or unique_violation then null;
end
$effectmatch$;

-- name: create_login
do $effectmatch$
begin
  if not exists (select from pg_catalog.pg_roles where rolname = :'login') then
    create role :"login"
      login noinherit nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
  end if;
exception when duplicate_object or unique_violation then null;
end
$effectmatch$;

-- name: set_password
alter role :"login" password :'password';

-- name: lend_owner
-- An administrator who is not a superuser must be able to act as the owner.
do $effectmatch$
begin
  if not (select rolsuper from pg_catalog.pg_roles where rolname = current_user) then
    execute format('grant %I to %I', :'owner', current_user);
  end if;
end
$effectmatch$;

-- name: connect
grant connect on database :"database" to :"login";

-- name: pin_path
-- A path that is stored on the database must not choose what names mean.
alter role :"login" in database :"database" set search_path = pg_catalog, pg_temp;

-- name: let_owner_create
grant create on database :"database" to :"owner";

-- name: let_owner_write_functions
-- Where the language was taken from PUBLIC, which closes it to agents.
do $effectmatch$
begin
  if not pg_catalog.has_language_privilege(:'owner', 'plpgsql', 'usage') then
    grant usage on language plpgsql to :"owner";
  end if;
end
$effectmatch$;

-- name: become_owner
set local role :"owner";

-- name: create_schema
create schema if not exists :"schema";

-- name: close_schema
revoke all on schema :"schema" from public;

-- name: use_schema
grant usage on schema :"schema" to :"login";

-- name: read_tables
grant select on all tables in schema :"schema" to :"login";

-- name: append
-- Rows of the journal, checkpoints and documents are never changed or removed by this login.
grant insert on :"schema".journal, :"schema".issuance, :"schema".unsettled, :"schema".plan,
  :"schema".checkpoint, :"schema".document to :"login";

-- name: take_turns
-- Without this right a row cannot be locked.
grant update on :"schema".turn to :"login";

-- name: count_positions
grant update (positions) on :"schema".head to :"login";

-- name: count_claims_right
grant update (claimed) on :"schema".issuance to :"login";

-- name: settle_claims
grant update (lease_until_ms), delete on :"schema".unsettled to :"login";

-- name: raise_plans
grant update (revision) on :"schema".plan to :"login";

-- name: decide_right
grant execute on function :"schema".decide to :"login";

-- name: leave_owner
reset role;

-- name: stop_owner_creating
revoke create on database :"database" from :"owner";

-- name: drop_schema
drop schema if exists :"schema" cascade;

-- name: drop_owned
do $effectmatch$
begin
  if exists (select from pg_catalog.pg_roles where rolname = :'role') then
    drop owned by :"role";
  end if;
end
$effectmatch$;

-- name: drop_role
-- Stays where another database still uses it.
do $effectmatch$
begin
  drop role if exists :"role";
exception when dependent_objects_still_exist then null;
end
$effectmatch$;
