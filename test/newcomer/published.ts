// Schemas that others wrote, made anew from the packages they published on npm: the tarball is
// fetched at test time, without its dependencies, and its own migrations are run.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';

interface Published {
  readonly name: string;
  readonly version: string;
  /** As the registry states it. */
  readonly integrity: string;
}

const MEDUSA: Published = {
  name: '@medusajs/order',
  version: '2.21.2',
  integrity:
    'sha512-3yHznzM7ZIyIDTpUuVFQe/H/Pb8oqXV69TgYiaK1wpXWXYO/np0bI/uzF1z8QG7QDiF3WQgncwQLZiAneSwt/A==',
};
const UNLEASH: Published = {
  name: 'unleash-server',
  version: '8.2.0',
  integrity:
    'sha512-Fw7n3zsp1/B8Vjz7hvTFFzRmDZzxMqI9hbpGGMfU9wksAIu1ofKTx2HK6XBwd2DgEqy3me4xVGjknngyxRIdPA==',
};

/** A folder with an unpacked package, or why it cannot be had here. */
class Unpacked implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'effectmatch-published-'));
  readonly #require = createRequire(join(this.folder, 'package/package.json'));

  constructor({ name, version, integrity }: Published) {
    const packed = spawnSync('npm', ['pack', `${name}@${version}`, '--silent'], {
      cwd: this.folder,
      encoding: 'utf8',
    });
    const [tarball] = readdirSync(this.folder).filter((file) => file.endsWith('.tgz'));
    if (packed.status !== 0 || tarball === undefined)
      throw new Error(`${name} could not be fetched: ${packed.stderr}`);
    const content = readFileSync(join(this.folder, tarball));
    const found = `sha512-${createHash('sha512').update(content).digest('base64')}`;
    if (found !== integrity)
      throw new Error(`${name}@${version} is not the package that was named`);
    spawnSync('tar', ['-xzf', tarball], { cwd: this.folder });
  }

  /** What a package that is not installed would export, for those that are required by name. */
  pretend(name: string, text: string): void {
    const place = join(this.folder, 'node_modules', name);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'index.js'), text);
  }

  migrations(): readonly unknown[] {
    const place = join(this.folder, 'package/dist/migrations');
    const files = readdirSync(place).filter((file) => /^\w*\d{14}.*\.js$/.test(file));
    return files.sort().map((file) => this.#require(join(place, file)) as unknown);
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The tables of orders of the shop software Medusa. Its migrations are classes that list SQL. */
export async function createMedusa(client: pg.Client): Promise<void> {
  using medusa = new Unpacked(MEDUSA);
  const base = 'exports.Migration = class { sql = []; addSql(text) { this.sql.push(text); } };';
  medusa.pretend('@medusajs/framework/mikro-orm/migrations', base);
  // It alters columns of a table that exists already. In an empty database there is none.
  const utils = "exports.generatePostgresAlterColummnIfExistStatement = () => '';";
  medusa.pretend('@medusajs/framework/utils', utils);
  for (const exported of medusa.migrations()) {
    const [Migration] = Object.values(exported as Record<string, MigrationClass>);
    if (Migration === undefined) continue;
    const migration = new Migration();
    await migration.up();
    for (const text of migration.sql) await client.query(text);
  }
}

type MigrationClass = new () => { readonly sql: readonly string[]; up(): Promise<void> };

/** The tables of the feature-flag server Unleash. Its migrations are functions that run SQL. */
export async function createUnleash(client: pg.Client): Promise<void> {
  using unleash = new Unpacked(UNLEASH);
  const series = `exports.series = async (steps, done) => {
    try { for (const step of steps) await new Promise((next, stop) => step((error) => error ? stop(error) : next())); done(); }
    catch (error) { done(error); } };`;
  unleash.pretend('async', series);
  const db = migrationDriver(client);
  // The table that db-migrate itself makes first.
  await client.query(
    'create table migrations (id serial primary key, name varchar(255) not null, run_on timestamp not null)',
  );
  for (const { up } of unleash.migrations() as readonly UnleashMigration[])
    await new Promise<void>((resolve, reject) => {
      const done = (error?: unknown) => (error ? reject(error) : resolve());
      Promise.resolve(up(db, done)).then(() => up.length < 2 && resolve(), reject);
    });
}

interface UnleashMigration {
  readonly up: (db: unknown, done: (error?: unknown) => void) => unknown;
}

interface ColumnSpec {
  readonly type: string;
  readonly length?: number;
  readonly primaryKey?: boolean;
  readonly notNull?: boolean;
  readonly unique?: boolean;
  readonly defaultValue?: unknown;
}

/** The few calls of db-migrate that these migrations make. */
function migrationDriver(client: pg.Client) {
  type Done = (error: unknown, result?: unknown) => void;
  const run = async (sql: string, values: unknown, done: Done | undefined, rowsOnly = false) => {
    try {
      const [first = '', ...parts] = sql.split('?');
      const numbered = () => first + parts.map((part, at) => `$${at + 1}${part}`).join('');
      const listed = Array.isArray(values) && values.length > 0 ? [numbered(), values] : [sql];
      const result = await client.query(...(listed as [string, unknown[]]));
      // Several statements have several results, as the callers expect of the last.
      const last = Array.isArray(result) ? result.at(-1) : result;
      done?.(null, rowsOnly ? last.rows : last);
      return result;
    } catch (error) {
      if (done === undefined) throw error;
      done(error);
      return undefined;
    }
  };
  const call =
    (rowsOnly: boolean) =>
    (sql: string, ...rest: readonly unknown[]) => {
      const done = rest.find((item) => typeof item === 'function') as Done | undefined;
      return run(sql, rest[0], done, rowsOnly);
    };
  return {
    runSql: call(false),
    all: call(true),
    createTable: (table: string, columns: Readonly<Record<string, ColumnSpec>>, done: Done) => {
      const { columns: nested } = columns as { readonly columns?: typeof columns };
      const list = Object.entries(nested ?? columns).map(writeColumn);
      return run(`create table ${table} (${list.join(', ')})`, [], done);
    },
    addColumn: (table: string, column: string, spec: ColumnSpec, done: Done) =>
      run(`alter table ${table} add column ${writeColumn([column, spec])}`, [], done),
    removeColumn: (table: string, column: string, done: Done) =>
      run(`alter table ${table} drop column "${column}"`, [], done),
  };
}

function writeColumn([name, spec]: readonly [string, ColumnSpec]): string {
  const { type, length, primaryKey, notNull, unique, defaultValue } = spec;
  const base = type === 'string' ? `varchar(${length ?? 255})` : type;
  const isCall = typeof defaultValue === 'string' && defaultValue.endsWith(')');
  const value = typeof defaultValue === 'string' && !isCall ? `'${defaultValue}'` : defaultValue;
  return [
    `"${name}" ${base}`,
    primaryKey && 'primary key',
    notNull && 'not null',
    unique && 'unique',
    defaultValue !== undefined && `default ${value}`,
  ]
    .filter(Boolean)
    .join(' ');
}
