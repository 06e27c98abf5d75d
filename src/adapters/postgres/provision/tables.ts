/** Raised when tables or functions change in a way that an older runtime must not meet. */
export const VERSION = 2;

/** A relation for admission probes and nothing else. */
export const PROBE_TABLE = { schema: 'effectmatch', name: 'probe' } as const;

const RANDOM_64 = Array.from({ length: 4 }, () => 'uuid_send(gen_random_uuid())').join(' || ');

/**
 * What the backend keeps: markers in a logged table, because they are the verdict; stages and
 * records in unlogged ones, because they mean nothing once their transaction is over. The secret is
 * made inside the database, so that it is in no script.
 */
export const TABLES: readonly string[] = [
  `create table if not exists effectmatch.deployment (
  only_row boolean primary key default true check (only_row),
  backend text not null,
  version integer not null,
  inner_pad bytea not null,
  outer_pad bytea not null
)`,
  `insert into effectmatch.deployment (backend, version, inner_pad, outer_pad)
select 'pg_' || replace(gen_random_uuid()::text, '-', ''), ${VERSION},
       ${RANDOM_64},
       ${RANDOM_64}
where not exists (select from effectmatch.deployment)`,
  `update effectmatch.deployment set version = ${VERSION}`,
  `create table if not exists effectmatch.marker (
  occurrence text primary key,
  disposition text not null check (disposition in ('committed', 'void')),
  text text not null,
  seal_key text not null,
  seal_mac text not null,
  xid xid8,
  check ((disposition = 'committed') = (xid is not null))
)`,
  `create unlogged table if not exists effectmatch.stage (
  xid xid8 primary key,
  occurrence text not null,
  sealed boolean not null default false,
  marked bigint
) with (fillfactor = 25)`,
  `create unlogged table if not exists effectmatch.record (
  xid xid8 not null,
  relation oid not null,
  op "char" not null,
  images bigint not null,
  was text,
  became text
)`,
  // Transactions of one moment have neighbouring numbers. Spread over the index, those that are
  // serializable seldom read the page that another writes.
  `alter table effectmatch.record add column if not exists
  spread integer not null default pg_catalog.hashtext(pg_catalog.pg_current_xact_id()::pg_catalog.text)`,
  'drop index if exists effectmatch.record_xid',
  'create index if not exists record_spread on effectmatch.record (spread, xid)',
  // Rows of no transaction, so that the index has pages enough from the first day. A crash of the
  // server removes them.
  `insert into effectmatch.record (xid, relation, op, images, spread)
select '18446744073709551615', 0, '-', 0, (g - 3000) * 715827 from generate_series(0, 6000) as g
where not exists (select from effectmatch.record where relation = 0)`,
  `create table if not exists effectmatch.probe (
  token text primary key
)`,
];

/**
 * No transaction of the execution login commits without its marker: this is checked when it tries
 * to. And none commits that wrote anything after its observation: the check that the marker brings
 * along runs last, because nothing can queue a check behind it without a write that it sees.
 */
export const GUARD: readonly string[] = [
  'drop trigger if exists effectmatch_settled on effectmatch.marker',
  `create constraint trigger effectmatch_settled after insert on effectmatch.marker
deferrable initially deferred for each row when (new.xid is not null) execute function effectmatch.settle()`,
  'alter table effectmatch.marker enable always trigger effectmatch_settled',
  'drop trigger if exists effectmatch_guard on effectmatch.stage',
  `create constraint trigger effectmatch_guard after insert on effectmatch.stage
deferrable initially deferred for each row execute function effectmatch.guard()`,
  'alter table effectmatch.stage enable always trigger effectmatch_guard',
];
