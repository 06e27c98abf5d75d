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

/** What is declined, and why. */
export type Declined = Pick<SignedDecline, 'request' | 'generation' | 'approved' | 'reason'>;

/** What is to be decided, and on which ground. */
export interface Decision {
  readonly occurrence: OccurrenceId;
  readonly execution: ExecutionId;
  readonly lineage: Digest;
  readonly finding: Finding;
  /**
   * What the operator relies on, as text: an export, a letter of the bank, a query and its result.
   */
  readonly evidence: string;
}

/** A "no" to one request, before it is signed. */
export function writeDecline({ name, key, nowMs }: Decider, declined: Declined) {
  const { request, generation, approved, reason } = declined;
  return {
    ...{ version: 1 as const, request, generation, approved, reason },
    ...{ issuer: name, key, at: instant(nowMs) },
  };
}

/** An operator's decision, before it is signed. */
export function writeResolution({ name, key, nowMs }: Decider, decision: Decision) {
  const { occurrence, execution, lineage, finding, evidence } = decision;
  return {
    ...{ version: 1 as const, occurrence, execution, lineage, finding },
    evidence: evidenceDigest(evidence),
    ...{ operator: name, key, at: instant(nowMs) },
  };
}

/** What the signature of a license covers. */
export function contentOfLicense(license: License): SignedContent {
  return { domain: licenseRecord.domain, text: licenseRecord.text(license) };
}

/** What the signature of a decline covers. */
export function contentOfDecline(decline: Omit<SignedDecline, 'signature'>): SignedContent {
  return { domain: declineRecord.domain, text: canonical(decline) };
}

/** What the signature of an operator's decision covers. */
export function contentOfResolution(decision: Omit<Resolution, 'signature'>): SignedContent {
  return { domain: resolutionRecord.domain, text: canonical(decision) };
}

/** The content address of an operator's evidence. */
export function evidenceDigest(evidence: string): Digest {
  return digestText('effectmatch/evidence/v1', evidence);
}
