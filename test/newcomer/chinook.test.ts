// Goal: a team that only has the package can do its everyday work on a schema with capitalised
// names. Method: the packed tarball in an empty folder, the commands as a person types them, a
// program for the agent; Chinook's tables on PostgreSQL and on SQLite.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, suite, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { linkPackages } from '../docs/desk.ts';
import { freshDatabase } from '../postgres/server.ts';
import { CHINOOK_POSTGRES, CHINOOK_SQLITE } from './chinook.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const installed = mkdtempSync(join(tmpdir(), 'effectmatch-newcomer-'));
after(() => rmSync(installed, { recursive: true, force: true }));

/** Packs the project and unpacks it where `npm install` would. */
function installTarball(): void {
  const packed = spawnSync('npm', ['pack', '--silent', '--pack-destination', installed], {
    cwd: root,
    encoding: 'utf8',
  });
  assert.equal(packed.status, 0, packed.stderr);
  const [tarball = ''] = readdirSync(installed).filter((name) => name.endsWith('.tgz'));
  const home = join(installed, 'node_modules/effectmatch');
  mkdirSync(home, { recursive: true });
  const unpacked = spawnSync('tar', [
    '-xzf',
    join(installed, tarball),
    '--strip-components=1',
    '-C',
    home,
  ]);
  assert.equal(unpacked.status, 0, String(unpacked.stderr));
  linkPackages(installed, ['pg', 'libpg-query']);
  mkdirSync(join(installed, 'node_modules/.bin'));
  symlinkSync(join(home, 'dist/cli/main.js'), join(installed, 'node_modules/.bin/effectmatch'));
}

/** A folder in which a person works, with the database that is worked on. */
interface Place {
  /** Runs a command; it must succeed. */
  run(command: string, args?: readonly string[]): string;
  save(file: string, text: string): void;
  rows(sql: string): Promise<readonly object[]>;
  /** How a parameter is written. */
  parameter(position: number): string;
}

function openFolder(name: string, environment: Readonly<Record<string, string>>) {
  const folder = join(installed, name);
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  const PATH = [join(installed, 'node_modules/.bin'), dirname(process.execPath), process.env.PATH];
  const env = { ...process.env, PATH: PATH.join(delimiter), NO_COLOR: '1', ...environment };
  return {
    folder,
    save: (file: string, text: string) => writeFileSync(join(folder, file), text),
    run(command: string, args: readonly string[] = []): string {
      const ended = spawnSync(command, args, { cwd: folder, env, encoding: 'utf8' });
      const said = `${command} ${args.join(' ')}\n${ended.stdout}\n${ended.stderr}`;
      assert.equal(ended.status, 0, said);
      return ended.stdout;
    },
  };
}

/** Approves a proposal as a person would after reading it. */
function approve(place: Place, name: string): string {
  const files = [`${name}.json`, '--key', 'alice.key.json', '--out', `${name}.license.json`];
  return place.run('effectmatch', ['approve', ...files, '--yes']);
}

/** Plans and approves an action, and has it run; returns what the approver and the agent saw. */
function workThrough(place: Place, name: string, action: readonly string[]) {
  const planned = ['plan', ...action, '--task', name, '--out', `${name}.json`];
  place.run('effectmatch', planned);
  const seen = approve(place, name);
  const ran = place.run('effectmatch', ['run', `${name}.license.json`, ...action]);
  assert.match(ran, /^committed: /);
  return { seen, ran };
}

async function updatePrice(place: Place): Promise<void> {
  place.save(
    'propose.ts',
    `import { writeFileSync } from 'node:fs';
    import { createRuntime, update } from 'effectmatch';
    import config from './effectmatch.config.ts';
    await using runtime = await createRuntime(config);
    const effects = [update('Track', { TrackId: 7 }, { UnitPrice: [0.99, 1.29] })];
    const [adapter = ''] = Object.keys(config.adapters);
    const proposal = await runtime.prepare({ adapter, task: 'price', planRevision: 1, effects });
    writeFileSync('price.json', JSON.stringify(proposal));`,
  );
  place.run('node', ['propose.ts']);
  const seen = approve(place, 'price');
  assert.match(seen, /~ Track TrackId=7 {2}UnitPrice: 0\.99 -> 1\.29/);
  const sql = `update "Track" set "UnitPrice" = 1.29 where "TrackId" = 7`;
  assert.match(place.run('effectmatch', ['run', 'price.license.json', '--sql', sql]), /^committed/);
}

/** The agent's program: it learns the number of the invoice that it wrote. */
const AGENT = `import { readFileSync } from 'node:fs';
  import { createRuntime } from 'effectmatch';
  import config from './effectmatch.config.ts';
  await using runtime = await createRuntime(config);
  const license = readFileSync('invoice.license.json', 'utf8');
  const done = await runtime.ensure(license, JSON.parse(readFileSync('invoice.action.json', 'utf8')));
  if (done.kind !== 'committed') throw new Error(done.kind);
  console.log('new invoice', done.results?.[0]?.rows[0]?.InvoiceId);
  console.log('generated', Object.values(done.generated ?? {}).sort().join(' '));`;

