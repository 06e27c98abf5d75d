// Goal: a database becomes a configuration that compiles and works, and nothing of value is ever
// overwritten. Method: the real command in folders of its own on real SQLite files; the compiler
// itself checks what was written.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { MAIN } from './command.ts';
import { Desk, SHOP } from './newcomer.ts';

/** The project's compiler with the project's strictness, on the one file that was written. */
function compile(desk: Desk): string {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const options = {
    extends: `${root}tsconfig.json`,
    compilerOptions: { typeRoots: [`${root}node_modules/@types`] },
    include: [],
    files: ['effectmatch.config.ts'],
  };
  writeFileSync(desk.path('tsconfig.json'), JSON.stringify(options));
  const { stdout } = spawnSync(`${root}node_modules/.bin/tsc`, ['-p', desk.path('tsconfig.json')], {
    encoding: 'utf8',
  });
  return stdout;
}

test('init registers what can be registered, proposes clock columns as volatile, and says what it left out', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  const { code, stdout, stderr } = await desk.run(['init', 'books.db', '--approver', 'alice']);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /left out log: it has no PRIMARY KEY/);
  assert.match(stdout, /effectmatch doctor/);
  assert.match(stdout, /effectmatch serve .*`agents`/);
  const config = desk.read('effectmatch.config.ts');
  assert.match(
    config,
    /\{ name: 'invoice', volatile: \['updated_at'\] \}, \/\/ key id; updated_at is set to the time by trigger touch; trigger notify writes notification/,
  );
  assert.match(config, /'notification', \/\/ key id; changes with invoice \(foreign key\)/);
  assert.equal(config.match(/'log'/), null);
  assert.equal(compile(desk), '', 'the configuration compiles');
  const named = config.replace('// agents:', 'agents:');
  assert.notEqual(named, config);
  writeFileSync(desk.path('effectmatch.config.ts'), named);
  assert.equal(compile(desk), '', 'the example of `agents` compiles');
  const made = await desk.run(['token', 'new', 'billing-agent']);
  assert.match(made.stdout, /^token {3}emt_/, made.stderr);
  for (const secret of ['effectmatch.keys.json', 'alice.key.json']) {
    assert.equal(statSync(desk.path(secret)).mode & 0o777, 0o600, secret);
  }
  const doctor = await desk.run(['doctor']);
  assert.equal(doctor.code, 0, doctor.stderr);
});

test('a configuration that was changed to something wrong no longer compiles, so the check above means something', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  assert.equal((await desk.run(['init', 'books.db'])).code, 0);
  const config = desk.read('effectmatch.config.ts');
  writeFileSync(
    desk.path('effectmatch.config.ts'),
    config.replace("profile: 'net-state'", "profile: 'row-event'"),
  );
  assert.match(compile(desk), /row-event/);
});

test('an existing configuration is replaced only with --force, and keys never are', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  assert.equal((await desk.run(['init', 'books.db', '--approver', 'alice'])).code, 0);
  const [ring, key] = [desk.read('effectmatch.keys.json'), desk.read('alice.key.json')];
  writeFileSync(desk.path('effectmatch.config.ts'), '// mine\n');
  const refused = await desk.run(['init', 'books.db', '--yes']);
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /effectmatch\.config\.ts exists, and nothing was written\nnext: replace it with --force/,
  );
  assert.equal(desk.read('effectmatch.config.ts'), '// mine\n');
  const forced = await desk.run(['init', 'books.db', '--force', '--approver', 'alice']);
  assert.equal(forced.code, 0, forced.stderr);
  assert.match(desk.read('effectmatch.config.ts'), /defineConfig/);
  assert.equal(desk.read('effectmatch.keys.json'), ring);
  assert.equal(desk.read('alice.key.json'), key);
});

