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
  readonly watched: string;
  readonly reached: AdapterContext['reached'];
  /** What the server says about a transaction that is over: the only proof that nothing became durable. */
  readonly transactionStatus: (xid: string) => Promise<string | null>;
}

const PROMOTE = 'select effectmatch.promote($1, $2, $3, $4, $5, $6, $7)';

/**
 * Writes the marker into the candidate and commits both, in one step that the backend takes only if the transaction,
 * its records and its counters are those that were observed. Only the tag COMMIT counts: an aborted transaction
 * answers COMMIT with ROLLBACK and without an error.
 */
export async function promoteCandidate(tools: PromotionTools, marker: MarkerText): Promise<Promotion> {
  const { session, deployment, xid, reached } = tools;
  const { occurrence, text, sealKey, sealMac } = marker;
  const mac = deployment.sign('promote', xid, occurrence, sealKey, sealMac, text);
  const values = [xid, tools.watched, occurrence, text, sealKey, sealMac, mac];
  const { promoted, committed } = session.together(() => ({
    promoted: session.query(PROMOTE, values).then(
      () => {
        reached('adapter:marker-written');
        return undefined;
      },
      (error: unknown) => ({ error }),
    ),
    committed: session.query('commit').then(
      ({ command }) => ({ command }),
      (error: unknown) => ({ error }),
    ),
  }));
  const failure = await promoted;
  const commit = await committed;
  if (failure === undefined && 'command' in commit && commit.command === 'COMMIT') {
    reached('adapter:commit-returned');
    return { kind: 'confirmed' };
  }
  const cause = failure?.error ?? ('error' in commit ? commit.error : new Error(`COMMIT answered ${commit.command}`));
  return await judgeFailure(tools, cause);
}

/** A refusal needs proof: the server itself must call the transaction aborted. Everything else is left to the marker. */
async function judgeFailure(tools: PromotionTools, cause: unknown): Promise<Promotion> {
  // The server sends an error before it has ended the transaction; whatever it answers next, it has ended it by then.
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
