/** A ledger in memory, for tests: it ends with its process. @module */
import { instant, systemClock, type WallClock } from '../contract/clock.ts';
import type {
  AttemptName,
  ClaimEntry,
  ClaimRequest,
  ClaimResult,
  JournalEntry,
  JournalVerdict,
  LedgerContext,
  Ledgers,
  LedgersFactory,
  PermitState,
  Standing,
} from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { invariant } from '../errors.ts';
import { type Checkpoint, checkpointRecord } from '../protocol/checkpoint.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import type { License } from '../protocol/license.ts';
import { markerRecord } from '../protocol/marker.ts';
import { type PermitRecord, permitRecord } from '../protocol/permit.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { type Resolution, resolutionRecord } from '../protocol/resolution.ts';
import { type Shadow, shadowRecord } from '../protocol/shadow.ts';
import { assertAssured, type Terminal, terminalRecord } from '../protocol/terminal.ts';
import {
  acknowledgementSlot,
  CLAIM_SLOT,
  entryOf,
  type JournalRow,
  PERMIT_SLOT,
  RESOLUTION_SLOT,
  SHADOW_SLOT,
  terminalSlot,
} from './journal.ts';
import { MemoryJournal } from './memory-journal.ts';
import { nonceReused, notNext, planSuperseded, spent } from './refusals.ts';
import {
  assertPermitFits,
  assertReleasable,
  assertUnused,
  assertVoidable,
  checkRequest,
  decideRecording,
  decideResolution,
  makeClaim,
} from './rules.ts';

/**
 * Ledgers in the memory of this process, for tests and as the reference that other stores are
 * compared with. What was recorded lives as long as the factory, so that opening it again stands
 * for a restart; nothing survives the process.
 */
export function memoryLedgers(clock: WallClock = systemClock): LedgersFactory {
  const memory: Memory = {
    plans: new Map(),
    issuances: new Map(),
    leases: new Map(),
    rows: [],
    documents: new Map(),
  };
  return { open: async (context) => new MemoryLedgers(context, clock, memory) };
}

interface Memory {
  readonly plans: Map<string, number>;
  /** By issuer and nonce. */
  readonly issuances: Map<string, Issued>;
  /** One entry per claimed occurrence, in order of claiming. */
  readonly leases: Map<OccurrenceId, { readonly issued: Issued; untilMs: number }>;
  readonly rows: JournalRow[];
  readonly documents: Map<Digest, string>;
  checkpoint?: Sealed<Checkpoint>;
}

interface Issued {
  readonly bindingText: string;
  readonly license: License;
  readonly approvedText: string;
}

class MemoryLedgers implements Ledgers {
  readonly durable = false;
  readonly shared = false;
  readonly #context: LedgerContext;
  readonly #clock: WallClock;
  readonly #memory: Memory;
  readonly #journal: MemoryJournal;

  constructor(context: LedgerContext, clock: WallClock, memory: Memory) {
    this.#context = context;
    this.#clock = clock;
    this.#memory = memory;
    this.#journal = new MemoryJournal(context, memory.rows);
  }

  async announcePlan(task: string, planRevision: number): Promise<number> {
    const { plans } = this.#memory;
    const announced = Math.max(planRevision, plans.get(task) ?? planRevision);
    plans.set(task, announced);
    return announced;
  }

