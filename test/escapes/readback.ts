import { hash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import { quoteName } from '../../src/postgres/identifier.ts';

/** A row as the server prints its columns. */
export type ReadRow = Readonly<Record<string, string | null>>;

/** Everything that outlives a transaction, as a superuser reads it at one moment. */
export interface Durable {
  /** Rows of every table of this database, our evidence excepted, and of the database next door. */
  readonly rows: ReadonlyMap<string, readonly ReadRow[]>;
  /** Positions of sequences; `residue` where a registered column draws from it. */
  readonly sequences: ReadonlyMap<string, { readonly at: string; readonly residue: boolean }>;
  /**
   * Fingerprints of the rest: row versions of every catalogue, slots, prepared transactions, files.
   */
  readonly facts: ReadonlyMap<string, string>;
  /** Operations that say they were committed. */
  readonly committed: number;
}

/** Where to look. */
export interface Scene {
  /** A superuser's session in the database of the case. */
  readonly here: pg.Client;
  /** One in another database of the server. */
  readonly elsewhere: pg.Client;
  /** The data folder of the server, and a folder that it can write. */
  readonly data: string;
  readonly scratch: string;
  readonly registered: readonly string[];
  /** Sequences that the case itself declares as residue. */
  readonly residue: readonly string[];
}

/**
 * Reads all of it. Nothing of the product is used: neither its queries, nor its idea of what
 * matters.
 */
export async function readDurable({
  here,
  elsewhere,
  data,
  scratch,
  registered,
  residue,
}: Scene): Promise<Durable> {
  const rows = new Map<string, readonly ReadRow[]>();
  await readTables(here, '', rows);
  await readTables(elsewhere, 'elsewhere: ', rows);
  const facts = new Map<string, string>();
  for (const [prefix, client] of [['', here] as const, ['elsewhere: ', elsewhere] as const]) {
    for (const { name, versions } of await rowsOf(client, await catalogueQuery(client)))
      facts.set(`${prefix}catalogue ${name}`, String(versions));
  }
  for (const { what, state } of await rowsOf(here, OUTSIDE_TRANSACTIONS))
    facts.set(String(what), String(state));
  for (const [file, digest] of [...unusualFiles(data), ...allFiles(scratch)])
    facts.set(`file ${file}`, digest);
  const [markers] = await rowsOf(here, COMMITTED_MARKERS).catch(() => []);
  return {
    rows,
    sequences: await readSequences(here, [...registered, ...residue]),
    facts,
    committed: Number(markers?.count ?? 0),
  };
}

const COMMITTED_MARKERS = `select count(*) from effectmatch.marker where disposition = 'committed'`;

async function rowsOf(
  client: pg.Client,
  sql: string,
  values: unknown[] = [],
): Promise<readonly ReadRow[]> {
  return (await client.query<Record<string, string | null>>(sql, values)).rows;
}

/**
 * Evidence of ours that goes with every execution; the deployment and the probe table may not
 * change.
 */
const EVIDENCE = `'effectmatch.marker', 'effectmatch.record', 'effectmatch.stage'`;

async function readTables(
  client: pg.Client,
  prefix: string,
  rows: Map<string, readonly ReadRow[]>,
): Promise<void> {
  const tables = await rowsOf(
    client,
    `select format('%I.%I', n.nspname, c.relname) as name,
      coalesce((select json_agg(a.attname order by a.attnum) from pg_attribute a
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped), '[]')::text as columns
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm') and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
      and c.relpersistence <> 't' and format('%I.%I', n.nspname, c.relname) not in (${EVIDENCE}) order by 1`,
  );
  for (const { name, columns } of tables) {
    // What a type's own output function prints: a cast of the case would run application code here.
    const values = (JSON.parse(String(columns)) as string[]).map(
      (column) =>
        `case when t.${quoteName(column)} is not null then format('%s', t.${quoteName(column)}) end as ${quoteName(column)}`,
    );
    const found = await rowsOf(client, `select ${values.join(', ')} from only ${name} as t`);
    rows.set(`${prefix}${name}`, found);
  }
}

/**
 * Versions of all rows of all catalogues, those of the whole server included: any write to one
 * shows.
 */
async function catalogueQuery(client: pg.Client): Promise<string> {
  const known = catalogueQueries.get(client);
  if (known !== undefined) return known;
  const catalogues = await rowsOf(
    client,
    `select relname as name from pg_class where relnamespace = 'pg_catalog'::regnamespace and relkind = 'r' order by 1`,
  );
  const sql = catalogues
    .map(
      ({ name }) => `select '${name}' as name,
        md5(coalesce(string_agg(xmin::text || ctid::text, ' ' order by ctid), '')) as versions from pg_catalog.${name}`,
    )
    .join(' union all ');
  catalogueQueries.set(client, sql);
  return sql;
}

const catalogueQueries = new WeakMap<pg.Client, string>();

const OUTSIDE_TRANSACTIONS = `
  select 'replication slots' as what, coalesce(string_agg(slot_name, ' ' order by slot_name), '') as state
    from pg_replication_slots where not temporary
  union all select 'prepared transactions', coalesce(string_agg(gid, ' ' order by gid), '') from pg_prepared_xacts
  union all select 'replication origins', coalesce(string_agg(external_id || remote_lsn, ' ' order by 1), '')
    from (select external_id, remote_lsn::text from pg_replication_origin_status order by 1) o
  union all select 'settings of the server', md5(string_agg(name || '=' || reset_val, ' ' order by name))
    from pg_settings where context <> 'internal' and source in ('default', 'configuration file')`;

async function readSequences(
  client: pg.Client,
  registered: readonly string[],
): Promise<Durable['sequences']> {
  const found = await rowsOf(
    client,
    `select format('%I.%I', n.nspname, c.relname) as name, exists (select from pg_depend d
        where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.refclassid = 'pg_class'::regclass
          and d.deptype in ('a', 'i') and d.refobjid in (select to_regclass(r) from unnest($1::text[]) r))
        or c.oid in (select to_regclass(r) from unnest($1::text[]) r) as residue
      from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'S' order by 1`,
    [registered],
  );
  const sequences = new Map<string, { at: string; residue: boolean }>();
  for (const { name, residue } of found) {
    const [at] = await rowsOf(
      client,
      `select last_value::text || case when is_called then '+' else '' end as at from ${name}`,
    );
    sequences.set(String(name), { at: String(at?.at), residue: String(residue) === 'true' });
  }
  return sequences;
}

/** Files that the server writes in the course of its business. */
const USUAL =
  /^(base\/(\d+|pgsql_tmp)(\/(t?\d+(_\d+)?(_(fsm|vm|init))?(\.\d+)?|PG_VERSION|pg_filenode\.map|pg_internal\.init(\.\d+)?|pgsql_tmp.*))?|global\/.*|pg_(xact|subtrans|multixact|notify|serial|stat|stat_tmp|dynshmem|commit_ts|snapshots|wal|logical|replslot)\/.*|postmaster\.(pid|opts)|log)$/;

/**
 * Files of the data folder that are not the server's daily business, with a digest of their
 * content.
 */
function unusualFiles(data: string): readonly (readonly [string, string])[] {
  return allFiles(data, (name) => !USUAL.test(name));
}

function allFiles(
  folder: string,
  keep: (name: string) => boolean = () => true,
): readonly (readonly [string, string])[] {
  if (!existsSync(folder)) return [];
  const files: (readonly [string, string])[] = [];
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const name = path.slice(folder.length + 1);
    if (keep(name))
      files.push([name, existsSync(path) ? hash('sha256', readFileSync(path), 'hex') : '']);
  }
  return files.sort(([a], [b]) => (a < b ? -1 : 1));
}
