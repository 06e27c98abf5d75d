// Eight operations on MariaDB, clean, with an extra write, and with a statement left out, both
// direct and under a license. The result is judged by the rows that root reads afterwards.

import { join } from 'node:path';
import { createConnection } from 'mysql2/promise';
import { approver, generateApprover } from '../../src/crypto/approver.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { findMariadb, MISSING } from '../../test/mysql/binaries.ts';
import { type ProtectedMariadb, protectedMariadb } from '../../test/mysql/protected.ts';
import { startServer } from '../../test/mysql/server.ts';
import { compareStates, digestOf, keepVerdict } from '../facts.ts';
import { RawRecords } from '../raw.ts';
import { type Cell, exactly, NotRun, reproduced, type Study, type StudyOptions } from '../study.ts';
import { temporaryFolder } from '../temporary.ts';
import {
  type Books,
  EXTRA_WRITE,
  INITIAL,
  OPERATIONS,
  type Operation,
  SCHEMA,
} from './backends/mariadb-operations.ts';
import { keyedEffects } from './public-outcomes/database-effects.ts';

const REPETITIONS = 5;
const RELATIONS = Object.keys(INITIAL);
const VARIANTS = ['clean', 'extra write', 'omitted statement'] as const;
const CONDITIONS = ['direct', 'EffectMatch'] as const;
type Variant = (typeof VARIANTS)[number];
type Condition = (typeof CONDITIONS)[number];

interface Run {
  readonly variant: Variant;
  readonly condition: Condition;
  /** What the caller was told. */
  readonly committed: boolean;
  readonly isApproved: boolean;
  readonly isInitial: boolean;
}

async function run({ quick, progress }: StudyOptions): Promise<readonly Cell[]> {
  if (findMariadb() === undefined) throw new NotRun(MISSING);
  const repetitions = quick ? 1 : REPETITIONS;
  const raw = new RawRecords(`backends-mariadb${quick ? '-quick' : ''}`, []);
  using folder = temporaryFolder();
  await using server = await startServer();
  const db = await server.createDatabase();
  await using held = await protectedMariadb(SCHEMA, { relations: RELATIONS }, db);
  await using runtime = await openRuntime(folder.path, held);
  const runs: Run[] = [];
  for (const operation of OPERATIONS) {
    progress(operation.name);
    for (const variant of VARIANTS)
      for (const condition of CONDITIONS)
        for (let repetition = 1; repetition <= repetitions; repetition += 1) {
          const facts = { operation: operation.name, variant, condition };
          const name = [...Object.values(facts), repetition].join('|');
          const ended = await raw.run(name, async () => {
            await reset(held);
            const statements = statementsOf(operation, variant);
            const committed =
              condition === 'direct'
                ? await runDirect(held, statements)
                : await runHeld(runtime, operation, statements, name);
            return { ...facts, repetition, committed, ...(await judge(held, operation)) };
          });
          runs.push(ended);
        }
  }
  raw.finish();
  return cellsOf(runs, OPERATIONS.length * repetitions, quick);
}

function cellsOf(runs: readonly Run[], all: number, quick: boolean): readonly Cell[] {
  const cell = (name: string, counted: readonly Run[]) =>
    quick
      ? exactly(name, counted.length, 'runs', all)
      : reproduced(name, counted.length, 'runs', 40);
  const of = (condition: Condition, variant: Variant) =>
    runs.filter((one) => one.condition === condition && one.variant === variant);
  const isRight = ({ committed, isApproved }: Run) => committed && isApproved;
  const isWrong = ({ committed, isApproved }: Run) => committed && !isApproved;
  const isStopped = ({ committed, isInitial }: Run) => !committed && isInitial;
  return [
    cell('EffectMatch: clean, committed', of('EffectMatch', 'clean').filter(isRight)),
    cell('EffectMatch: extra write, rejected', of('EffectMatch', 'extra write').filter(isStopped)),
    cell(
      'EffectMatch: omitted statement, rejected',
      of('EffectMatch', 'omitted statement').filter(isStopped),
    ),
    cell('direct: clean, committed', of('direct', 'clean').filter(isRight)),
    cell('direct: extra write, wrong commit', of('direct', 'extra write').filter(isWrong)),
    cell(
      'direct: omitted statement, wrong commit',
      of('direct', 'omitted statement').filter(isWrong),
    ),
  ];
}

/** An action needs at least one statement, so a SELECT replaces the only one if it is left out. */
function statementsOf({ statements }: Operation, variant: Variant): readonly string[] {
  if (variant === 'clean') return statements;
  if (variant === 'extra write') return [...statements, EXTRA_WRITE];
  return statements.length === 1 ? ['select count(*) from account'] : statements.slice(0, -1);
}

const KEYS = generateApprover('study');

async function openRuntime(folder: string, held: ProtectedMariadb): Promise<Runtime> {
  return await createRuntime({
    store: join(folder, 'ledger.db'),
    keyring: join(folder, 'keys.json'),
    issuers: { study: { key: KEYS.publicKey, may: ['books'] } },
    adapters: { books: held.factory() },
  });
}

async function reset({ db }: ProtectedMariadb): Promise<void> {
  const statements = Object.entries(INITIAL).flatMap(([table, rows]) => [
    `delete from ${table}`,
    ...rows.map((row) => `insert into ${table} values (${Object.values(row).map(literal)})`),
  ]);
  await db.run(`start transaction; ${statements.join('; ')}; commit`);
}

function literal(value: number | string): string {
  return typeof value === 'number' ? String(value) : `'${value}'`;
}

/** Runs the statements in one transaction, as an application would. */
async function runDirect(
  { db }: ProtectedMariadb,
  statements: readonly string[],
): Promise<boolean> {
  const connection = await createConnection(db.url());
  try {
    await connection.beginTransaction();
    for (const sql of statements) await connection.query(sql);
    await connection.commit();
    return true;
  } finally {
    connection.destroy();
  }
}

/** Runs the same statements under a license for the operation's expected result. */
async function runHeld(
  runtime: Runtime,
  operation: Operation,
  statements: readonly string[],
  task: string,
): Promise<boolean> {
  const expected = operation.expected(INITIAL);
  const effects = RELATIONS.flatMap((table) =>
    keyedEffects(table, ['id'], INITIAL[table] ?? [], expected[table] ?? []),
  );
  const proposal = await runtime.prepare({ adapter: 'books', task, planRevision: 1, effects });
  const license = approver(KEYS).sign(proposal, { expiresIn: '10m' });
  const action = { statements: statements.map((sql) => ({ sql })) };
  return keepVerdict(await runtime.execute(license, action)).kind === 'committed';
}

/** Compares the durable rows with the approved rows and with the initial rows. */
async function judge(
  { db }: ProtectedMariadb,
  operation: Operation,
): Promise<Pick<Run, 'isApproved' | 'isInitial'>> {
  const durable: Record<string, Books[string]> = {};
  for (const table of RELATIONS)
    durable[table] = (await db.run(`select * from ${table}`)) as Books[string];
  const approved = operation.expected(INITIAL);
  return compareStates<Books>({ initial: INITIAL, approved, durable }, (books) =>
    digestOf(textOf(books)),
  );
}

function textOf(books: Books): string {
  const tables = RELATIONS.map((table) => {
    const rows = (books[table] ?? []).map((row) => JSON.stringify(Object.entries(row).sort()));
    return [table, ...rows.sort()];
  });
  return JSON.stringify(tables);
}

export const backendsMariadbStudy: Study = {
  name: 'backends-mariadb',
  about: 'eight operations on MariaDB: clean, with an extra write, with a statement left out',
  run,
};
