-- What agents ask for and people answer, in a schema next to the ledger. Nothing in it is authority:
-- the license is, and the ledger says what became of it. Every statement can be repeated.

-- name: create_schema
create schema if not exists :"requests";

-- name: close_schema
revoke all on schema :"requests" from public;

-- name: request
create table if not exists :"requests".request (
  id text collate "C" primary key,
  generation integer not null,
  state text collate "C" not null,
  by text collate "C" not null,
  run text not null,
  adapter text collate "C" not null,
  operation text collate "C",
  mode text not null,
  asked_ms bigint not null,
  expires_ms bigint not null,
  asked text not null,
  license text,
  occurrence text collate "C",
  answered_by text,
  detail text,
  results text,
  constraint request_occurrence unique (occurrence)
);

-- name: by_state
create index if not exists request_by_state on :"requests".request (state, asked_ms, id);

-- name: by_agent
create index if not exists request_by_agent on :"requests".request (by, asked_ms, id);

-- name: by_time
create index if not exists request_by_time on :"requests".request (asked_ms, id);

-- name: event
create table if not exists :"requests".event (
  seq bigint generated always as identity primary key,
  id text collate "C" not null,
  at_ms bigint not null,
  state text not null
);

-- name: delivery
create table if not exists :"requests".delivery (
  receiver text collate "C" primary key,
  seq bigint not null
);

-- name: decline
alter table :"requests".request add column if not exists decline text;

-- name: delivery_log
create table if not exists :"requests".delivery_log (
  number bigint generated always as identity primary key,
  receiver text collate "C" not null,
  seq bigint not null,
  attempt integer not null,
  at_ms bigint not null,
  delivered boolean not null,
  result text not null
);

-- name: log_by_receiver
create index if not exists delivery_log_by_receiver on :"requests".delivery_log (receiver, number);

-- name: log_by_time
create index if not exists delivery_log_by_time on :"requests".delivery_log (at_ms);

-- name: token
create table if not exists :"requests".token (
  id text collate "C" primary key,
  digest text collate "C" not null unique,
  kind text not null,
  holder text collate "C" not null,
  scopes text not null,
  created_ms bigint not null,
  expires_ms bigint not null
);

-- name: use_schema
grant usage on schema :"requests" to :"login";

-- name: write
grant select, insert, update on :"requests".request, :"requests".delivery, :"requests".token to :"login";

-- name: note
grant select, insert on :"requests".event to :"login";

-- name: log
grant select, insert, delete on :"requests".delivery_log to :"login";
