import { setImmediate } from 'node:timers/promises';
import { invariant } from '../../../errors.ts';
import type { Connection, Statement, TextRow } from '../../../postgres/connection.ts';
import type { Survey } from '../../../protocol/boundary.ts';
import { readRows } from './catalog.ts';
import { endedOnly, parseSnapshot, type Snapshot } from './standstill.ts';

/** Rows of relations that stay; temporary ones of other sessions come and go. */
const permanent = (column: string) =>
  `${column} >= 16384 and ${column} <> all((select temporary from relations)::oid[])`;

/**
 * Rows that are not as the server was delivered: those were written by transaction 1, under which
 * nobody writes again.
 */
const CHANGED = `xmin <> '1'`;

/**
 * Catalogues of the database whose every row version counts, with the rows that belong to the
 * configuration.
 */
const LOCAL: readonly (readonly [catalog: string, rows: string])[] = [
  ['pg_namespace', `nspname !~ '^pg_(toast_)?temp_'`],
  [
    'pg_class',
    `${CHANGED} and relpersistence <> 't' and relkind in ('r', 'p', 'v', 'm', 'f', 'S', 'c')`,
  ],
  ['pg_attribute', 'attrelid = any((select tables from relations)::oid[]) and attnum > 0'],
  ['pg_attrdef', permanent('adrelid')],
  ['pg_constraint', 'oid >= 16384 and conrelid <> all((select temporary from relations)::oid[])'],
  ['pg_index', permanent('indrelid')],
  ['pg_trigger', permanent('tgrelid')],
  ['pg_inherits', permanent('inhparent')],
  // By the rule's own id: one that was added to a view of the server counts too.
  ['pg_rewrite', 'oid >= 16384 and ev_class <> all((select temporary from relations)::oid[])'],
  ['pg_rewrite', `oid < 16384 and ev_class = 'pg_settings'::regclass`], // the one that everybody may update
  ['pg_policy', 'true'],
  ['pg_proc', CHANGED],
  // Every table, also a temporary one, has a row type and an array type. A domain over an array is
  // not one of those.
  ['pg_type', `oid >= 16384 and typtype <> 'c' and (typcategory <> 'A' or typarray <> 0)`],
  ['pg_enum', 'true'],
  ['pg_cast', 'oid >= 16384'],
  ['pg_operator', 'oid >= 16384'],
  ['pg_amproc', 'oid >= 16384'],
  ['pg_amop', 'oid >= 16384'],
  ['pg_conversion', 'oid >= 16384'],
  ['pg_statistic_ext', 'true'],
  ['pg_transform', 'true'],
  ['pg_language', 'true'],
  ['pg_extension', 'true'],
  ['pg_event_trigger', 'true'],
  ['pg_foreign_data_wrapper', 'true'],
  ['pg_foreign_server', 'true'],
  ['pg_foreign_table', 'true'],
  ['pg_user_mapping', 'true'],
  ['pg_publication', 'true'],
  ['pg_publication_rel', 'true'],
  ['pg_publication_namespace', 'true'],
  ['pg_sequence', permanent('seqrelid')],
  ['pg_default_acl', 'true'],
  ['pg_depend', `refclassid = 'pg_extension'::regclass and deptype = 'e'`],
];

const CURRENT = '(select oid from pg_database where datname = current_database())';

/**
 * Catalogues of the whole server, narrowed to this database and to the roles that matter (the first
 * parameter).
 */
const SHARED: readonly (readonly [catalog: string, rows: string])[] = [
  ['pg_authid', 'oid = any($1::oid[])'],
  ['pg_auth_members', 'member = any($1::oid[])'],
  ['pg_database', 'datname = current_database()'],
  [
    'pg_db_role_setting',
    `setdatabase in (0, ${CURRENT}) and (setrole = 0 or setrole = any($1::oid[]))`,
  ],
  ['pg_parameter_acl', 'true'],
  ['pg_subscription', `subdbid = ${CURRENT}`],
  ['pg_tablespace', 'true'],
  // What these roles own or were given, of kinds that are not read above: columns of catalogues,
  // collations, operator families, and so on. Tables are read above; large objects are data, which
  // nobody reached can write.
  [
    'pg_shdepend',
    `dbid = ${CURRENT} and refclassid = 'pg_authid'::regclass and refobjid = any($1::oid[])
      and classid <> 'pg_largeobject'::regclass and (classid <> 'pg_class'::regclass or objid < 16384)`,
  ],
];

