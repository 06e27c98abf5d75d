import type { AdapterContext, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { type Connection, sqlState } from '../../postgres/connection.ts';
import type { Deployment } from './secret.ts';
import { explain, type Telling } from './stage-failure.ts';

/** What a promotion needs beside the marker. */
export interface PromotionTools extends Telling {
  readonly session: Connection;
  readonly deployment: Deployment;
  readonly xid: string;
  /** How many rows were locked after the observation: each lock takes the number of a command. */
  readonly locks: number;
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
export async function promoteCandidate(
  tools: PromotionTools,
  marker: MarkerText,
): Promise<Promotion> {
  const { session, deployment, xid, reached } = tools;
  const { occurrence, text, sealKey, sealMac } = marker;
  const locks = String(tools.locks);
  const mac = deployment.sign('promote', xid, locks, occurrence, sealKey, sealMac, text);
  const { replies, failure } = await session.run([
    {
      prepared: 'effectmatch_promote',
      values: [xid, locks, occurrence, text, sealKey, sealMac, mac],
    },
    { text: 'commit' },
  ]);
  if (replies.length > 0) reached('adapter:marker-written');
  const command = replies[1]?.command;
  if (failure === undefined && command === 'COMMIT') {
    reached('adapter:commit-returned');
    return { kind: 'confirmed' };
  }
  return await judgeFailure(tools, failure?.error ?? new Error(`COMMIT answered ${command}`));
}

/**
 * A refusal needs proof: the server itself must call the transaction aborted. Everything else is
 * left to the marker.
 */
async function judgeFailure(tools: PromotionTools, cause: unknown): Promise<Promotion> {
  // The server sends an error before it has ended the transaction; whatever it answers next, it has
  // ended it by then.
  await tools.session.script('rollback').catch(() => {});
  const status = await tools.transactionStatus(tools.xid).catch(() => undefined);
  if (status !== 'aborted') return { kind: 'unknown', cause: explain(tools, cause) };
  return { kind: 'refused', reason: reasonOf(sqlState(cause)), detail: explain(tools, cause) };
}

function reasonOf(state: string | undefined): string {
  switch (state) {
    case '23505':
      return 'marker-conflict';
    case 'EM006':
      return 'candidate-replaced';
    case 'EM007':
    case 'EM001':
      return 'evidence-changed';
    case '40001':
      return 'serialization';
    case '40P01':
      return 'deadlock';
    default:
      return 'commit-failed';
  }
}
