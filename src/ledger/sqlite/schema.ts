import type { Migration } from '../migrate.ts';

/** Marks the file as ours: the ASCII letters EffM. */
export const APPLICATION_ID = 0x4566664d;

/**
 * The journal decides: (occurrence, slot) is unique, so a second claim, permit, terminal or release
 * cannot be inserted. `issuance` holds what was signed and how many of its occurrences were
 * claimed. `unsettled` has an entry for each claim that recovery may have to end. The verdict
 * removes the entry, so the table stays one small page. `verify` compares both with the journal.
 * Entry 0 of `unsettled` is not a claim: it counts the positions assigned, so that a row missing
 * from the end is noticed. It is kept there because every claim and every verdict writes that page
 * anyway.
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
    claimed integer not null check (claimed > 0),
    license text not null,
    approved text not null,
    binding text not null,
    seal_key text not null,
    mac text not null,
    unique (issuer, nonce)
  ) strict;

  create table journal (
    seq integer primary key,
    kind text not null,
    occurrence text not null,
    slot text not null,
    text text not null,
    seal_key text not null,
    seal_mac text not null,
    digest text not null,
    issuance integer check ((issuance is not null) = (kind = 'claim')),
    unique (occurrence, slot)
  ) strict;

  create table unsettled (
    claim integer primary key,
    execution text,
    lease_until_ms integer,
    positions integer,
    check ((execution is null) = (claim = 0)),
    check ((lease_until_ms is null) = (claim = 0)),
    check ((positions is not null) = (claim = 0))
  ) strict;
  insert into unsettled (claim, positions) values (0, 0);

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

/** The schema's migrations. Released steps are never edited; add a new step at the end. */
export const MIGRATIONS: readonly Migration[] = [{ version: 1, sql: JOURNAL }];
