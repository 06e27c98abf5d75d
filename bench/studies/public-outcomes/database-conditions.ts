// The ways to run one list of statements on PostgreSQL. Each decides by the evidence that it may
// read.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { AdapterFactory } from '../../../src/contract/adapter.ts';
import { approver } from '../../../src/crypto/approver.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import type { SignedLicense } from '../../../src/protocol/license.ts';
import { lineagesOf } from '../../../src/runtime/continuation.ts';
import { createRuntime, type Internals, type Runtime } from '../../../src/runtime/runtime.ts';
import type { TestDatabase } from '../../../test/postgres/server.ts';
import { keepReceipt } from '../../facts.ts';
import type { WritePolicy } from './call-rules.ts';
import type { Keys } from './database-effects.ts';
import { connectAsApplication, protect } from './database-site.ts';
import { type AgentAction, applyRules, SQL_TOOL, sqlRules } from './rule-interpreter.ts';
import { type Decision, decisionOf, KEYS, withoutComparison } from './state-conditions.ts';

/** One execution to be. Which fault lies beneath it is not in it. */
export interface DatabaseExecution {
  readonly statements: readonly string[];
  /** Only call-level rules read it. */
  readonly policy: WritePolicy;
  readonly keys: Keys;
  /** Only EffectMatch reads it. */
  readonly approved: readonly ApprovedEffect[];
}

export interface DatabaseCondition {
  readonly name: 'direct' | 'call-level rules' | 'EffectMatch' | 'no comparison';
  run(execution: DatabaseExecution, db: TestDatabase): Promise<Decision>;
}

/** One transaction, which commits unless a statement fails. */
const direct: DatabaseCondition = {
  name: 'direct',
  run: (execution, db) => runStatements(execution, db, () => undefined),
};

/** The same, with rules that see every call before it is made. */
const callRules: DatabaseCondition = {
  name: 'call-level rules',
  run(execution, db) {
    const rules = sqlRules(execution.policy);
    const earlier: AgentAction[] = [];
    return runStatements(execution, db, (input) => {
      const action = { tool: SQL_TOOL, input };
      const verdict = applyRules(rules, action, earlier);
      earlier.push(action);
      return verdict.kind === 'continue' ? undefined : `${verdict.kind}: ${verdict.rule}`;
    });
  },
};

/** Statement by statement in one transaction; `refusal` ends it with nothing done. */
async function runStatements(
  { statements }: DatabaseExecution,
  db: TestDatabase,
  refusal: (sql: string) => string | undefined,
): Promise<Decision> {
  const client = await connectAsApplication(db);
  try {
    await client.query('begin');
    for (const sql of statements) {
      const why = refusal(sql);
      if (why !== undefined) {
        await client.query('rollback');
        return { committed: false, why };
      }
      await client.query(sql);
    }
    await client.query('commit');
    return { committed: true };
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    await client.query('rollback');
    return { committed: false, why: error.message };
  } finally {
    await client.end();
  }
}

const effectMatch: DatabaseCondition = {
  name: 'EffectMatch',
  run: (execution, db) => runHeld(execution, db, {}),
};

const noComparison: DatabaseCondition = {
  name: 'no comparison',
  run: (execution, db) => runHeld(execution, db, withoutComparison),
};

export const DATABASE_CONDITIONS = { direct, callRules, effectMatch, noComparison } as const;

/**
 * A runtime in front of a database that is provisioned for it, with what it keeps in a folder of
 * its own.
 */
export async function openHeldDatabase(
  { keys }: DatabaseExecution,
  db: TestDatabase,
  internals: Internals = {},
  change: (factory: AdapterFactory) => AdapterFactory = (factory) => factory,
): Promise<Runtime> {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-study-'));
  const { factory } = await protect(db, keys);
  const runtime = await createRuntime(
    {
      store: join(folder, 'ledger.db'),
      keyring: join(folder, 'keys.json'),
      issuers: { study: { key: KEYS.publicKey, may: ['chinook'] } },
      adapters: { chinook: change(factory()) },
    },
    internals,
  );
  const close = async () => {
    await runtime.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...runtime, close, [Symbol.asyncDispose]: close };
}

/** The approver's license for the rows that the task has to leave, asked for at this runtime. */
export async function approveRowsAt(
  runtime: Runtime,
  { approved }: DatabaseExecution,
): Promise<SignedLicense> {
  const request = { adapter: 'chinook', task: 'task', planRevision: 1, effects: approved };
  return approver(KEYS).sign(await runtime.prepare(request), { expiresIn: '10m' });
}

/** Runs the statements under a license. */
export async function executeStatements(
  runtime: Runtime,
  license: SignedLicense,
  { statements }: DatabaseExecution,
): Promise<Decision> {
  return decisionOf(
    await runtime.execute(license, { statements: statements.map((sql) => ({ sql })) }),
  );
}

async function runHeld(
  execution: DatabaseExecution,
  db: TestDatabase,
  internals: Internals,
): Promise<Decision> {
  await using runtime = await openHeldDatabase(execution, db, internals);
  const license = await approveRowsAt(runtime, execution);
  const decision = await executeStatements(runtime, license, execution);
  await keepReceipt(runtime, lineagesOf(license)[0].occurrence);
  return decision;
}