/**
 * Catalogues where adding and removing a row leaves no version behind. Their cumulative counters
 * show such a pair, but only once the session that made it has reported its statistics: at its
 * first commit, at its end, and otherwise after one to ten seconds. Until then a pair that was
 * undone completely is not seen; everything else is seen at once. Catalogues of the whole server
 * are not among them: anybody's new role, in any database, would refuse what is in flight.
 */
const COUNTED: readonly string[] = [
  'pg_proc',
  'pg_trigger',
  'pg_rewrite',
  'pg_policy',
  'pg_event_trigger',
  'pg_extension',
  'pg_foreign_server',
  'pg_foreign_table',
  'pg_user_mapping',
  'pg_cast',
  'pg_operator',
  'pg_language',
  'pg_publication_rel',
];

const counters = COUNTED.map((catalog) => {
  const oid = `'pg_catalog.${catalog}'::regclass`;
  return `pg_stat_get_tuples_inserted(${oid}) + pg_stat_get_tuples_updated(${oid}) + pg_stat_get_tuples_deleted(${oid})`;
});

/**
 * The snapshot that a statement reads with, and what may change without the end of a transaction:
 * counters, which are reported later than that, and settings. The snapshot of a standby does not
 * say what runs, and speaks for nothing once the standby is promoted. After a crash the server
 * gives out ids again of which nothing was on disk: it starts its sessions anew without starting
 * itself, and its statistics.
 */
const MOMENT = `pg_current_snapshot(),
    concat_ws(' ', ${counters.join(', ')},
      current_setting('fsync'), current_setting('full_page_writes'), current_setting('track_counts'),
      extract(epoch from pg_conf_load_time()), pg_postmaster_start_time(), pg_is_in_recovery(),
      pg_stat_get_bgwriter_stat_reset_time())`;

/**
 * Every catalogue that is watched, with the condition of its rows; they need {@link WITH_WATCHED}
 * and the roles' ids.
 */
export const WATCHED_ROWS = [...SHARED, ...LOCAL];
export const WITH_WATCHED = `with relations as materialized (select
    coalesce(array_agg(oid) filter (where relpersistence = 't'), '{}') as temporary,
    array_agg(oid) filter (where relpersistence <> 't' and relkind in ('r', 'p', 'v', 'm', 'f', 'c')) as tables
  from pg_catalog.pg_class where oid >= 16384)`;

const versions = WATCHED_ROWS.map(
  ([catalog, where]) => `select xmin from pg_catalog.${catalog} where ${where}`,
);

/**
 * How many of the watched rows each transaction wrote. A row that is written counts for its writer,
 * one that goes is missing there, and once a transaction is over its number can only fall: equal
 * numbers are the same row versions. Which rows they are, and in which order they come, need not be
 * known; sorting every catalogue took half of the time.
 */
const QUERY = `${WITH_WATCHED}
  select ${MOMENT}, (select encode(sha256(string_agg(xidsend(xmin) || int8send(n), '' order by xidsend(xmin))), 'hex')
    from (select xmin, count(*) as n from (${versions.join('\n    union all ')}) as watched group by xmin) as written)`;

/**
 * Reads whether anything in the configuration changed, far more cheaply than reading what it is.
 */
export interface Fingerprints {
  /**
   * Equal texts mean that no row of the configuration was written in between, not even back to what
   * it was. While no transaction has ended but those in `own`, which must be known not to have
   * written to any catalogue, and no counter has moved, the last text stands; otherwise the
   * catalogues are read. Ids in `own` that cannot matter any more are removed from it.
   */
  read(own: Set<bigint>): Promise<string>;
}

/**
 * What the trusted login needs in order to read the versions of rows whose content it may not see.
 */
export function fingerprintGrants(control: string): readonly string[] {
  return ['pg_authid', 'pg_user_mapping', 'pg_subscription'].map(
    (catalog) =>
      `GRANT SELECT (xmin${catalog === 'pg_subscription' ? '' : ', oid'}) ON pg_catalog.${catalog} TO ${control}`,
  );
}

