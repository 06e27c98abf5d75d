// Goal: if the gate did not stop the attack on the XA branch, the commit without a marker is found:
// it is never called rejected, and open, recover and doctor report it and stop further operations.
// Method: a copy of the sources from which the gate is removed and in which the name of the branch
// is known; then the real sources, as a library and as the command, on the same ledger.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { mysql } from '../../../src/adapters/mysql/index.ts';
import { approver, createRuntime, generateApprover, update } from '../../../src/index.ts';
import { runCommand } from '../../cli/command.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { type ProtectedMariadb, protectedMariadb } from '../../mysql/protected.ts';

const SCHEMA = `create table t (id int primary key, v varchar(20));
  insert into t values (1, 'old'), (2, 'other');
  create procedure finish() begin xa end 'known'; xa commit 'known' one phase; end`;
const KEY = generateApprover('approver');

/**
 * What is changed in the copy: texts are not parsed as an EXPLAIN, the name is known, and further
 * rights of the account are passed over.
 */
const MUTATIONS = [
  [
    'survey.ts',
    'const extra = granted.filter((right) => !expected.has(right));',
    'const extra: readonly string[] = [];',
  ],
  ['admission.ts', 'if (admitted.has(sql)) return undefined;', 'return undefined;'],
  ['candidate.ts', 'readonly #branch = ', 'readonly #branch = "\'known\'" || '],
] as const;

/** Needs a right, which the survey would report as well. */
const BY_PROCEDURE = ['call finish()'];

/**
 * The attack: by plain statements, also with a branch of the same name left behind, by dynamic SQL,
 * in a block, by statements that the server keeps prepared, and by a procedure.
 */
const ATTACKS = [
  ["xa end 'known'", "xa commit 'known' one phase"],
  ["xa end 'known'", "xa commit 'known' one phase", "xa start 'known'"],
  ["xa end 'known'", "xa commit 'known' one phase", 'select no_such_column'],
  ["xa end 'known'", "xa commit 'known' one phase", "xa start 'known'", 'select no_such_column'],
  [
    `begin not atomic execute immediate "xa end 'known'";
      execute immediate "xa commit 'known' one phase"; end`,
  ],
  ["begin not atomic xa end 'known'; xa commit 'known' one phase; end"],
  [
    `begin not atomic prepare a from "xa end 'known'"; execute a;
      prepare b from "xa commit 'known' one phase"; execute b; end`,
  ],
  BY_PROCEDURE,
];

function withoutGate(): string {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-without-gate-'));
  for (const part of ['src', 'package.json']) cpSync(part, join(folder, part), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  for (const [file, from, to] of MUTATIONS) {
    const path = join(folder, 'src/adapters/mysql', file);
    const text = readFileSync(path, 'utf8');
    assert.ok(text.includes(from), `${file} no longer has ${from}`);
    writeFileSync(path, text.replace(from, to));
  }
  return folder;
}

function configOf(folder: string, mysql: (options: never) => unknown, place: ProtectedMariadb) {
  return {
    ...{ store: join(folder, 'ledger.db'), keyring: join(folder, 'keyring.json') },
    issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
    adapters: { db: mysql(place.options as never) },
  } as Parameters<typeof createRuntime>[0];
}

const task = (id: number, was: string) => ({
  ...{ adapter: 'db', task: `change ${id}`, planRevision: 1 },
  effects: [update('t', { id }, { v: [was, 'new'] })],
});

describe('MariaDB: without the gate', { skip: skipWithoutMariadb() }, () => {
  test('a commit without a marker is never called rejected, and is reported by open, recover and doctor', async () => {
    const folder = withoutGate();
    try {
      for (const [index, attack] of ATTACKS.entries()) {
        await using place = await protectedMariadb(SCHEMA, { relations: ['t'] });
        if (attack === BY_PROCEDURE)
          await place.db.run(
            `grant execute on procedure ${place.db.name}.finish to ${place.db.unique('em_exec')}`,
          );
        const own = join(folder, `ledger-${index}`);
        await attackAndSurvey(folder, own, place, attack);
        if (index === 0) await checkCommands(own, place);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

async function attackAndSurvey(
  folder: string,
  own: string,
  place: ProtectedMariadb,
  attack: readonly string[],
): Promise<void> {
  cpSync(join(folder, 'package.json'), join(own, 'package.json'));
  const load = async (path: string) => await import(pathToFileURL(join(folder, path)).href);
  const mutated = await load('src/adapters/mysql/index.ts');
  const { createRuntime: createMutated } = await load('src/index.ts');
  const naive: Awaited<ReturnType<typeof createRuntime>> = await createMutated(
    configOf(own, mutated.mysql, place),
  );
  const license = approver(KEY).sign(await naive.prepare(task(1, 'old')), { expiresIn: '1h' });
  const statements = ["update t set v = 'stolen' where id = 1", ...attack].map((sql) => ({ sql }));
  const ended = await naive.execute(license, { statements }).catch((error: unknown) => error);
  await naive.close();
  assert.deepEqual(await place.db.run('select v from t where id = 1'), [{ v: 'stolen' }]);
  assert.doesNotMatch(JSON.stringify(ended), /"kind":"(?:rejected|committed)"/, attack.join('; '));

  const runtime = await createRuntime(configOf(own, mysql as never, place));
  const open = (await runtime.survey('db')).outlets.filter(
    ({ disposition }) => disposition === 'unclassified',
  );
  assert.ok(
    open.some(({ by }) => /committed without a marker/.test(by)),
    attack.join('; '),
  );
  const other = approver(KEY).sign(await runtime.prepare(task(2, 'other')), { expiresIn: '1h' });
  const stopped = await runtime.execute(other, { sql: "update t set v = 'new' where id = 2" });
  assert.equal(stopped.kind === 'rejected' && stopped.at, 'boundary');
  await runtime.close();
}

async function checkCommands(own: string, place: ProtectedMariadb): Promise<void> {
  writeFileSync(
    join(own, 'effectmatch.config.ts'),
    `import { mysql } from ${JSON.stringify(new URL('../../../src/adapters/mysql/index.ts', import.meta.url).href)};
    export default ${JSON.stringify({ ...configOf(own, () => undefined, place), adapters: {} })};
    `.replace('"adapters":{}', `"adapters":{"db":mysql(${JSON.stringify(place.options)})}`),
  );
  const doctor = await runCommand(['doctor'], { cwd: own });
  assert.equal(doctor.code, 2, doctor.stderr);
  assert.match(doctor.stdout, /committed without a marker/);
  const recovered = await runCommand(['recover', '--now'], { cwd: own });
  assert.match(`${recovered.stdout}${recovered.stderr}`, /committed without a marker/);
  assert.notEqual(recovered.code, 0);
}
