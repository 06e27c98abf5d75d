// Goal: with the generated types a manifest that names a wrong table, column or type does not
// compile, and a right one works. Method: the real command on a real database, the compiler on
// manifests with marked mistakes, and one that is executed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freshDatabase } from '../postgres/server.ts';
import { Desk, SHOP } from './newcomer.ts';

/** Every marked line must be an error, and no other line may be one. */
const USE = `import { generated } from 'effectmatch';
import { books } from './effectmatch.types.ts';

export const right = [
  books.update('invoice', { id: 1 }, { status: ['pending', 'paid'] }),
  books.insert('notification', { id: generated('n'), invoice: 1, text: null }),
  books.remove('notification', { id: 7 }),
];
export const required = [books.row('invoice', { id: 1 }, { status: 'pending' }), books.absent('invoice', { id: 9 })];
export const watched = books.read('invoice', { id: 1 }, ['status']);

// @ts-expect-error there is no such table
books.update('invoce', { id: 1 }, { status: 'paid' });
// @ts-expect-error there is no such column
books.update('invoice', { id: 1 }, { stauts: 'paid' });
// @ts-expect-error the status is text
books.update('invoice', { id: 1 }, { status: ['pending', 4] });
// @ts-expect-error the status cannot be null
books.update('invoice', { id: 1 }, { status: null });
// @ts-expect-error the key is the id
books.update('invoice', { status: 'paid' }, { status: 'paid' });
// @ts-expect-error there is no such column to read
books.read('invoice', { id: 1 }, ['stauts']);
`;

function compile(desk: Desk): string {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  writeFileSync(desk.path('use.ts'), USE);
  const options = {
    extends: `${root}tsconfig.json`,
    compilerOptions: { typeRoots: [`${root}node_modules/@types`] },
    include: [],
    files: ['use.ts'],
  };
  writeFileSync(desk.path('tsconfig.json'), JSON.stringify(options));
  return spawnSync(`${root}node_modules/.bin/tsc`, ['-p', desk.path('tsconfig.json')], {
    encoding: 'utf8',
  }).stdout;
}

test('types of an SQLite database catch what is wrong and let through what is right', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  const { code, stderr } = await desk.run(['types', 'books.db']);
  assert.equal(code, 0, stderr);
  assert.equal(compile(desk), '');
  const again = await desk.run(['types', 'books.db']);
  assert.match(again.stderr, /the file exists/);
  assert.equal((await desk.run(['types', 'books.db', '--force'])).code, 0);
  const states = `import { right } from './use.ts'; console.log(JSON.stringify(right[0]));`;
  const lines = USE.slice(0, USE.indexOf('// @ts-expect-error'));
  writeFileSync(desk.path('use.ts'), lines);
  const run = spawnSync(process.execPath, ['--input-type=module', '--eval', states], {
    cwd: desk.folder,
    encoding: 'utf8',
  });
  assert.deepEqual(JSON.parse(run.stdout), {
    op: 'update',
    target: 'invoice',
    key: { id: { is: 1 } },
    before: { status: { is: 'pending' } },
    after: { status: { is: 'paid' } },
    count: 1,
  });
});

test('types of a PostgreSQL database do the same', async () => {
  await using db = await freshDatabase();
  await db.run(`create table invoice (id integer primary key, status text not null, updated_at timestamptz);
    create table notification (id bigint generated always as identity primary key, invoice integer, text varchar(9));`);
  using desk = new Desk();
  const env = { EFFECTMATCH_ADMIN_URL: db.url() };
  const { code, stderr } = await desk.run(['types', '--name', 'books'], { env });
  assert.equal(code, 0, stderr);
  assert.equal(compile(desk), '');
});
