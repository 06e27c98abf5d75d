import type { PostgresAction, PostgresOptions } from '../../../src/adapters/postgres/index.ts';
import {
  approver,
  createRuntime,
  type Executed,
  generateApprover,
  type PrepareRequest,
  type Terminal,
} from '../../../src/index.ts';
import { testKeyring } from '../../keyring.ts';
import { temporaryLedgers } from '../../ledger/temporary.ts';
import type { ProtectedDatabase } from '../../postgres/protected.ts';

const KEY = generateApprover('approver');

/**
 * What is approved, what the agent submits, and options that differ from those of the provisioning.
 */
export interface Operation extends Pick<PrepareRequest, 'effects' | 'requires' | 'watch'> {
  readonly action: PostgresAction;
  readonly options?: Partial<PostgresOptions>;
}

/**
 * The whole way of one operation through a runtime: prepare, sign, execute. Nothing can be prepared
 * while an outlet is open, so a test of what `execute` refuses opens it `onceSigned`.
 */
export async function runApproved(
  place: ProtectedDatabase,
  operation: Operation,
  onceSigned: () => Promise<unknown> = () => Promise.resolve(),
): Promise<Executed> {
  const { action, options, ...approved } = operation;
  await using runtime = await createRuntime({
    store: temporaryLedgers(),
    keyring: testKeyring(),
    issuers: { approver: { key: KEY.publicKey, may: ['db'] } },
    adapters: { db: place.factory(options) },
  });
  const proposal = await runtime.prepare({
    adapter: 'db',
    task: 'honest',
    planRevision: 1,
    ...approved,
  });
  const license = await approver(KEY).sign(proposal, { expiresIn: '10m' });
  await onceSigned();
  return await runtime.execute(license, action);
}

/** What prepare throws while an outlet is open, with a message that names it. */
export const openBoundary = (message: RegExp) => ({ code: 'ERR_EM_BOUNDARY_OPEN', message });

/** How it ended in a few words, with the explanation of a rejection. */
export function tellEnd(terminal: Terminal): string {
  if (terminal.kind !== 'rejected') return terminal.kind;
  const { at, reason, detail, outcome } = terminal;
  return `rejected at ${at} (${outcome?.kind ?? reason}): ${detail}`;
}
