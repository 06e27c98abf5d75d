import type { MysqlOptions } from '../../src/adapters/mysql/index.ts';
import { approver, createRuntime, type Executed, generateApprover } from '../../src/index.ts';
import type { ApprovedEffect } from '../../src/protocol/effect.ts';
import type { Proposal } from '../../src/protocol/license.ts';
import { testKeyring } from '../keyring.ts';
import { temporaryLedgers } from '../ledger/temporary.ts';
import { type ProtectedMariadb, protectedMariadb } from './protected.ts';
import type { MariadbDatabase } from './server.ts';

const KEY = generateApprover('approver');

/** A runtime on one database, with an approver who signs everything. */
export interface MariadbOffice
  extends AsyncDisposable,
    Pick<ProtectedMariadb, 'db' | 'control' | 'factory'> {
  readonly runtime: Awaited<ReturnType<typeof createRuntime>>;
  /** A license for these effects. */
  approve(effects: readonly ApprovedEffect[]): Promise<unknown>;
  /** Approves these effects and executes the action. */
  run(effects: readonly ApprovedEffect[], action: unknown): Promise<Executed>;
  /** Rehearses the action, approves what was seen and executes it. */
  planned(action: unknown): Promise<{ readonly proposal: Proposal; readonly terminal: Executed }>;
}

export async function openMariadbOffice(
  schema: string,
  settings: Omit<MysqlOptions, 'control' | 'execution'>,
  given?: MariadbDatabase,
): Promise<MariadbOffice> {
  const { db, control, factory } = await protectedMariadb(schema, settings, given);
  const { publicKey: key } = KEY;
  const runtime = await createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: { approver: { key, may: ['db'], sources: ['manifest', 'rehearsed'] } },
    adapters: { db: factory() },
  });
  const sign = (proposal: Proposal) => approver(KEY).sign(proposal, { expiresIn: '10m' });
  let tasks = 0;
  const termsOf = () => {
    tasks += 1;
    return { adapter: 'db', task: `task ${tasks}`, planRevision: 1 };
  };
  const approve = async (effects: readonly ApprovedEffect[]) =>
    await sign(await runtime.prepare({ ...termsOf(), effects }));
  return {
    ...{ db, control, factory, runtime, approve },
    run: async (effects, action) => await runtime.execute(await approve(effects), action),
    async planned(action) {
      const proposal = await runtime.plan({ ...termsOf(), action });
      return { proposal, terminal: await runtime.execute(await sign(proposal), action) };
    },
    async [Symbol.asyncDispose]() {
      await runtime.close();
      await db.drop();
    },
  };
}
