// The ways to run one list of statements on PostgreSQL. Each decides by the evidence that it may read.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { approver, generateApprover } from '../../../src/crypto/approver.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import { createRuntime, type Internals } from '../../../src/runtime/runtime.ts';
import type { TestDatabase } from '../../../test/postgres/server.ts';
import { findForbidden, type WritePolicy } from './call-rules.ts';
import type { Keys } from './database-effects.ts';
import { connectAsApplication, protect } from './database-site.ts';
import { type Decision, withoutComparison } from './state-conditions.ts';

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
  async run({ statements }, db) {
    const client = await connectAsApplication(db);
    try {
      await client.query('begin');
      for (const sql of statements) await client.query(sql);
      await client.query('commit');
      return { committed: true };
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      await client.query('rollback');
      return { committed: false, why: error.message };
    } finally {
      await client.end();
    }
  },
};

/** The same, after the visible writes of every statement were found to be those that the task calls for. */
const callRules: DatabaseCondition = {
  name: 'call-level rules',
  async run(execution, db) {
    const forbidden = findForbidden(execution.statements, execution.policy);
    return forbidden === undefined ? await direct.run(execution, db) : { committed: false, why: forbidden };
  },
};

const effectMatch: DatabaseCondition = {
  name: 'EffectMatch',
  run: (execution, db) => runHeld(execution, db, {}),
};

const noComparison: DatabaseCondition = {
  name: 'no comparison',
  run: (execution, db) => runHeld(execution, db, withoutComparison),
};

export const DATABASE_CONDITIONS = { direct, callRules, effectMatch, noComparison } as const;

const KEYS = generateApprover('study');

async function runHeld(
  { statements, keys, approved }: DatabaseExecution,
  db: TestDatabase,
  internals: Internals,
): Promise<Decision> {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-study-'));
  try {
    const { factory } = await protect(db, keys);
    await using runtime = await createRuntime(
      {
        store: join(folder, 'ledger.db'),
        keyring: join(folder, 'keys.json'),
        issuers: { study: { key: KEYS.publicKey, may: ['chinook'] } },
        adapters: { chinook: factory() },
      },
      internals,
    );
    const request = { adapter: 'chinook', task: 'task', planRevision: 1, effects: approved };
    const license = approver(KEYS).sign(await runtime.prepare(request), { expiresIn: '10m' });
    const terminal = await runtime.execute(license, { statements: statements.map((sql) => ({ sql })) });
    if (terminal.kind === 'committed') return { committed: true };
    if (terminal.kind === 'rejected') return { committed: false, why: `${terminal.at}: ${terminal.reason}` };
    throw new Error(`a promotable backend ended ${terminal.kind}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