async function writeInvoice(place: Place): Promise<void> {
  const line = (track: number) => ({
    sql: `insert into "InvoiceLine" ("InvoiceId", "TrackId", "UnitPrice")
      select max("InvoiceId"), ${place.parameter(1)}, 0.99 from "Invoice"`,
    values: [track],
  });
  const invoice = {
    sql: 'insert into "Invoice" ("CustomerId", "Total") values (1, 1.98) returning "InvoiceId"',
  };
  place.save('invoice.action.json', JSON.stringify({ statements: [invoice, line(3), line(4)] }));
  place.save('agent.ts', AGENT);
  place.run('effectmatch', ['plan', '--action', 'invoice.action.json', '--out', 'invoice.json']);
  const seen = approve(place, 'invoice');
  assert.match(seen, /\+ Invoice InvoiceId=<generated "[^"]+">/);
  assert.equal(seen.match(/\+ InvoiceLine /g)?.length, 2);
  const printed = place.run('node', ['agent.ts']).split('\n');
  // A rehearsal draws from PostgreSQL's sequences, so which numbers come next is the database's.
  const found = await place.rows('select max("InvoiceId") as id from "Invoice"');
  const { id } = found[0] as { readonly id: number };
  assert.ok(id >= 413);
  assert.equal(printed[0], `new invoice ${id}`);
  const lines = await place.rows(
    'select "InvoiceLineId" as id, "InvoiceId" as invoice from "InvoiceLine" where "TrackId" in (3, 4)',
  );
  const numbers = (lines as { readonly id: number; readonly invoice: number }[]).map((line) => {
    assert.equal(line.invoice, id);
    return line.id;
  });
  assert.equal(printed[1], `generated ${[id, ...numbers].sort().join(' ')}`);
  assert.equal(place.run('node', ['agent.ts']).split('\n')[1], printed[1], 'asked again');
}

async function deleteInvoice(place: Place): Promise<void> {
  const action = ['--sql', 'delete from "Invoice" where "InvoiceId" = 412'];
  const { seen } = workThrough(place, 'delete', action);
  assert.match(seen, /- Invoice InvoiceId=412/);
  assert.match(seen, /- InvoiceLine InvoiceLineId=2239[\s\S]*- InvoiceLine InvoiceLineId=2240/);
  assert.deepEqual(await place.rows('select * from "InvoiceLine" where "InvoiceId" = 412'), []);
}

async function moveCustomer(place: Place): Promise<void> {
  const sql = `update "Customer" set "City" = 'Lisboa' where "CustomerId" = 1`;
  const { seen } = workThrough(place, 'city', ['--sql', sql]);
  assert.match(seen, /\+ Audit AuditId=<generated "[^"]+"> {2}At=<now[^>]*>/);
  const audited = await place.rows('select "What" from "Audit"');
  assert.deepEqual(audited, [{ What: 'city of 1 is Lisboa' }]);
}

async function raisePrices(place: Place): Promise<void> {
  const sql = `update "Track" set "UnitPrice" =
    case when "TrackId" = 3210 then 99999 else "UnitPrice" + 1 end`;
  const { seen } = workThrough(place, 'prices', ['--sql', sql]);
  const screen = seen.split('\n').slice(0, 40).join('\n');
  assert.match(screen, /99999/, 'the odd one is on the first screen');
  assert.match(screen, /5,?000/);
  const [found] = await place.rows('select count(*) as n from "Track" where "UnitPrice" > 1.5');
  assert.equal(Number((found as { n: unknown }).n), 5000);
}

installTarball();

const work = {
  'a price is updated by a manifest': updatePrice,
  'an invoice with two lines is planned, and the agent learns its number': writeInvoice,
  'an invoice is deleted with its lines': deleteInvoice,
  'a trigger that records the time is approved with it': moveCustomer,
  '5,000 prices are raised, and the approver sees the odd one': raisePrices,
};

suite('SQLite', () => {
  const folder = openFolder('sqlite', {});
  const file = join(folder.folder, 'chinook.db');
  const place: Place = {
    ...folder,
    parameter: () => '?',
    async rows(sql) {
      using db = new DatabaseSync(file);
      return db
        .prepare(sql)
        .all()
        .map((row) => ({ ...row }));
    },
  };
  test('init', () => {
    using db = new DatabaseSync(file);
    db.exec(CHINOOK_SQLITE);
    place.run('effectmatch', ['init', 'chinook.db', '--approver', 'alice']);
  });
  for (const [name, step] of Object.entries(work)) test(name, () => step(place));
});

suite('PostgreSQL', async () => {
  const db = await freshDatabase();
  after(() => db.drop());
  await db.run(CHINOOK_POSTGRES);
  const folder = openFolder('postgres', { EFFECTMATCH_ADMIN_URL: db.url() });
  const place: Place = {
    ...folder,
    parameter: (position) => `$${position}`,
    rows: (sql) => db.run(sql),
  };
  test('init and provision', () => {
    place.run('effectmatch', ['init', '--approver', 'alice', '--roles', db.role('chinook')]);
    place.run('effectmatch', ['provision']);
    place.run('effectmatch', ['doctor']);
  });
  for (const [name, step] of Object.entries(work)) test(name, () => step(place));
});