test('for a configuration without its keyring, init makes the keyring and nothing else', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  assert.equal((await desk.run(['init', 'books.db', '--approver', 'alice'])).code, 0);
  const config = desk.read('effectmatch.config.ts');
  rmSync(desk.path('effectmatch.keys.json'));
  const made = await desk.run(['init']);
  assert.equal(made.code, 0, made.stderr);
  assert.match(made.stdout, /^written {2}effectmatch\.keys\.json: secret/);
  assert.equal(statSync(desk.path('effectmatch.keys.json')).mode & 0o777, 0o600);
  assert.equal(desk.read('effectmatch.config.ts'), config);
  // A ledger that was sealed with the lost keyring needs that one.
  rmSync(desk.path('effectmatch.keys.json'));
  writeFileSync(desk.path('effectmatch.db'), '');
  const refused = await desk.run(['init']);
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /keys\.json is missing[\s\S]*restore it from a backup/);
  assert.equal(existsSync(desk.path('effectmatch.keys.json')), false);
});

test('what init writes can be used in every kind of package, and no command warns about it', async () => {
  for (const [manifest, name] of [
    ['{ "type": "commonjs" }', 'effectmatch.config.mts'], // as `npm init` writes it
    ['{ "dependencies": {} }', 'effectmatch.config.mts'], // as `npm install` does in an empty folder
    [undefined, 'effectmatch.config.ts'],
  ] as const) {
    using desk = new Desk();
    desk.change(SHOP);
    rmSync(desk.path('package.json'));
    if (manifest !== undefined) writeFileSync(desk.path('package.json'), manifest);
    const { code, stdout, stderr } = await desk.run(['init', 'books.db', '--approver', 'alice']);
    assert.equal(code, 0, stderr);
    assert.ok(stdout.startsWith(`written  ${name}: books, 2 tables registered\n`), stdout);
    const doctor = await desk.run(['doctor']);
    assert.deepEqual([doctor.code, doctor.stderr], [0, ''], manifest);
    const again = await desk.run(['init', 'books.db']);
    assert.match(again.stderr, new RegExp(`${name} exists, and nothing was written`));
  }
});

test('a configuration that Node takes for CommonJS is refused with the name that it should have', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  assert.equal((await desk.run(['init', 'books.db'])).code, 0);
  writeFileSync(desk.path('package.json'), '{ "type": "commonjs" }');
  const { code, stderr } = await desk.run(['doctor']);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /ERR_EM_CONFIG_INVALID: .*effectmatch\.config\.ts cannot be loaded: .*outside a module/,
  );
  assert.match(
    stderr,
    /\nnext: rename it to effectmatch\.config\.mts, or write "type": "module" into package\.json/,
  );
});

test('a name from the database stays a name, whatever characters it holds', async () => {
  using desk = new Desk();
  const nasty = `x'\\ */\n}); process.exit(7); // \u2028`;
  desk.change(`create table "${nasty}" (id integer primary key, "${nasty}" text)`);
  assert.equal((await desk.run(['init', 'books.db'])).code, 0);
  assert.equal(compile(desk), '');
  const doctor = await desk.run(['doctor', '--all']);
  assert.equal(doctor.code, 0, doctor.stderr);
});

test('a trigger that leads from a chosen table to one that is not is named at once', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  const { code, stdout } = await desk.run(['init', 'books.db', '--relations', 'invoice', '--json']);
  assert.equal(code, 0);
  const report = JSON.parse(stdout);
  assert.deepEqual(report.strays, [{ trigger: 'notify', on: 'invoice', writes: 'notification' }]);
  assert.deepEqual(report.relations, ['invoice']);
});

test('what cannot be done is refused before anything is written', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  desk.change('create table log (line text)', 'keyless.db');
  writeFileSync(
    desk.path('letter.txt'),
    'not a database, but long enough to be taken for one by its size alone\n'.repeat(99),
  );
  const before = readdirSync(desk.folder).sort();
  const cases: readonly (readonly [readonly string[], RegExp, RegExp])[] = [
    [['missing.db'], /ERR_EM_NOT_FOUND: no database at/, /nothing was written/],
    [
      ['letter.txt'],
      /ERR_EM_ADAPTER_UNAVAILABLE: .* cannot be read as an SQLite database/,
      /nothing was written/,
    ],
    [
      ['keyless.db'],
      /no table can be registered: log: it has no PRIMARY KEY.*nothing was written/,
      /change the table/,
    ],
    [
      ['books.db', '--relations', 'invoce'],
      /unknown table "invoce" \(did you mean "invoice"\?\)/,
      /the tables are/,
    ],
    [
      ['books.db', '--relations', 'log'],
      /"log" cannot be registered: it has no PRIMARY KEY/,
      /leave it out/,
    ],
    [['books.db', '--profile', 'row-event'], /SQLite reports only net changes/, /nothing was done/],
    [['books.db', '--approver', ';-'], /an issuer is named by/, /nothing was done/],
    [['books.db', '--name', 'a b'], /the name of an adapter has/, /nothing was done/],
    [[], /name the database/, /nothing was done/],
  ];
  const calls = cases.map(async ([words, what, next]) => {
    const { code, stderr } = await desk.run(['init', ...words], {
      env: { EFFECTMATCH_ADMIN_URL: '' },
    });
    assert.equal(code, 1, words.join(' '));
    assert.match(stderr, what);
    assert.match(stderr, next);
  });
  await Promise.all(calls);
  assert.deepEqual(readdirSync(desk.folder).sort(), before);
});