/**
 * Prepares the fingerprint on a warm trusted session. `roles` are those that the survey found to
 * matter: a role outside them gets in only through a row that is watched.
 */
export async function prepareFingerprint(
  control: Pick<Connection, 'query' | 'prepare' | 'run'>,
  roles: readonly string[],
): Promise<Fingerprints> {
  await control.query('SET search_path = pg_catalog, pg_temp');
  await control.query('SET plan_cache_mode = force_generic_plan');
  const closure = await readRows<{ oid: number }>(
    control,
    `with recursive closure(oid) as (select oid from pg_roles where rolname = any($1)
       union select m.roleid from closure c join pg_auth_members m on m.member = c.oid)
     select oid::int8 as oid from closure order by oid`,
    [roles],
  );
  const oids = `{${closure.map(({ oid }) => oid).join(',')}}`;
  await control.query('DEALLOCATE ALL');
  await control.prepare({ effectmatch_fingerprint: QUERY, effectmatch_moment: `SELECT ${MOMENT}` });
  const ask = async (statement: Statement): Promise<TextRow | undefined> => {
    const { replies, failure } = await control.run([statement]);
    if (failure !== undefined) throw failure.error;
    return replies[0]?.rows[0];
  };
  let last: (Moment & { readonly content: string }) | undefined;
  let busyLooks = 0;
  return {
    async read(own) {
      const before = last;
      const stands = async (now: Moment) => {
        if (now.beside !== before?.beside) return false;
        if (endedOnly(own, before.snapshot, now.snapshot)) return true;
        // The server shows the end of a transaction to others before it tells whoever ended it.
        await setImmediate();
        return endedOnly(own, before.snapshot, now.snapshot);
      };
      const asked =
        before &&
        busyLooks < BUSY_LOOKS &&
        readMoment(await ask({ prepared: 'effectmatch_moment' }));
      if (before && asked && (await stands(asked))) {
        last = { ...before, snapshot: asked.snapshot };
        busyLooks = 0;
      } else {
        const row = await ask({ prepared: 'effectmatch_fingerprint', values: [oids] });
        last = { ...readMoment(row), content: row?.[2] ?? '' };
        busyLooks = asked || !(await stands(last)) ? busyLooks + 1 : 0;
      }
      for (const id of own) if (id < last.snapshot.start) own.delete(id);
      return `${last.content} ${last.beside}`;
    },
  };
}

/**
 * After so many looks in a row that met strangers the catalogues are read without asking first,
 * until one meets none.
 */
const BUSY_LOOKS = 8;

interface Moment {
  readonly snapshot: Snapshot;
  /** What the snapshot does not speak for. */
  readonly beside: string;
}

function readMoment(row: TextRow | undefined): Moment {
  const [snapshot, beside] = row ?? [];
  invariant(
    snapshot != null && beside != null,
    'the server states its snapshot, its counters and its settings',
  );
  return { snapshot: parseSnapshot(snapshot), beside };
}

/**
 * A survey whose certificate also holds the fingerprint it was classified under: two certificates
 * are then equal only if nothing was written in between, not merely if the end is like the
 * beginning.
 */
export function bindFingerprint<S extends Survey>(survey: S, fingerprint: string): S {
  return { ...survey, configuration: `${survey.configuration} ${fingerprint}` };
}

/**
 * What two fingerprints say beside row versions: counters that moved although nothing else did, and
 * reloads.
 */
export function compareFingerprints(before: string, after: string): readonly string[] {
  const [was, is] = [before.split(' ').slice(1), after.split(' ').slice(1)];
  const counted = COUNTED.flatMap((catalog, index) =>
    was[index] === is[index]
      ? []
      : [
          `rows of ${catalog} were written and taken back (its counters went from ${was[index]} to ${is[index]})`,
        ],
  );
  const isReloaded = was.slice(COUNTED.length).join(' ') !== is.slice(COUNTED.length).join(' ');
  return isReloaded
    ? [...counted, 'the server was restarted or promoted, or read its configuration files again']
    : counted;
}
