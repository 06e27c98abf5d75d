// Goal: the SQL that a database administrator reviews is the SQL that runs: every file and statement
// is used, every placeholder is filled and quoted, and the server stores what the files say. Method:
// read the files and the source as text, parse every statement with the server's grammar, and
// compare a provisioned database with the files.
import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { loadModule, parseSync } from 'libpg-query';
import { PINNED_FORMATS } from '../../../src/adapters/postgres/formats.ts';
import { CALLS } from '../../../src/adapters/postgres/prepared.ts';
import { TRUSTED_FUNCTIONS } from '../../../src/adapters/postgres/provision/functions.ts';
import { provisionSteps } from '../../../src/adapters/postgres/provision/provision.ts';
import { SQL } from '../../../src/adapters/postgres/sql.ts';
import { SqlFile } from '../../../src/postgres/sql-file.ts';
import { openSite } from './certify/site.ts';

const FOLDER = 'src/adapters/postgres/sql';
const files = globSync(`${FOLDER}/*.sql`).map((file) => ({
  name: file.slice(FOLDER.length + 1, -'.sql'.length),
  text: readFileSync(file, 'utf8'),
}));
/** Every statement of these is sent, in its order. */
const SENT_WHOLE = ['catalog', 'tables', 'functions', 'guards'];
/** Values for every placeholder that there is. */
const VALUES = Object.fromEntries(
  [
    ...[
      'owner',
      'control',
      'execution',
      'others',
      'role',
      'database',
      'schema',
      'table',
      'sequence',
    ],
    ...['trigger', 'names', 'password', 'version', 'lenders'],
  ].map((name) => [name, `a"b'c\\${name}`]),
);

before(async () => await loadModule());

test('every file is loaded, and every statement is asked for by its name', () => {
  assert.deepEqual(files.map(({ name }) => name).sort(), Object.keys(SQL).sort());
  const source = globSync('src/adapters/postgres/**/*.ts').map((file) =>
    readFileSync(file, 'utf8'),
  );
  for (const [file, statements] of Object.entries(SQL)) {
    assert.ok(statements.names.length > 0, `${file} has statements`);
    if (SENT_WHOLE.includes(file)) continue;
    for (const name of statements.names.filter((name) => !name.startsWith('dangerous: '))) {
      const isAskedFor = source.some((text) => text.includes(`'${name}'`));
      assert.ok(isAskedFor, `${file}: ${name} is used`);
    }
  }
});

test('every statement is one statement to the server, with its placeholders filled', () => {
  for (const [file, statements] of Object.entries(SQL)) {
    for (const name of statements.names) {
      const filled = statements.get(name, VALUES);
      // Continues with the statement that reads the rows it lists.
      const isBeginning = name === 'watched' || name.endsWith('_versions');
      const text = isBeginning && file === 'fingerprint' ? `${filled} select 1` : filled;
      const { stmts } = parseSync(text) as { stmts: readonly unknown[] };
      assert.equal(stmts.length, 1, `${file}: ${name}`);
      assert.doesNotMatch(text.replaceAll("'", "''"), /(?<!:):"\w/, `${file}: ${name}`);
    }
  }
});

test('a dollar quote of a file cannot be ended by a value', () => {
  for (const { name, text } of files) {
    const quotes = new Set(text.match(/\$[a-z_]*\$/g) ?? []);
    assert.deepEqual(
      [...quotes].filter((quote) => quote !== '$effectmatch$'),
      [],
      name,
    );
  }
  assert.throws(() => SQL.provision.get('create_owner', { role: 'x$effectmatch$; drop' }), {
    code: 'ERR_EM_ADAPTER_REFUSED',
  });
});

test('a placeholder is quoted as an identifier or a literal, and must have a value', () => {
  const role = `x"; drop schema public; --'\\`;
  assert.equal(
    SQL.provision.get('set_password', { role, password: role }),
    `alter role "x""; drop schema public; --'\\" password  E'x"; drop schema public; --''\\\\'`,
  );
  assert.throws(() => SQL.provision.get('set_password', { role }), /password/);
  assert.throws(() => SQL.provision.get('no_such'), /no_such/);
});

test('a statement of a file begins after its name and its comments, and ends before its semicolon', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-sql-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'a.sql');
  const first = '-- name: a\n-- why\nselect 1\n-- in it\n+ 2;\n';
  writeFileSync(path, `-- head\n\n${first}\n-- name: b\nselect :x;\n`);
  const file = new SqlFile(pathToFileURL(path));
  assert.deepEqual(file.all(), ['select 1\n-- in it\n+ 2', 'select :x']);
});