  async claim(request: ClaimRequest): Promise<ClaimResult> {
    const { plans, issuances, leases } = this.#memory;
    const checked = checkRequest(this.#context, request);
    const { license, binding, bindingText, approvedText } = checked;
    const announced = plans.get(license.task);
    if (announced !== undefined && license.planRevision < announced)
      return planSuperseded(license, announced);

    const key = `${license.issuer}\n${license.nonce}`;
    const issued = issuances.get(key) ?? { bindingText, license, approvedText };
    if (issued.bindingText !== bindingText) return nonceReused(license);

    const occurrence = binding.occurrences.find((candidate) => !leases.has(candidate));
    if (occurrence === undefined) return spent(license);
    if (request.only !== undefined && request.only !== occurrence)
      return notNext(binding.occurrences, request.only, occurrence);
    const claim = makeClaim(this.#context, checked, request.claim, occurrence);
    invariant(
      !this.#journal.find(occurrence, terminalSlot(claim.record.execution)),
      'an attempt claims before it ends',
    );
    issuances.set(key, issued);
    leases.set(occurrence, { issued, untilMs: this.#clock.now() + request.leaseMs });
    this.#journal.append('claim', CLAIM_SLOT, claim);
    return { kind: 'claimed', claim };
  }

  async renew(occurrence: OccurrenceId, execution: ExecutionId, leaseMs: number): Promise<boolean> {
    const lease = this.#memory.leases.get(occurrence);
    if (lease === undefined || this.#journal.claimOf(occurrence)?.record.execution !== execution)
      return false;
    lease.untilMs = Math.max(lease.untilMs, this.#clock.now() + leaseMs);
    return true;
  }

  async abandon(occurrence: OccurrenceId, execution: ExecutionId): Promise<void> {
    const lease = this.#memory.leases.get(occurrence);
    if (lease === undefined || this.#journal.claimOf(occurrence)?.record.execution !== execution)
      return;
    lease.untilMs = Math.min(lease.untilMs, this.#clock.now());
  }

  async standing(task: string, { occurrence, execution }: AttemptName): Promise<Standing> {
    const isHolder = (await this.holder(occurrence))?.claim.record.execution === execution;
    const holds = isHolder && (await this.resolution(occurrence)) === undefined;
    return { announced: this.#memory.plans.get(task), holds };
  }

  async holder(occurrence: OccurrenceId): Promise<ClaimEntry | undefined> {
    const claim = this.#journal.claimOf(occurrence);
    const lease = this.#memory.leases.get(occurrence);
    if (claim === undefined || lease === undefined) return undefined;
    const { license, approvedText } = lease.issued;
    const leaseUntilMs = this.#journal.isSettled(occurrence) ? 0 : lease.untilMs;
    return {
      claim,
      license,
      approvedText,
      leaseUntilMs,
      leaseExpired: leaseUntilMs <= this.#clock.now(),
    };
  }

  async unsettled({ includeLeased = false } = {}): Promise<readonly ClaimEntry[]> {
    const entries: ClaimEntry[] = [];
    for (const occurrence of this.#memory.leases.keys()) {
      if (this.#journal.isSettled(occurrence)) continue;
      const entry = await this.holder(occurrence);
      if (entry !== undefined && (includeLeased || entry.leaseExpired)) entries.push(entry);
    }
    return entries;
  }

  async consumePermit(
    permit: Sealed<PermitRecord>,
  ): Promise<{ readonly kind: 'consumed' } | { readonly kind: 'void' | 'spent' }> {
    const sealed = this.#context.sealer.check(permitRecord, permit);
    const { occurrence } = sealed.record;
    assertPermitFits(this.#context, this.#journal.claimOf(occurrence), sealed.record);
    if (this.#journal.permitOf(occurrence)?.kind === 'void') return { kind: 'void' };
    if (this.#journal.permitOf(occurrence) || this.#journal.terminalOf(occurrence))
      return { kind: 'spent' };
    this.#journal.append('permit', PERMIT_SLOT, sealed);
    return { kind: 'consumed' };
  }

  async voidPermit(occurrence: OccurrenceId, execution: ExecutionId): Promise<PermitState> {
    assertVoidable(this.#journal.known(occurrence, execution), execution);
    const permit = this.#journal.permitOf(occurrence);
    if (permit !== undefined) return permit;
    const voidedAt = instant(this.#clock.now());
    const marker = {
      version: 1 as const,
      disposition: 'void' as const,
      occurrence,
      execution,
      voidedAt,
    };
    this.#journal.append('void', PERMIT_SLOT, this.#context.sealer.seal(markerRecord, marker));
    return { kind: 'void' };
  }

  async permit(occurrence: OccurrenceId): Promise<PermitState | undefined> {
    return this.#journal.permitOf(occurrence);
  }

  async record(terminal: Sealed<Terminal>): Promise<Terminal> {
    const sealed = this.#context.sealer.check(terminalRecord, terminal);
    assertAssured(sealed.record);
    const { occurrence, execution } = sealed.record;
    const recording = decideRecording(
      this.#context,
      this.#journal.known(occurrence, execution),
      sealed.record,
    );
    if (recording.kind === 'stored') return recording.terminal;
    this.#journal.append('terminal', recording.slot, sealed);
    return sealed.record;
  }

  async terminal(occurrence: OccurrenceId): Promise<Terminal | undefined> {
    return this.#journal.terminalOf(occurrence);
  }

  async attempts(occurrence: OccurrenceId): Promise<readonly Terminal[]> {
    const opened = this.#journal.opened().filter((row) => row.kind === 'terminal');
    return opened
      .map((row) => row.sealed.record)
      .filter((terminal) => terminal.occurrence === occurrence);
  }

  async resolve(resolution: Sealed<Resolution>): Promise<Resolution> {
    const sealed = this.#context.sealer.open(resolutionRecord, resolution.text, resolution.seal);
    const { occurrence, execution } = sealed.record;
    const row = this.#journal.find(occurrence, RESOLUTION_SLOT);
    const before = row?.kind === 'resolution' ? row.sealed : undefined;
    const stored = decideResolution(this.#journal.known(occurrence, execution), before, sealed);
    if (stored !== undefined) return stored;
    this.#journal.append('resolution', RESOLUTION_SLOT, sealed);
    return sealed.record;
  }

  async resolution(occurrence: OccurrenceId): Promise<Resolution | undefined> {
    const row = this.#journal.find(occurrence, RESOLUTION_SLOT);
    return row?.kind === 'resolution' ? row.sealed.record : undefined;
  }

  async recordShadow(shadow: Sealed<Shadow>): Promise<void> {
    const sealed = this.#context.sealer.check(shadowRecord, shadow);
    assertUnused(this.#journal.occurs(sealed.record.occurrence));
    this.#journal.append('shadow', SHADOW_SLOT, sealed);
  }

  async acknowledge(acknowledgement: Sealed<Acknowledgement>): Promise<boolean> {
    const sealed = this.#context.sealer.check(acknowledgementRecord, acknowledgement);
    const { occurrence, continuation } = sealed.record;
    const known = {
      claim: this.#journal.claimOf(occurrence),
      terminal: this.#journal.terminalOf(occurrence),
    };
    const released =
      this.#journal.find(occurrence, acknowledgementSlot({ state: 'released', continuation })) !==
      undefined;
    assertReleasable(known, released, sealed.record);
    const slot = acknowledgementSlot(sealed.record);
    if (this.#journal.find(occurrence, slot) !== undefined) return false;
    this.#journal.append('acknowledgement', slot, sealed);
    return true;
  }

  async acknowledgements(occurrence: OccurrenceId): Promise<readonly Acknowledgement[]> {
    return this.#journal.acknowledgements().filter((record) => record.occurrence === occurrence);
  }

  async uncompleted(): Promise<readonly Acknowledgement[]> {
    return this.#journal.acknowledgements().filter((record) => !this.#journal.isCompleted(record));
  }

  async journal(options: Parameters<Ledgers['journal']>[0] = {}): Promise<readonly JournalEntry[]> {
    const { afterSeq = 0, limit = 100, last = false, occurrence } = options;
    const rows = this.#journal
      .opened()
      .filter(
        (row) =>
          row.seq > afterSeq &&
          (occurrence ?? row.sealed.record.occurrence) === row.sealed.record.occurrence,
      );
    return (last ? rows.slice(Math.max(0, rows.length - limit)) : rows.slice(0, limit)).map(
      entryOf,
    );
  }

  async search(prefix: string): Promise<readonly OccurrenceId[]> {
    const ids = new Set(this.#journal.opened().map((row) => row.sealed.record.occurrence));
    return [...ids]
      .filter((id) => id.startsWith(prefix))
      .toSorted()
      .slice(0, 10);
  }

  async checkpoint(): Promise<Sealed<Checkpoint> | undefined> {
    const throughSeq = this.#journal.length;
    if (throughSeq === 0 || this.#memory.checkpoint?.record.throughSeq === throughSeq)
      return this.#memory.checkpoint;
    const at = instant(this.#clock.now());
    const chain = this.#journal.chainThrough(throughSeq);
    const record = { version: 1 as const, throughSeq, rows: throughSeq, chain, at };
    this.#memory.checkpoint = this.#context.sealer.seal(checkpointRecord, record);
    return this.#memory.checkpoint;
  }

  async verify(exported?: Sealed<Checkpoint>): Promise<JournalVerdict> {
    const rows = this.#journal.opened().length;
    if (exported !== undefined) {
      const { record } = this.#context.sealer.open(checkpointRecord, exported.text, exported.seal);
      const difference = this.#journal.differenceFrom(record);
      if (difference !== undefined) return difference;
    }
    return { kind: 'intact', rows, checkpointed: this.#memory.checkpoint?.record.throughSeq ?? 0 };
  }

  async keep(digest: Digest, text: string): Promise<void> {
    invariant(
      (this.#memory.documents.get(digest) ?? text) === text,
      'one digest names one document',
    );
    this.#memory.documents.set(digest, text);
  }

  async document(digest: Digest): Promise<string | undefined> {
    return this.#memory.documents.get(digest);
  }

  async close(): Promise<void> {}
}
