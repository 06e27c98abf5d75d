import { createHash } from 'node:crypto';
import type { ClaimRequest, LedgerContext, Ledgers } from '../../contract/ledgers.ts';
import type { Sealed } from '../../contract/seal.ts';
import { digestRecord, digestText, occurrenceId } from '../../crypto/digest.ts';
import { type Generation, Keyring } from '../../crypto/keyring.ts';
import { createSealer } from '../../crypto/seal.ts';
import { bindingRecord, type ClaimRecord, claimRecord } from '../../protocol/binding.ts';
import { type Acknowledgement, acknowledgementRecord } from '../../protocol/continuation.ts';
import { type License, licenseRecord } from '../../protocol/license.ts';
import { type PermitRecord, permitRecord } from '../../protocol/permit.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../../protocol/record.ts';
import { type Terminal, terminalRecord } from '../../protocol/terminal.ts';

/** Keys and digests of a made-up deployment. The same seed gives the same keys in every process. */
export function fixtureContext(seed = 'conformance'): LedgerContext {
  return contextOf([{ id: 'fixture', secret: secretOf(seed) }]);
}

/**
 * The same deployment after a rotation: a new generation seals, and the old one still verifies
 * unless it was removed.
 */
export function rotatedContext(options: { readonly keepsOld: boolean }): LedgerContext {
  const next = { id: 'next', secret: secretOf('next') };
  return contextOf(
    options.keepsOld ? [next, { id: 'fixture', secret: secretOf('conformance') }] : [next],
  );
}

function contextOf(generations: readonly Generation[]): LedgerContext {
  return { sealer: createSealer(new Keyring(generations)), digest: digestText };
}

function secretOf(seed: string): Uint8Array {
  return createHash('sha256').update(seed).digest();
}

/** A placeholder digest for content that the ledger never inspects. */
export function fixtureDigest(of: string): Digest {
  return digestText('effectmatch/fixture/v1', of);
}

export function fixtureExecution(name: string): ExecutionId {
  return `exe_${fixtureDigest(name).slice(0, 32)}` as ExecutionId;
}

export function fixtureLicense(name: string, overrides: Partial<License> = {}): License {
  return {
    version: 1,
    issuer: 'ap-team',
    key: fixtureDigest('key'),
    nonce: fixtureDigest(name).slice(0, 32),
    source: 'manifest',
    task: `task ${name}`,
    taskState: fixtureDigest('state'),
    planRevision: 1,
    adapter: 'books',
    identity: fixtureDigest('identity'),
    approved: fixtureDigest(`approved ${name}`),
    rendering: fixtureDigest(`rendering ${name}`),
    policy: fixtureDigest('policy'),
    frame: fixtureDigest('frame'),
    notBefore: '2026-01-01T00:00:00.000Z',
    expiresAt: '2026-01-02T00:00:00.000Z',
    occurrences: 1,
    continuations: ['reconcile', 'notify'],
    ...overrides,
  };
}

/** The request with which an execution claims under a license, as a runtime makes it. */
export function fixtureRequest(
  { sealer }: LedgerContext,
  license: License,
  execution: ExecutionId,
  leaseMs = 60_000,
): ClaimRequest {
  const lineage = digestRecord(licenseRecord, license);
  const { issuer, nonce } = license;
  const occurrences = Array.from({ length: license.occurrences }, (_, index) =>
    occurrenceId({ issuer, nonce, license: lineage, index }),
  );
  const binding = bindingRecord.parse({ version: 1, issuer, nonce, license: lineage, occurrences });
  return {
    license,
    binding,
    leaseMs,
    approvedText: JSON.stringify({ outcome: license.approved }),
    claim: (occurrence) =>
      sealer.seal(claimRecord, {
        version: 1,
        occurrence,
        execution,
        license: lineage,
        binding: digestRecord(bindingRecord, binding),
        approved: license.approved,
        adapter: license.adapter,
        identity: license.identity,
        backend: 'fixture backend',
        frame: license.frame,
        task: license.task,
        taskState: license.taskState,
        continuations: license.continuations,
        claimedAt: '2026-01-01T10:00:00.000Z',
      }),
  };
}