test('trusted functions print and read values as the runtime expects, and expect its prepared calls', () => {
  const pinned = (name: string) =>
    [...(TRUSTED_FUNCTIONS.get(name)?.create ?? '').matchAll(/^ +set (\w+) = '(.*)'$/gm)].map(
      ([, setting = '', value]) => [setting, value],
    );
  assert.deepEqual(pinned('read_rows'), Object.entries(PINNED_FORMATS));
  for (const recorder of ['record_row', 'record_insert', 'record_update', 'record_delete'])
    assert.deepEqual(pinned(recorder), Object.entries(PINNED_FORMATS).slice(0, 7), recorder);
  for (const name of ['settle', 'calls_intact'])
    assert.ok(TRUSTED_FUNCTIONS.get(name)?.body.includes(`= ${Object.keys(CALLS).length}\n`), name);
});

test('both statements that judge stored expressions know the same node kinds', () => {
  const lists = ['relations', 'types'].map(
    (name) => /'\^\(\?:CONST\|[A-Z|]+\)\$'/.exec(SQL.registered.get(name))?.[0],
  );
  assert.ok(lists[0]);
  assert.equal(lists[0], lists[1]);
});

test('the server stores the functions and triggers that the files say', async () => {
  await using site = await openSite();
  const functions = await site.db.run(
    `select proname::text as name, prosrc as body, proconfig as settings from pg_proc where pronamespace = 'effectmatch'::regnamespace`,
  );
  assert.deepEqual(functions.map(({ name }) => name).sort(), [...TRUSTED_FUNCTIONS.keys()].sort());
  for (const { name, body, settings } of functions) {
    const own = TRUSTED_FUNCTIONS.get(String(name));
    assert.equal(body, own?.body, String(name));
    const names = (settings as readonly string[]).map((text) => text.split('=')[0]?.toLowerCase());
    assert.deepEqual(names, own?.settings, String(name));
    assert.ok(files.some(({ text }) => text.includes(`$effectmatch$${body}$effectmatch$;`)));
  }
  const [callable] = await site.db.run(
    `select array(select proname::text from pg_proc where pronamespace = 'effectmatch'::regnamespace
       and has_function_privilege('${site.roles.execution}', oid, 'execute') order by 1) as names`,
  );
  assert.deepEqual(
    callable?.names,
    [...TRUSTED_FUNCTIONS]
      .filter(([, own]) => own.isCallable)
      .map(([name]) => name)
      .sort(),
  );
});

test('a provisioning script has no placeholder left, whatever the names', () => {
  const roles = { owner: `o'"w`, control: 'c :"x"', execution: "e :'x'", others: 'p' };
  const steps = provisionSteps({
    lenders: ['a "quoted" one'],
    ...{ boundary: 'server', database: 'd', roles, rowSecurity: true },
    ...{ views: [], entryPoints: [] },
    relations: [
      {
        ...{ schema: 's', name: 'r', bulk: true, partitioned: true },
        sequences: [{ schema: 's', name: 'q', byDefault: true }],
      },
    ],
    reads: [{ schema: 's', name: 'r' }],
    passwords: { control: 'p', execution: undefined },
  });
  for (const { sql } of steps) {
    const { stmts } = parseSync(sql) as { stmts: readonly unknown[] };
    assert.equal(stmts.length, 1, sql);
  }
});
