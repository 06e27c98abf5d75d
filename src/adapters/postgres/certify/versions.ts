import { readRows, type TextReader } from './catalog.ts';
import { WATCHED_ROWS, WITH_WATCHED } from './fingerprint.ts';

/**
 * Row versions of the configuration, by what they are rows of: what the fingerprint is made from,
 * one by one.
 */
export type Versions = ReadonlyMap<string, string>;

/**
 * How to name a row that has no object id of its own: class, object and part as the server
 * describes objects.
 */
const NAMED_BY: Readonly<Record<string, string>> = {
  pg_attribute: `'pg_class ' || attrelid || ' ' || attnum`,
  pg_index: `'pg_class ' || indexrelid || ' 0'`,
  pg_inherits: `'pg_class ' || inhrelid || ' 0'`,
  pg_sequence: `'pg_class ' || seqrelid || ' 0'`,
  pg_foreign_table: `'pg_class ' || ftrelid || ' 0'`,
  pg_depend: `classid::regclass || ' ' || objid || ' ' || objsubid || ' membership in an extension'`,
  pg_shdepend: `classid::regclass || ' ' || objid || ' ' || objsubid || ' rights of ' || pg_get_userbyid(refobjid)`,
  pg_enum: `'pg_type ' || enumtypid || ' 0 ' || enumlabel`,
  pg_auth_members: `'pg_authid ' || member || ' 0 membership in ' || pg_get_userbyid(roleid) || ' granted by ' || pg_get_userbyid(grantor)`,
  pg_db_role_setting: `case when setrole = 0 then 'pg_database ' || setdatabase else 'pg_authid ' || setrole end || ' 0 settings in database ' || setdatabase`,
};

/**
 * Reads the versions that the fingerprint sums up. Part of a survey: what changed later is found by
 * comparing.
 */
export async function readVersions(
  control: TextReader,
  roles: readonly string[],
): Promise<Versions> {
  const watched = await readRows<{ oid: number }>(
    control,
    'select oid::int8 as oid from pg_roles where rolname = any($1)',
    [roles],
  );
  const rows = WATCHED_ROWS.map(
    ([
      name,
      where,
    ]) => `select '${name}:' || ${NAMED_BY[name] ?? `'${name} ' || oid || ' 0'`} as object,
      xmin::text as version from pg_catalog.${name} where ${where}`,
  );
  const found = await readRows<{ object: string; version: string }>(
    control,
    `${WITH_WATCHED} select object, string_agg(version, ' ' order by version) as version from (${rows.join(' union all ')}) w group by object`,
    [`{${watched.map(({ oid }) => oid).join(',')}}`],
  );
  return new Map(found.map(({ object, version }) => [object, version]));
}

/**
 * Which rows have another version, are new, or are gone, in the server's words for the objects they
 * belong to.
 */
export async function describeVersions(
  control: TextReader,
  before: Versions,
  after: Versions,
): Promise<readonly string[]> {
  const isBoth = (key: string) => before.has(key) && after.has(key);
  // Which roles matter is itself a result of the survey, so a role that is not on both sides may be
  // as old as the other.
  const changed = [...new Set([...before.keys(), ...after.keys()])].filter(
    (key) => before.get(key) !== after.get(key) && (isBoth(key) || !key.startsWith('pg_authid:')),
  );
  const described: string[] = [];
  for (const key of changed.slice(0, DESCRIBED_MAX)) {
    const [, catalog = '', kind = '', oid = '', part = '', detail = ''] = ROW_KEY.exec(key) ?? [];
    const { rows } = await control.query(
      `select coalesce(pg_catalog.pg_describe_object($1::pg_catalog.regclass, $2, $3), $1 || ' ' || $2)`,
      [`pg_catalog.${kind}`, oid, part],
    );
    const what = after.has(key) ? (before.has(key) ? 'was written' : 'is new') : 'is gone';
    described.push(`${rows[0]?.[0]}${detail && `, ${detail}`}: its row in ${catalog} ${what}`);
  }
  if (changed.length > DESCRIBED_MAX)
    described.push(`and ${changed.length - DESCRIBED_MAX} more rows`);
  return described;
}

const DESCRIBED_MAX = 10;
const ROW_KEY = /^(\w+):(\w+) (\d+) (-?\d+) ?(.*)$/s;
