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

-- name: use_schema
grant usage on schema :"requests" to :"login";

-- name: write
grant select, insert, update on :"requests".request, :"requests".delivery to :"login";

-- name: note
grant select, insert on :"requests".event to :"login";
