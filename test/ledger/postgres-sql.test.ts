// Goal: the SQL that a database administrator reviews is the SQL that runs: every statement is
// used, is one statement to the server, and depends on nothing that a session carries along.
// Method: read the files and the source as text, and parse every statement with the server's
// grammar.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { before, test } from 'node:test';
import { loadModule, parseSync } from 'libpg-query';
import { SQL } from '../../src/ledger/postgres/sql.ts';

const NAMES = [
  'schema',
  'requests',
  'owner',
  'login',
  'database',
  'version',
  'password',
  'role',
  'decide',
];
const VALUES = Object.fromEntries(NAMES.map((name) => [name, `a"b'c\\${name}`]));

before(async () => await loadModule());

test('every file is loaded, and every statement is asked for by its name', () => {
  const files = globSync('src/ledger/postgres/sql/*.sql').map((file) =>
    file.replace(/.*\/(\w+)\.sql$/, '$1'),
  );
  assert.deepEqual(files.sort(), Object.keys(SQL).sort());
  const source = globSync('src/ledger/postgres/*.ts').map((file) => readFileSync(file, 'utf8'));
  for (const name of [...SQL.queries.names, ...SQL.provision.names])
    assert.ok(
      source.some((text) => text.includes(`'${name}'`)),
      `${name} is used`,
    );
});

test('every statement is one statement to the server, with its placeholders filled', () => {
  for (const file of Object.values(SQL)) {
    for (const text of file.all(VALUES)) {
      const { stmts } = parseSync(text) as { stmts: readonly unknown[] };
      assert.equal(stmts.length, 1, text);
    }
  }
});

test('the ledger leaves nothing in a session that a pooler would hand to another client', () => {
  const source = globSync('src/ledger/postgres/*.ts').map((file) => readFileSync(file, 'utf8'));
  const sent = [...SQL.queries.all(VALUES), SQL.decide.get('decide', VALUES), ...source].join('\n');
  for (const banned of [
    /\bset (?!local\b|\w+ = |positions|claimed|lease_until_ms|revision)\w+ =/i,
    /advisory/i,
    /create temp/i,
    /session\.prepare\(/,
    /with hold/i,
  ])
    assert.doesNotMatch(sent, banned);
});
