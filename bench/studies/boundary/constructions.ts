import { definePay, payment } from './shop.ts';
import { EXEC } from './site.ts';

/**
 * One configuration of the inventory, or a change to it, and how an approved payment must end.
 */
export interface Construction {
  readonly group: Group;
  readonly name: string;
  /** Superuser SQL that sets up the configuration before the runtime opens the database. */
  readonly open?: string;
  /** Superuser SQL that runs after the action, while its candidate is held. */
  readonly whileHeld?: string;
  /** Superuser SQL that undoes the configuration. */
  readonly close?: string;
  /** What the agent submits. Defaults to the approved statement. */
  readonly action?: (id: number) => unknown;
  /**
   * A statement that the agent's login can run without protection, which shows that the
   * configuration is really in effect.
   */
  readonly reach?: { readonly sql: string; readonly ends: string };
  readonly expected: Expected;
}

/**
 * `denied` is the outlet that must be listed as closed. At `boundary` there must be an open outlet,
 * and every open outlet must match. At `final-gate` the configuration differs from the certified
 * one.
 */
export type Expected =
  | { readonly kind: 'committed'; readonly denied?: RegExp }
  | { readonly kind: 'refused'; readonly at: 'admission'; readonly because: RegExp }
  | { readonly kind: 'refused'; readonly at: 'boundary'; readonly open: RegExp }
  | { readonly kind: 'refused'; readonly at: 'final-gate' };

export const GROUPS = [
  'base/foreign database',
  'host/network',
  'asynchronous signals',
  'function/configuration drift',
  'continuation authority',
] as const;
export type Group = (typeof GROUPS)[number];

/** The channel on which the study listens. */
export const CHANNEL = 'leak';

const closeFunctions = (extension: string) => `do $$ declare f regprocedure; begin
    for f in select objid from pg_depend where refclassid = 'pg_extension'::regclass and classid = 'pg_proc'::regclass
        and deptype = 'e' and refobjid = (select oid from pg_extension where extname = '${extension}') loop
      execute format('revoke execute on function %s from public', f);
    end loop;
  end $$;`;

const FOREIGN = `create extension postgres_fdw; ${closeFunctions('postgres_fdw')}
  create server elsewhere foreign data wrapper postgres_fdw options (dbname 'postgres');
  create foreign table app.far (id int) server elsewhere;`;
const DROP_FOREIGN = 'drop extension postgres_fdw cascade';
const COPY = { sql: `copy (select 1) to '/nowhere/at/all'` };
const DENIED = '42501';
const PASSES = { kind: 'committed' } as const;
const CALL = (id: number) => ({ call: 'app.pay', values: [id] });
/** The approved statement, and one that uses the open outlet. */
const payAnd = (sql: string) => (id: number) => ({ statements: [payment(id), { sql }] });

