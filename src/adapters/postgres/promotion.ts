import { refusedPromotion } from '../../backend/candidate.ts';
import type { AdapterContext, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { type Connection, sqlState } from '../../postgres/connection.ts';
import type { PostgresDeployment } from './control.ts';
import { explainError } from './failure.ts';

/** The transaction that is promoted, and what says what became of it. */
interface PromotedTransaction {
  readonly session: Connection;
  readonly deployment: PostgresDeployment;
  readonly xid: string;
  /** How many rows were locked after the observation: each lock takes the number of a command. */
  readonly locks: number;
  readonly values: 'plain' | 'digest';
  readonly reached: AdapterContext['reached'];
  /**
   * What the server says about a transaction that is over: the only proof that nothing became
   * durable.
   */
  readonly transactionStatus: (xid: string) => Promise<string | null>;
}

/**
 * Writes the marker into the candidate and commits both, in one step that the backend takes only if
 * the transaction is the one that was observed and nothing was written in it since. Only the tag
 * COMMIT counts: an aborted transaction answers COMMIT with ROLLBACK and without an error.
 */
export async function promoteTransaction(
  transaction: PromotedTransaction,
  marker: MarkerText,
): Promise<Promotion> {
  const { session, deployment, xid, reached } = transaction;
  const { occurrence, text, sealKey, sealMac } = marker;
  const locks = String(transaction.locks);
  const mac = deployment.sign('promote', xid, locks, occurrence, sealKey, sealMac, text);
  const values = [xid, locks, occurrence, text, sealKey, sealMac, mac];
  const { replies, failure } = await session.run([
    { prepared: 'effectmatch_promote', values },
    { text: 'commit' },
  ]);
  if (replies.length > 0) reached('adapter:marker-written');
  const command = replies[1]?.command;
  if (failure === undefined && command === 'COMMIT') {
    reached('adapter:commit-returned');
    return { kind: 'confirmed' };
  }
  return await judgeFailure(transaction, failure?.error ?? new Error(`COMMIT answered ${command}`));
}

/**
 * A refusal needs proof: the server itself must call the transaction aborted. Everything else is
 * left to the marker.
 */
async function judgeFailure(transaction: PromotedTransaction, error: unknown): Promise<Promotion> {
  const { session, xid, values, transactionStatus } = transaction;
  // The server sends an error before it has ended the transaction; once it answers again, it has.
  await session.script('rollback').catch(() => {});
  const status = await transactionStatus(xid).catch(() => undefined);
  const detail = explainError(error, values);
  if (status !== 'aborted') return { kind: 'unknown', cause: detail };
  return refusedPromotion(REASONS[sqlState(error) ?? ''] ?? 'commit-failed', detail);
}

const REASONS: Readonly<Record<string, string>> = {
  '23505': 'marker-conflict',
  EM006: 'candidate-replaced',
  EM007: 'evidence-changed',
  EM001: 'evidence-changed',
  '40001': 'serialization',
  '40P01': 'deadlock',
};
