-- The tables of a ledger. A row of the journal is never changed; the login that appends has no
-- right to. Every statement can be repeated.

-- name: turn
-- One row, which every decision locks, and none changes. Sessions that wait for a row that changes
-- are overtaken by later ones, without end if there are many.
create table if not exists :"schema".turn (
  id boolean primary key default true,
  constraint turn_single check (id)
);

-- name: first_turn
insert into :"schema".turn values (true) on conflict do nothing;

-- name: head
-- One row, which counts the positions given away, so that a row missing from the end shows.
create table if not exists :"schema".head (
  id boolean primary key default true,
  version integer not null,
  positions bigint not null,
  constraint head_single check (id)
) with (fillfactor = 20);

-- name: first_head
insert into :"schema".head (version, positions) values (:'version', 0) on conflict do nothing;

-- name: plan
create table if not exists :"schema".plan (
  task text collate "C" primary key,
  revision bigint not null
);

-- name: issuance
-- Texts of a few kilobytes stay in the row: compressing them takes longer than writing them.
-- What was signed, with how many of its occurrences were claimed. Its id is the position of the
-- first claim under it. These rows stay for ever: a nonce that was used is refused for ever.
create table if not exists :"schema".issuance (
  id bigint primary key,
  issuer text collate "C" not null,
  nonce text collate "C" not null,
  claimed integer not null,
  license text not null,
  approved text not null,
  binding text not null,
  seal_key text not null,
  mac text not null,
  constraint issuance_nonce unique (issuer, nonce),
  constraint issuance_claimed check (claimed > 0)
) with (toast_tuple_target = 8160);

-- name: journal
-- The unique slots decide: a second claim, permit, terminal or release has nowhere to go.
create table if not exists :"schema".journal (
  seq bigint primary key,
  kind text collate "C" not null,
  occurrence text collate "C" not null,
  slot text collate "C" not null,
  text text not null,
  seal_key text not null,
  seal_mac text not null,
  digest text not null,
  issuance bigint,
  constraint journal_slot unique (occurrence, slot),
  constraint journal_claim check ((issuance is not null) = (kind = 'claim'))
) with (toast_tuple_target = 8160);

-- name: archive
-- Rows of the journal that retention has moved out of the way. They are read and verified as
-- before.
create table if not exists :"schema".archive (
  seq bigint primary key,
  kind text collate "C" not null,
  occurrence text collate "C" not null,
  slot text collate "C" not null,
  text text not null,
  seal_key text not null,
  seal_mac text not null,
  digest text not null,
  issuance bigint,
  constraint archive_slot unique (occurrence, slot),
  constraint archive_claim check ((issuance is not null) = (kind = 'claim'))
);

-- name: unsettled
-- One row per claim that recovery may have to end; it goes with the verdict.
create table if not exists :"schema".unsettled (
  claim bigint primary key,
  execution text not null,
  lease_until_ms bigint not null
);

-- name: checkpoint
create table if not exists :"schema".checkpoint (
  through_seq bigint primary key,
  text text not null,
  seal_key text not null,
  seal_mac text not null
);

-- name: document
create table if not exists :"schema".document (
  digest text collate "C" primary key,
  text text not null,
  seal_key text not null,
  seal_mac text not null
);