/** The highest plan revision announced for a task, as an attempt's final gate sees it. */
export async function announcedPlan(ledgers: Ledgers, task: string): Promise<number | undefined> {
  const attempt = {
    occurrence: `occ_${'0'.repeat(40)}` as OccurrenceId,
    execution: fixtureExecution('any'),
  };
  return (await ledgers.standing(task, attempt)).announced;
}

/**
 * Claims under a fresh license of that name, by an execution of the same name. Throws if the claim
 * is refused.
 */
export async function claimFixture(
  ledgers: Ledgers,
  context: LedgerContext,
  name: string,
  options: { readonly leaseMs?: number; readonly license?: Partial<License> } = {},
): Promise<Sealed<ClaimRecord>> {
  const license = fixtureLicense(name, options.license);
  const result = await ledgers.claim(
    fixtureRequest(context, license, fixtureExecution(name), options.leaseMs),
  );
  if (result.kind === 'refused')
    throw new Error(`the fixture ${name} was not claimed: ${result.detail}`);
  return result.claim;
}

/** A terminal of the attempt that made the claim, of any kind, with the test's overrides. */
export function fixtureTerminal<K extends Terminal['kind']>(
  { sealer }: LedgerContext,
  claim: ClaimRecord,
  kind: K,
  overrides: Partial<Extract<Terminal, { kind: K }>> = {},
): Sealed<Terminal> {
  const { occurrence, execution, license: lineage, adapter, task, approved, claimedAt } = claim;
  const base = { version: 1, occurrence, execution, lineage, adapter, task, approved };
  const code = { contract: fixtureDigest('contract'), observer: fixtureDigest('observer') };
  const held = {
    claim: digestRecord(claimRecord, claim),
    certificate: fixtureDigest('certificate'),
    permit: digestRecord(permitRecord, permitOf(claim)),
    consumedAt: '2026-01-01T10:00:01.000Z',
  };
  const observed = fixtureDigest('observed');
  const diff = { extra: [], missing: [], altered: [], omitted: 0 };
  const bodies = {
    committed: { ...held, claimedAt, observed, reconciled: false },
    rejected: { at: 'comparison', reason: 'effects-differ', detail: 'the effects differ' },
    diverged: { ...held, outcome: { kind: 'DIVERGED', observed, diff } },
    indeterminate: { ...held, gap: 'the reply was lost' },
  };
  const recordedAt = '2026-01-01T10:00:02.000Z';
  return sealer.seal(
    terminalRecord,
    terminalRecord.parse({ ...base, ...code, recordedAt, kind, ...bodies[kind], ...overrides }),
  );
}

/** A replay: another execution whose claim on the same occurrence was refused. */
export function fixtureReplay(
  context: LedgerContext,
  claim: ClaimRecord,
  name: string,
): Sealed<Terminal> {
  const execution = fixtureExecution(name);
  return fixtureTerminal(context, claim, 'rejected', {
    execution,
    at: 'authority',
    reason: 'spent',
  });
}

export function fixturePermit({ sealer }: LedgerContext, claim: ClaimRecord): Sealed<PermitRecord> {
  return sealer.seal(permitRecord, permitOf(claim));
}

export function fixtureAcknowledgement(
  { sealer }: LedgerContext,
  claim: ClaimRecord,
  overrides: Partial<Acknowledgement> = {},
): Sealed<Acknowledgement> {
  return sealer.seal(acknowledgementRecord, {
    version: 1,
    occurrence: claim.occurrence,
    continuation: 'reconcile',
    lineage: claim.license,
    state: 'released',
    at: '2026-01-01T10:00:03.000Z',
    ...overrides,
  });
}

function permitOf(claim: ClaimRecord): PermitRecord {
  return {
    version: 1,
    occurrence: claim.occurrence,
    execution: claim.execution,
    claim: digestRecord(claimRecord, claim),
    certificate: fixtureDigest('certificate'),
    approved: claim.approved,
    bound: { request: fixtureDigest('request') },
    consumedAt: '2026-01-01T10:00:01.000Z',
  };
}
