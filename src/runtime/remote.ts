import type { RemoteRequest } from '../contract/adapter.ts';
import { isOver } from '../contract/clock.ts';
import { requestDigest } from '../crypto/digest.ts';
import { isFault } from '../errors.ts';
import { storableGenerated } from '../protocol/generated.ts';
import { findOversized } from '../protocol/limits.ts';
import type { Approved } from '../protocol/manifest.ts';
import { prepareApproved } from '../protocol/match.ts';
import { establish } from '../protocol/observation.ts';
import { classify, type Outcome } from '../protocol/outcome.ts';
import type { OccurrenceId } from '../protocol/record.ts';
import type { Gate, Terminal } from '../protocol/terminal.ts';
import {
  type AttemptFacts,
  faultOf,
  observedDigest,
  type Refusal,
  type Refused,
  refuse,
  storableFault,
  storableText,
} from './attempt.ts';
import type { AdmittedRemote, Deployment } from './deployment.ts';
import { type Consumed, commitment, divergence, finish, rejection, uncertainty } from './finish.ts';
import { type Established, passRequestGate } from './gate.ts';

/**
 * The progress of an attempt: the next gate, and the consumed permit once a request may have been
 * sent.
 */
interface Progress {
  at: Gate;
  sent?: Consumed;
}

/**
 * Algorithm 1, remote part: constrain before dispatch, send once, classify what can be read back. A
 * fault before the request can be sent is a rejection; after that, nothing is established.
 */
export async function executeRemote(
  deployment: Deployment,
  admitted: AdmittedRemote,
  established: Established,
): Promise<Terminal> {
  const { attempt, claim, certificate } = established;
  const progress: Progress = { at: 'dispatch' };
  const ended = await dispatchOnce(deployment, admitted, established, progress).catch(
    async (error: unknown) => {
      const refusal = faultOf(admitted, error);
      if (progress.sent !== undefined)
        return uncertainty(deployment, attempt, progress.sent, refusal.detail);
      await deployment.ledgers.voidPermit(attempt.occurrence, attempt.execution);
      const known = { claim: claim.digest, certificate: certificate.digest };
      return rejection(deployment, attempt, progress.at, refusal, known);
    },
  );
  return finish(deployment, ended);
}

async function dispatchOnce(
  deployment: Deployment,
  admitted: AdmittedRemote,
  established: Established,
  progress: Progress,
): Promise<Terminal> {
  const { adapter } = admitted;
  const { attempt, claim, certificate, action } = established;

  const built = buildRequest(admitted, attempt.signed.approved, action);
  if (built.kind === 'refused') return reject('dispatch', built);
  const { request } = built;
  progress.at = 'final-gate';
  deployment.reached('path:request-built');
  const gate = await passRequestGate(deployment, established, requestDigest(request));
  if (gate.kind === 'refused') return reject('final-gate', gate);
  progress.at = 'dispatch';
  deployment.reached('path:permit-consumed');

  if (isOver(deployment.clock, gate.permit.deadline)) {
    // By now an operator may have given up this attempt and had the change made under another
    // license.
    const detail = "the attempt's lease expired before the request was sent";
    return reject('dispatch', refuse('not-sent', detail));
  }

  // From here on the request may have been sent. Only `mayHaveSent: false` proves that it was not.
  const { consumedAt } = gate.permit.record;
  const consumed = {
    claim: claim.digest,
    certificate: certificate.digest,
    permit: gate.permit.digest,
    consumedAt,
  };
  progress.sent = consumed;
  const sent = await adapter
    .dispatch(gate.permit, request)
    .catch(() => ({ mayHaveSent: true as const }));
  deployment.reached('path:dispatched');
  if (!sent.mayHaveSent) return reject('dispatch', refuse('not-sent', sent.why));

  const { outcome, refused } = await readBack(
    admitted,
    attempt.occurrence,
    attempt.signed.approved,
    request,
  );
  deployment.reached('path:read-back');
  if (refused !== undefined) return reject('dispatch', refused);
  const { claimedAt } = claim.sealed.record;
  return remoteTerminal(deployment, attempt, consumed, claimedAt, outcome, false);

  function reject(at: Gate, refusal: Refusal): Terminal {
    const known = { claim: claim.digest, certificate: certificate.digest };
    return rejection(deployment, attempt, at, refusal, known);
  }
}

type Built = { readonly kind: 'built'; readonly request: RemoteRequest } | Refused;

/** A request that the adapter refuses to build was never sent. Any other error is a fault. */
function buildRequest(admitted: AdmittedRemote, approved: Approved, action: unknown): Built {
  try {
    const { content } = admitted.adapter.buildRequest(approved, action);
    return { kind: 'built', request: { content, salt: approved.salt } };
  } catch (error) {
    if (!isFault(error, 'ERR_EM_MANIFEST_INVALID')) throw error;
    return refuse('request-impossible', storableText(admitted, error.message));
  }
}

/**
 * The result of reading back. `refused` only with proof that nothing became durable and nothing can
 * later.
 */
interface ReadBack {
  readonly outcome: Outcome;
  readonly refused?: Refusal;
}

/**
 * Reads back and classifies. If reading back fails, the outcome is INDETERMINATE; this never
 * throws.
 */
export async function readBack(
  admitted: AdmittedRemote,
  occurrence: OccurrenceId,
  approved: Approved,
  request: RemoteRequest | undefined,
): Promise<ReadBack> {
  const { adapter } = admitted;
  const oversized = findOversized(approved.effects);
  if (oversized !== undefined) return unknown(`not read back: ${oversized}`);
  try {
    const evidence = await adapter.readBack(occurrence, request, approved);
    const observation = establish(evidence, admitted.registration, admitted.frame.channels);
    const outcome = classify(prepareApproved(approved), observation, evidence);
    // A service that refused the request cannot have performed it, so one of the two is not true.
    if (evidence.refused !== undefined && outcome.kind === 'EXACT')
      return unknown('the service says that it refused the request and that it did it');
    const nothing = observation.kind === 'complete' && observation.effects.length === 0;
    if (evidence.refused === undefined || !nothing) return { outcome };
    const detail = storableText(admitted, evidence.refused);
    return { outcome, refused: refuse('refused-by-backend', detail) };
  } catch (error) {
    return unknown(`read-back failed: ${storableFault(admitted, error)}`.slice(0, 1000));
  }
}

function unknown(gap: string): ReadBack {
  return { outcome: { kind: 'INDETERMINATE', gaps: [gap] } };
}

/**
 * The terminal for a consumed permit and a read-back. Never `rejected`: the request may have been
 * sent.
 */
export function remoteTerminal(
  deployment: Deployment,
  attempt: AttemptFacts,
  consumed: Consumed,
  claimedAt: string,
  outcome: Outcome,
  reconciled: boolean,
): Terminal {
  switch (outcome.kind) {
    case 'EXACT': {
      const observed = observedDigest(deployment, attempt.admitted, outcome.effects);
      const { values } = attempt.admitted.registration;
      const generated = storableGenerated(outcome.generated, values);
      const facts = { ...consumed, observed, claimedAt, reconciled, ...generated };
      return commitment(deployment, attempt, facts);
    }
    case 'DIVERGED':
      return divergence(deployment, attempt, consumed, outcome);
    case 'INDETERMINATE':
      return uncertainty(deployment, attempt, consumed, outcome.gaps.join('; '));
  }
}