/** The constructions that concern the database. Those of continuations are elsewhere. */
export const CONSTRUCTIONS: readonly Construction[] = [
  { group: 'base/foreign database', name: 'stable certificate', expected: PASSES },
  {
    group: 'base/foreign database',
    name: 'foreign table that the agent may not use',
    open: FOREIGN,
    close: DROP_FOREIGN,
    reach: { sql: 'insert into app.far values (1)', ends: DENIED },
    expected: { kind: 'committed', denied: /^extension "postgres_fdw" / },
  },
  {
    group: 'base/foreign database',
    name: 'foreign table that the agent may write',
    open: `${FOREIGN} grant insert on app.far to ${EXEC}`,
    close: DROP_FOREIGN,
    action: payAnd('insert into app.far values (1)'),
    // The privilege check passes; only a login on the other server is missing.
    reach: { sql: 'insert into app.far values (1)', ends: '42704' },
    expected: { kind: 'refused', at: 'boundary', open: /\bapp\.far\b/ },
  },
  {
    group: 'base/foreign database',
    name: 'callable path to another database',
    open: `create extension dblink schema public; create function app.elsewhere() returns text[]
      language sql as 'select public.dblink_get_connections()'`,
    close: 'drop function app.elsewhere; drop extension dblink',
    action: payAnd('select app.elsewhere()'),
    reach: { sql: 'select app.elsewhere()', ends: 'works' },
    expected: { kind: 'refused', at: 'boundary', open: /\bdblink|\bapp\.elsewhere/ },
  },
  {
    group: 'host/network',
    name: 'host roles that only others have',
    open: 'create role ops nologin; grant pg_write_server_files, pg_execute_server_program to ops',
    close: 'drop role ops',
    reach: { ...COPY, ends: DENIED },
    expected: { kind: 'committed', denied: /^memberships and SET ROLE$/ },
  },
  {
    group: 'host/network',
    name: 'host and network extensions out of reach',
    open: `create extension file_fdw; create extension dblink schema public;
      ${closeFunctions('file_fdw')} ${closeFunctions('dblink')}`,
    close: 'drop extension file_fdw; drop extension dblink',
    reach: { sql: 'select public.dblink_get_connections()', ends: DENIED },
    expected: { kind: 'committed', denied: /^extension "file_fdw" / },
  },
  {
    group: 'host/network',
    name: 'host role given to the agent',
    open: `grant pg_write_server_files to ${EXEC} with inherit true`,
    close: `revoke pg_write_server_files from ${EXEC}`,
    // The privilege check passes; only the folder is missing.
    reach: { ...COPY, ends: '58P01' },
    expected: { kind: 'refused', at: 'boundary', open: /pg_write_server_files/ },
  },
  {
    group: 'host/network',
    name: 'unknown host-facing extension',
    open: `create extension file_fdw; ${closeFunctions('file_fdw')} grant usage on foreign data wrapper file_fdw to ${EXEC}`,
    close: 'drop extension file_fdw',
    reach: { sql: 'create server host foreign data wrapper file_fdw', ends: 'works' },
    expected: { kind: 'refused', at: 'boundary', open: /file_fdw/ },
  },
  { group: 'asynchronous signals', name: 'benign statement', expected: PASSES },
  {
    group: 'asynchronous signals',
    name: 'registered benign function',
    action: CALL,
    expected: PASSES,
  },
  {
    group: 'asynchronous signals',
    name: 'NOTIFY beside the statement',
    action: payAnd(`notify ${CHANNEL}`),
    reach: { sql: `notify ${CHANNEL}_tried`, ends: 'works' },
    expected: { kind: 'refused', at: 'admission', because: /notify/i },
  },
  {
    group: 'asynchronous signals',
    name: 'pg_notify callable by the agent',
    open: `grant execute on function pg_catalog.pg_notify(text, text) to ${EXEC}`,
    close: `revoke execute on function pg_catalog.pg_notify(text, text) from ${EXEC}`,
    reach: { sql: `select pg_notify('${CHANNEL}_tried', 'x')`, ends: 'works' },
    expected: { kind: 'refused', at: 'boundary', open: /pg_notify/ },
  },
  {
    group: 'asynchronous signals',
    name: 'registered function that notifies',
    open: definePay(`notify ${CHANNEL};`),
    close: definePay(),
    action: CALL,
    expected: { kind: 'refused', at: 'boundary', open: /^function app\.pay\(/ },
  },
  {
    group: 'function/configuration drift',
    name: 'stable while held',
    whileHeld: 'select 1',
    action: CALL,
    expected: PASSES,
  },
  {
    group: 'function/configuration drift',
    name: 'EXECUTE given to PUBLIC while held',
    whileHeld: 'grant execute on function app.pay(int) to public',
    close: 'revoke execute on function app.pay(int) from public',
    action: CALL,
    expected: { kind: 'refused', at: 'final-gate' },
  },
  {
    group: 'function/configuration drift',
    name: 'search_path changed while held',
    whileHeld: 'alter function app.pay(int) set search_path = app, public, pg_temp',
    close: 'alter function app.pay(int) set search_path = app, pg_temp',
    action: CALL,
    expected: { kind: 'refused', at: 'final-gate' },
  },
  {
    group: 'function/configuration drift',
    name: 'EXECUTE given to another role while held',
    open: 'create role clerk nologin',
    whileHeld: 'grant execute on function app.pay(int) to clerk',
    close: 'revoke execute on function app.pay(int) from clerk; drop role clerk',
    action: CALL,
    expected: { kind: 'refused', at: 'final-gate' },
  },
];