test('on a terminal init shows the tables, asks, and replaces nothing without a yes', async (context) => {
  if (spawnSync('script', ['--version']).error !== undefined)
    return context.skip('there is no `script` here');
  using desk = new Desk();
  desk.change(SHOP);
  const first = await converse(desk, [
    [/Which tables may operations write\?.*\[all\] $/, 'invoice, notification'],
    [/Who approves\?.*\] $/, 'alice'],
  ]);
  assert.equal(first.code, 0, first.printed);
  assert.match(first.printed, /log {2}cannot be registered: it has no PRIMARY KEY/);
  assert.match(desk.read('effectmatch.config.ts'), /issuers: \{\n {4}alice: \{ key: 'ed25519:/);
  const config = desk.read('effectmatch.config.ts');
  rmSync(desk.path('effectmatch.config.ts'));
  const left = await converse(desk, [
    [/Which tables may operations write\?.*\[all\] $/, INTERRUPT],
  ]);
  assert.equal(left.code, 1, left.printed);
  assert.match(left.printed, /nothing was written/);
  assert.equal(existsSync(desk.path('effectmatch.config.ts')), false, 'Ctrl-C is no answer');
  writeFileSync(desk.path('effectmatch.config.ts'), config);
  const second = await converse(desk, [[/exists\. Replace it\? \[y\/N\] $/, '']]);
  assert.equal(second.code, 1, second.printed);
  assert.match(second.printed, /exists, and nothing was\s+written/);
  assert.equal(desk.read('effectmatch.config.ts'), config);
});

const INTERRUPT = '\u0003'; // Ctrl-C
const keysOf = (answer = '') => (answer === INTERRUPT ? answer : `${answer}\r`);

/** Runs init on a terminal and answers each question when it is asked. */
async function converse(
  desk: Desk,
  answers: readonly (readonly [RegExp, string])[],
): Promise<{ readonly code: number | null; readonly printed: string }> {
  const command = `'${process.execPath}' '${MAIN}' init books.db --no-color`;
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    cwd: desk.folder,
    stdio: ['pipe', 'pipe', 'inherit'],
    timeout: 60_000, // so that a question too many fails and does not wait
  });
  const left = [...answers];
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal moves its cursor with them.
    printed += String(chunk).replace(/\u001b\[[\d;?]*[A-Za-z]/g, '');
    if (left[0]?.[0].test(printed) === true) child.stdin.write(keysOf(left.shift()?.[1]));
  });
  const [code] = (await once(child, 'close')) as [number | null];
  assert.deepEqual(left, [], printed);
  return { code, printed };
}

test('keygen writes a key that nobody else can read, once', async () => {
  using desk = new Desk();
  const { code, stdout } = await desk.run(['keygen', 'ap-team']);
  assert.equal(code, 0);
  assert.match(stdout, /'ap-team': \{ key: 'ed25519:[\w-]{43}', may: /);
  assert.doesNotMatch(stdout, /ed25519-private/);
  assert.equal(statSync(desk.path('ap-team.key.json')).mode & 0o777, 0o600);
  const key = desk.read('ap-team.key.json');
  const again = await desk.run(['keygen', 'ap-team']);
  assert.equal(again.code, 1);
  assert.match(again.stderr, /exists already and is never overwritten/);
  assert.equal(desk.read('ap-team.key.json'), key);
  assert.equal(existsSync(desk.path('effectmatch.keys.json')), false);
});
