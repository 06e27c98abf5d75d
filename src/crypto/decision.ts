import { instant } from '../contract/clock.ts';
import { canonical } from '../protocol/canon.ts';
import { declineRecord, type SignedDecline } from '../protocol/decline.ts';
import { type License, licenseRecord } from '../protocol/license.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { type Finding, type Resolution, resolutionRecord } from '../protocol/resolution.ts';
import { digestText } from './digest.ts';

/** What a person's signature covers: the domain label, a newline and the text. */
export interface SignedContent {
  readonly domain: string;
  readonly text: string;
}

/** Who decides, with which key, and when. */
export interface Decider {
  readonly name: string;
  /** Digest of the public key. */
  readonly key: Digest;
  readonly nowMs: number;
}

/** The request that is declined, and why. */
export type Declined = Pick<SignedDecline, 'request' | 'generation' | 'approved' | 'reason'>;

/** An operator's finding about an occurrence, and the evidence for it. */
export interface Decision {
  readonly occurrence: OccurrenceId;
  readonly execution: ExecutionId;
  readonly lineage: Digest;
  readonly finding: Finding;
  /** The operator's evidence as text: an export, a letter from the bank, a query and its result. */
  readonly evidence: string;
}

/** Builds the unsigned decline of one request. */
export function writeDecline({ name, key, nowMs }: Decider, declined: Declined) {
  const { request, generation, approved, reason } = declined;
  return {
    version: 1 as const,
    request,
    generation,
    approved,
    reason,
    issuer: name,
    key,
    at: instant(nowMs),
  };
}

/** Builds an operator's unsigned decision. */
export function writeResolution({ name, key, nowMs }: Decider, decision: Decision) {
  const { occurrence, execution, lineage, finding, evidence } = decision;
  return {
    version: 1 as const,
    occurrence,
    execution,
    lineage,
    finding,
    evidence: evidenceDigest(evidence),
    operator: name,
    key,
    at: instant(nowMs),
  };
}

/** The content that a license's signature covers. */
export function contentOfLicense(license: License): SignedContent {
  return { domain: licenseRecord.domain, text: licenseRecord.text(license) };
}

/** The content that a decline's signature covers. */
export function contentOfDecline(decline: Omit<SignedDecline, 'signature'>): SignedContent {
  return { domain: declineRecord.domain, text: canonical(decline) };
}

/** The content that the signature of an operator's decision covers. */
export function contentOfResolution(decision: Omit<Resolution, 'signature'>): SignedContent {
  return { domain: resolutionRecord.domain, text: canonical(decision) };
}

/** The digest of an operator's evidence. */
export function evidenceDigest(evidence: string): Digest {
  return digestText('effectmatch/evidence/v1', evidence);
}
