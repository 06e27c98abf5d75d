import type { Migration } from '../migrate.ts';

/** Says whose file this is: the ASCII letters EffM. */
export const APPLICATION_ID = 0x4566664d;

/**
 * The journal decides: (occurrence, slot) is unique, so a second claim, permit, terminal or release has nowhere to
 * go. `occurrence` is the part that changes (lease, settled) and `issuance` what was signed; both are indexes that
 * `verify` compares with the journal. AUTOINCREMENT never gives a position away twice, so a gap shows.
 */
const JOURNAL = `
  create table plan (
    task text primary key,
    revision integer not null
  ) strict, without rowid;

  create table issuance (
    id integer primary key,
    issuer text not null,
    nonce text not null,
    license text not null,
    approved text not null,
    seal_key text not null,
    seal_mac text not null,
    binding text not null,
    binding_key text not null,
    binding_mac text not null,
    unique (issuer, nonce)
  ) strict;

  create table journal (
    seq integer primary key autoincrement,
    kind text not null,
    occurrence text not null,
    slot text not null,
    text text not null,
    seal_key text not null,
    seal_mac text not null,
    digest text not null,
    unique (occurrence, slot)
  ) strict;

  create table occurrence (
    occurrence text primary key,
    seq integer not null references journal (seq),
    issuance integer not null references issuance (id),
    execution text not null,
    lease_until_ms integer not null,
    settled integer not null default 0 check (settled in (0, 1))
  ) strict, without rowid;

  create index occurrence_unsettled on occurrence (seq) where settled = 0;

  create table checkpoint (
    through_seq integer primary key,
    text text not null,
    seal_key text not null,
    seal_mac text not null
  ) strict;

  create table document (
    digest text primary key,
    text text not null,
    seal_key text not null,
    seal_mac text not null
  ) strict;
`;

/** Steps of the schema. Released steps are never edited: a change is a new step at the end. */
export const MIGRATIONS: readonly Migration[] = [{ version: 1, sql: JOURNAL }];
