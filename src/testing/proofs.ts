import { createHash } from 'node:crypto';
import type { Adapter, CandidateFacts, RemoteRequest } from '../contract/adapter.ts';
import type {
  Certificate,
  Claim,
  ConsumedPermit,
  MarkerText,
  RequestPermit,
} from '../contract/proof.ts';
import type { Sealed } from '../contract/seal.ts';
import { digestRecord, digestText, digestValueOf, requestDigest } from '../crypto/digest.ts';
import { Keyring } from '../crypto/keyring.ts';
import { createSealer } from '../crypto/seal.ts';
import { claimRecord } from '../protocol/binding.ts';
import { certificateRecord } from '../protocol/boundary.ts';
import { type MarkerRecord, markerRecord } from '../protocol/marker.ts';
import { type PermitRecord, permitRecord } from '../protocol/permit.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';

/**
 * The proofs that one attempt would hold, made without a runtime, for tests of one port. They are
 * well-formed and sealed, but nothing was approved, claimed or certified.
 */
export interface Proofs {
  readonly occurrence: OccurrenceId;
  readonly execution: ExecutionId;
  readonly claim: Claim;
  readonly certificate: Certificate;
  /** A consumed permit for a held candidate, with the marker that its commit must write. */
  permit(facts: CandidateFacts): ConsumedPermit;
  requestPermit(request: RemoteRequest): RequestPermit;
  /** The marker that recovery would insert to end this attempt. */
  voidMarker(): MarkerText;
}

const AT = '2026-01-01T10:00:00.000Z';
const NEVER = { atMs: Number.POSITIVE_INFINITY, monotonicMs: Number.POSITIVE_INFINITY };
const secret = createHash('sha256').update('effectmatch/testing').digest();
const sealer = createSealer(new Keyring([{ id: 'testing', secret }]));

/**
 * Mints the proofs of an attempt at the named occurrence. The same name gives the same occurrence
 * in every process; another `execution` makes a second attempt at it. `credentials` is the value
 * from a survey: adapters that send requests compare it.
 */
export function mintProofs(
  adapter: Adapter,
  name: string,
  execution = name,
  credentials = 'none',
): Proofs {
  const occurrence = `occ_${standIn(`occurrence ${name}`).slice(0, 40)}` as OccurrenceId;
  const by = `exe_${standIn(`execution ${execution}`).slice(0, 32)}` as ExecutionId;
  const attempt = { version: 1 as const, occurrence, execution: by };
  const identity = digestValueOf('effectmatch/identity/v1', { ...adapter.identity });
  const approved = standIn('approved');
  const sealed = sealer.seal(claimRecord, {
    ...attempt,
    license: standIn(`license ${name}`),
    binding: standIn(`binding ${name}`),
    approved,
    adapter: 'adapter',
    identity,
    backend: adapter.identity.backend,
    frame: standIn('frame'),
    task: name,
    taskState: standIn('state'),
    continuations: [],
    claimedAt: AT,
  });
  const claim = { sealed, digest: digestRecord(claimRecord, sealed.record) } as Claim;
  const record = {
    version: 1 as const,
    occurrence,
    identity,
    backend: adapter.identity.backend,
    executor: 'testing',
    outlets: standIn('outlets'),
    configuration: standIn('configuration'),
    credentials: standIn('credentials'),
    enforcement: standIn('enforcement'),
  };
  const certificate = {
    record,
    digest: digestRecord(certificateRecord, record),
    credentials,
  } as Certificate;
  const bind = (bound: PermitRecord['bound']) => {
    const permit = {
      ...attempt,
      claim: claim.digest,
      certificate: certificate.digest,
      approved,
      bound,
      consumedAt: AT,
    };
    return {
      record: permit,
      digest: digestRecord(permitRecord, permit),
      credentials,
      deadline: NEVER,
    };
  };
  return {
    occurrence,
    execution: by,
    claim,
    certificate,
    permit({ candidate, evidence }) {
      const observed = standIn('observed');
      const permit = bind({ candidate, evidence, observed });
      const digests = { approved, observed, certificate: certificate.digest, claim: claim.digest };
      const marker = { ...attempt, disposition: 'committed' as const, ...digests };
      const text = markerText(
        sealer.seal(markerRecord, { ...marker, permit: permit.digest, consumedAt: AT }),
      );
      return { ...permit, marker: text } as ConsumedPermit;
    },
    requestPermit(request) {
      return bind({ request: requestDigest(request) }) as RequestPermit;
    },
    voidMarker: () =>
      markerText(
        sealer.seal(markerRecord, { ...attempt, disposition: 'void' as const, voidedAt: AT }),
      ),
  };
}

/** A placeholder digest for content that no adapter inspects. */
function standIn(of: string): Digest {
  return digestText('effectmatch/testing/v1', of);
}

function markerText({ record, text, seal }: Sealed<MarkerRecord>): MarkerText {
  return {
    occurrence: record.occurrence,
    disposition: record.disposition,
    text,
    sealKey: seal.key,
    sealMac: seal.mac,
  };
}
