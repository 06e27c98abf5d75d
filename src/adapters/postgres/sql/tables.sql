-- What the backend keeps: markers in a logged table, because they are the verdict; stages and records in
-- unlogged ones, because they mean nothing once their transaction is over.

-- name: deployment
create table if not exists effectmatch.deployment (
  only_row boolean primary key default true check (only_row),
  backend text not null,
  version integer not null,
  inner_pad bytea not null,
  outer_pad bytea not null
);

-- name: secret
-- The secret is made inside the database, so that no script contains it.
insert into effectmatch.deployment (backend, version, inner_pad, outer_pad)
select
  'pg_' || replace(gen_random_uuid()::text, '-', ''),
  :'version'::integer,
  uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
    || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
  uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
    || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
where not exists (select from effectmatch.deployment);

-- name: version
update effectmatch.deployment set version = :'version'::integer;

-- name: marker
create table if not exists effectmatch.marker (
  occurrence text primary key,
  disposition text not null check (disposition in ('committed', 'void')),
  text text not null,
  seal_key text not null,
  seal_mac text not null,
  xid xid8,
  check ((disposition = 'committed') = (xid is not null))
);

-- name: stage
create unlogged table if not exists effectmatch.stage (
  xid xid8 primary key,
  occurrence text not null,
  sealed boolean not null default false,
  marked bigint
) with (fillfactor = 25);

-- name: stage_looks
-- How often the session had turned to each sequence when the stage was opened.
alter table effectmatch.stage add column if not exists looks bigint[];

-- name: record
create unlogged table if not exists effectmatch.record (
  xid xid8 not null,
  relation oid not null,
  op "char" not null,
  images bigint not null,
  was text,
  became text
);

-- name: record_spread
-- Transactions of one moment have neighbouring numbers. Spread over the index, those that are
-- serializable seldom read the page that another writes.
alter table effectmatch.record add column if not exists
  spread integer not null
  default pg_catalog.hashtext(pg_catalog.pg_current_xact_id()::pg_catalog.text);

-- name: record_storage
-- Images of many rows are stored as they are: compressing them takes longer than writing them.
alter table effectmatch.record
  alter column was set storage external,
  alter column became set storage external;

-- name: drop_old_index
drop index if exists effectmatch.record_xid;

-- name: record_index
create index if not exists record_spread on effectmatch.record (spread, xid);

-- name: fill_record
-- Rows of no transaction, so that the index has enough pages from the first day. A crash of the server
-- removes them.
insert into effectmatch.record (xid, relation, op, images, spread)
select '18446744073709551615', 0, '-', 0, (g - 3000) * 715827
from generate_series(0, 6000) as g
where not exists (select from effectmatch.record where relation = 0);

-- name: probe
-- A relation for admission probes and nothing else.
create table if not exists effectmatch.probe (
  token text primary key
);
