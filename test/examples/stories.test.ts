// Goal: the examples run as their READMEs say, what they tell is what became durable, and nothing
// of them is left behind. Method: each is run as a process, once kept and read back without
// EffectMatch, once as it comes; one is stopped midway.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import pg from 'pg';
import { skipWithout } from '../integration.ts';
import { skipWithoutMariadb } from '../mysql/binaries.ts';
import { sharedServer as sharedMariadb } from '../mysql/server.ts';
import { sharedServer } from '../postgres/server.ts';
import { type Run, Site } from './command.ts';

const EXAMPLES = [
  ...['agents', 'config-files', 'invoice-postgres', 'month-end', 'payment-http', 'refund-agent'],
  ...['side-by-side', 'stock-mariadb'],
];

function assertDone({ code, said, complained }: Run): string {
  assert.deepEqual({ code, complained }, { code: 0, complained: '' }, said);
  return said;
}

describe('what an example leaves is what it tells', { concurrency: 2 }, () => {
  test('month-end: every invoice is paid once, also when a worker on DBOS is killed', {
    skip: skipWithout('dbos'),
  }, async () => {
    using site = new Site();
    const { adminUrl } = await sharedServer();
    const env = { DATABASE_URL: adminUrl };
    assertDone(await site.run(['month-end', '--keep', site.kept, '--dbos'], { env }));
    using books = new DatabaseSync(join(site.kept, 'books.db'), { readOnly: true });
    const unpaid = books.prepare("select count(*) as n from invoice where status <> 'paid'").get();
    assert.equal(unpaid?.n, 0);
    const closed = books.prepare('select month, invoices from closing order by month').all();
    assert.deepEqual(
      closed.map((row) => ({ ...row })),
      [
        { month: '2026-01', invoices: 3 },
        { month: '2026-03', invoices: 3 },
        { month: '2026-04', invoices: 6 },
      ],
    );
  });

  test('refund-agent: one refund of the agent, one by telephone, and receipts of every verdict', async () => {
    using site = new Site();
    assertDone(await site.run(['refund-agent', '--keep', site.kept]));
    using shop = new DatabaseSync(join(site.kept, 'shop.db'), { readOnly: true });
    const refunds = shop.prepare('select purchase, amount, reason from refund order by id').all();
    assert.deepEqual(
      refunds.map((row) => ({ ...row })),
      [
        { purchase: 101, amount: 2900, reason: 'broken' },
        { purchase: 103, amount: 1500, reason: 'by phone' },
      ],
    );
    const purchases = shop.prepare('select id, refunded from purchase order by id').all();
    assert.deepEqual(
      purchases.map(({ id, refunded }) => [id, refunded]),
      [
        [101, 2900],
        [102, 0],
        [103, 1500],
        [104, 0],
      ],
    );
    const verdicts = readLines(join(site.kept, 'receipts.jsonl')).map((line) => {
      const { predicate } = JSON.parse(Buffer.from(JSON.parse(line).payload, 'base64').toString());
      return predicate.terminal.kind;
    });
    assert.deepEqual(verdicts, [
      'committed',
      'rejected',
      'rejected',
      'rejected',
      'rejected',
      'committed',
    ]);
    const [command = ''] =
      /node src\/cli\/main\.ts verify [^`]+/.exec(readme('refund-agent')) ?? [];
    const words = command.replaceAll('FOLDER', site.kept).split(' ').slice(1);
    const { status, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
    assert.equal(status, 0, stderr);
  });

  test('config-files: the approved changes, the killed one included, and no other', async () => {
    using site = new Site();
    assertDone(await site.run(['config-files', '--keep', site.kept]));
    const config = join(site.kept, 'config');
    assert.match(readlinkSync(config), /^\.config\.effectmatch\/versions\//);
    assert.deepEqual(readdirSync(config).sort(), ['app.json', 'secrets.env']);
    assert.equal(readFileSync(join(config, 'app.json'), 'utf8'), '{ "pool": 40 }\n');
    assert.equal(readFileSync(join(config, 'secrets.env'), 'utf8'), 'API_KEY=8f1c\n');
    assert.equal(lstatSync(join(config, 'secrets.env')).mode & 0o777, 0o600);
    assert.deepEqual(site.leftBehind, []);
  });

  test('payment-http: twice without EffectMatch, once each with it, according to the bank', async () => {
    using site = new Site();
    assertDone(await site.run(['payment-http', '--keep', site.kept]));
    const book = readLines(join(site.kept, 'bank-book.jsonl')).map((line) => JSON.parse(line));
    const entries = book.filter(({ effect }) => effect.after.memo !== 'probe');
    const paid = entries.filter(({ effect }) => effect.target === 'payment');
    assert.deepEqual(
      paid.map(({ effect }) => [effect.op, effect.after.amount, effect.after.memo]),
      [1, 1, 2, 3, 4, 5].map((invoice) => ['insert', 350, `invoice ${invoice}`]),
    );
    const others = entries.filter(({ effect }) => effect.target !== 'payment');
    assert.deepEqual(
      others.map(({ effect, key }) => [effect.op, effect.target, key]),
      [['insert', 'notice', paid.at(-1).key]],
      'the one effect that was not approved',
    );
    const keys = paid.map(({ key }) => key);
    assert.deepEqual(keys.slice(0, 2), [null, null]);
    assert.equal(new Set(keys.slice(2)).size, 4);
    assert.ok(keys.slice(2).every((key) => /^occ_/.test(key)));
  });

  test('side-by-side: one server let the trigger through; the picture shows what was answered', {
    skip: skipWithout('dbhub'),
  }, async () => {
    using site = new Site();
    assertDone(await site.run(['side-by-side', '--keep', site.kept]));
    const read = (file: string) => {
      using db = new DatabaseSync(join(site.kept, file), { readOnly: true });
      const reminders = 'select count(*) from reminder';
      const sql = `select status, balance, (${reminders}) as reminders from invoice, vendor`;
      return { ...db.prepare(sql).get() };
    };
    assert.deepEqual(read('dbhub.db'), { status: 'paid', balance: 65, reminders: 0 });
    assert.deepEqual(read('books.db'), { status: 'open', balance: 100, reminders: 1 });
    const drawn = readFileSync(join(site.kept, 'side-by-side.svg'), 'utf8');
    assert.equal(drawn, readFileSync('docs/pictures/side-by-side.svg', 'utf8'));
    assert.match(drawn, /extra {4}~ vendor name="globex" {2}balance: 100 -> 65/);
    assert.match(drawn, /extra {4}- reminder id=1/);
    assert.deepEqual(site.leftBehind, []);
  });

  test('invoice-postgres, on a given server: one payment, one audit row, one letter', async () => {
    using site = new Site();
    const { adminUrl } = await sharedServer();
    const env = { DATABASE_URL: adminUrl };
    const said = assertDone(await site.run(['invoice-postgres', '--keep', site.kept], { env }));
    const [, name = ''] = /database +(invoices_[0-9a-f]{8})/.exec(said) ?? [];
    const url = Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href;
    try {
      assert.deepEqual(await ask(url, 'select id, status from invoice order by id'), [
        { id: 4711, status: 'approved' },
        { id: 4712, status: 'pending' },
        { id: 4713, status: 'pending' },
        { id: 4714, status: 'pending' },
      ]);
      assert.deepEqual(await ask(url, 'select invoice, amount from payment'), [
        { invoice: 4711, amount: 129_900 },
      ]);
      assert.deepEqual(await ask(url, 'select invoice, status from audit'), [
        { invoice: 4711, status: 'approved' },
      ]);
      assert.deepEqual(readLines(join(site.kept, 'letters.txt')), ['invoice-4711 will be paid']);
    } finally {
      await ask(adminUrl, `drop database ${name} with (force)`);
      const roles = ['owner', 'control', 'exec'].map((role) =>
        name.replace('invoices', `em_${role}`),
      );
      await ask(adminUrl, `drop role ${roles.join(', ')}`);
    }
  });
});

describe('nothing is left behind', { concurrency: 2 }, () => {
  for (const example of EXAMPLES.filter((name) => name !== 'side-by-side')) {
    const skip = example === 'stock-mariadb' && skipWithoutMariadb();
    test(`by ${example}`, { skip }, async () => {
      using site = new Site();
      assertDone(await site.run([example]));
      assert.deepEqual(site.leftBehind, []);
    });
  }

  test('by invoice-postgres on a given server', async () => {
    using site = new Site();
    const { adminUrl } = await sharedServer();
    assertDone(await site.run(['invoice-postgres'], { env: { DATABASE_URL: adminUrl } }));
    assert.deepEqual(
      await ask(adminUrl, "select datname from pg_database where datname like 'invoices\\_%'"),
      [],
    );
    const roles =
      "select rolname from pg_roles where rolname ~ '^em_(owner|control|exec)_[0-9a-f]{8}$'";
    assert.deepEqual(await ask(adminUrl, roles), []);
  });

  test('by stock-mariadb on a given server', { skip: skipWithoutMariadb() }, async () => {
    using site = new Site();
    const { port, createDatabase } = await sharedMariadb();
    const env = { MARIADB_URL: `mysql://root@127.0.0.1:${port}` };
    assertDone(await site.run(['stock-mariadb'], { env }));
    await using db = await createDatabase();
    const left = `select user from mysql.user where user rlike '^em_(owner|control|exec)_[0-9a-f]{8}$'
      union select schema_name from information_schema.schemata
      where schema_name rlike '^(warehouse|effectmatch)_[0-9a-f]{8}$'`;
    assert.deepEqual(await db.run(left), []);
  });

  test('by an example that is stopped in the middle', async () => {
    using site = new Site();
    const { code } = await site.run(['refund-agent'], { stopAt: '2. ' });
    assert.equal(code, 143);
    assert.deepEqual(site.leftBehind, []);
  });
});

test('the command lists the examples, refuses what is none, and never works in a folder that exists', async () => {
  using site = new Site();
  const listed = assertDone(await site.run([]));
  assert.deepEqual(
    [...listed.matchAll(/^ {2}([a-z-]+) {2,}An?/gm)].map(([, name]) => name),
    EXAMPLES,
  );
  assert.equal(assertDone(await site.run(['--help'])), listed);
  const unknown = await site.run(['refunds']);
  assert.equal(unknown.code, 1);
  assert.match(unknown.complained, /no example "refunds"; there are agents, config-files, /);
  const occupied = await site.run(['refund-agent', '--keep', '.']);
  assert.equal(occupied.code, 1);
  assert.match(occupied.complained, /exists already; name a folder that does not/);
});

test('an example imports what an application can import', () => {
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8')) as { exports: object };
  const entryPoints = Object.keys(exports).map((path) => join('effectmatch', path));
  const files = [...globSync(`examples/{${EXAMPLES},payment-service}/*.ts`), 'examples/story.ts'];
  const foreign = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(?:from|import\() ?'([^']+)'/g)].flatMap(
      ([, name = '']) => {
        const isOwn =
          name.startsWith('./') || name === '../story.ts' || name.startsWith('../payment-service/');
        const isPublic =
          entryPoints.includes(name) ||
          /^(node:|@modelcontextprotocol\/client)/.test(name) ||
          ['mysql2/promise', 'pg', 'zod'].includes(name);
        return isOwn || isPublic ? [] : [`${file}: ${name}`];
      },
    ),
  );
  assert.ok(files.length > 15);
  // The servers of the tests stand in for those that are there already.
  assert.deepEqual(foreign.sort(), [
    'examples/invoice-postgres/server.ts: ../../test/postgres/server.ts',
    'examples/month-end/workers.ts: ../invoice-postgres/server.ts',
    'examples/stock-mariadb/server.ts: ../../test/mysql/server.ts',
  ]);
});

function readme(example: string): string {
  return readFileSync(`examples/${example}/README.md`, 'utf8');
}

function readLines(file: string): readonly string[] {
  return readFileSync(file, 'utf8').trimEnd().split('\n');
}

async function ask(url: string, sql: string): Promise<readonly object[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
