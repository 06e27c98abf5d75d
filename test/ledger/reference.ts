import { instant, systemClock, type WallClock } from '../../src/contract/clock.ts';
import type {
  LedgerContext,
  Ledgers,
  LedgersFactory,
  PermitState,
} from '../../src/contract/ledgers.ts';
import type { Sealed } from '../../src/contract/seal.ts';
import { invariant } from '../../src/errors.ts';
import {
  acknowledgementSlot,
  CHAIN_START,
  CLAIM_SLOT,
  entryOf,
  extendChain,
  type JournalRow,
  type OpenedRow,
  openRow,
  PERMIT_SLOT,
  precedingSlot,
  RESOLUTION_SLOT,
  rowDigest,
  SHADOW_SLOT,
  settlementSlot,
  terminalSlot,
} from '../../src/ledger/journal.ts';
import {
  assertPermitFits,
  assertReleasable,
  assertVoidable,
  checkRequest,
  decideRecording,
  decideResolution,
  type Known,
  makeClaim,
  nonceReused,
  notNext,
  planSuperseded,
  spent,
} from '../../src/ledger/rules.ts';
import { type Checkpoint, checkpointRecord } from '../../src/protocol/checkpoint.ts';
import { acknowledgementRecord } from '../../src/protocol/continuation.ts';
import type { License } from '../../src/protocol/license.ts';
import { markerRecord } from '../../src/protocol/marker.ts';
import { permitRecord } from '../../src/protocol/permit.ts';
import type { Digest, ExecutionId, OccurrenceId } from '../../src/protocol/record.ts';
import { type Resolution, resolutionRecord } from '../../src/protocol/resolution.ts';
import { shadowRecord } from '../../src/protocol/shadow.ts';
import { assertAssured, type Terminal, terminalRecord } from '../../src/protocol/terminal.ts';

interface Issued {
  readonly bindingText: string;
  readonly license: License;
  readonly approvedText: string;
}

/**
 * What a ledger has to decide, as simply as it can be written: the journal is an array that is
 * looked through from the start every time. Stores are compared with it, and it is quick enough
 * for thousands of random cases. What was recorded lives as long as the factory, so that opening
 * it again stands for a restart.
 */
export function referenceLedgers(clock: WallClock = systemClock): LedgersFactory {
  const memory: Memory = {
    plans: new Map(),
    issuances: new Map(),
    leases: new Map(),
    rows: [],
    documents: new Map(),
  };
  return {
    async open(context) {
      const journal = arrayJournal(context, memory.rows);
      return {
        ...claims(context, clock, memory, journal),
        ...verdicts(context, clock, journal),
        ...reading(context, clock, memory, journal),
      };
    },
  };
}

interface Memory {
  readonly plans: Map<string, number>;
  readonly issuances: Map<string, Issued>;
  readonly leases: Map<OccurrenceId, { readonly issued: Issued; untilMs: number }>;
  readonly rows: JournalRow[];
  readonly documents: Map<Digest, string>;
  checkpoint?: Sealed<Checkpoint>;
}

type Journal = ReturnType<typeof arrayJournal>;

function arrayJournal(context: LedgerContext, rows: JournalRow[]) {
  const opened = () => rows.map((row) => openRow(context, row));
  const find = (occurrence: OccurrenceId, slot: string): OpenedRow | undefined => {
    const row = rows.find((one) => one.occurrence === occurrence && one.slot === slot);
    return row && openRow(context, row);
  };
  const terminalIn = (occurrence: OccurrenceId, slot: string): Terminal | undefined => {
    const row = find(occurrence, slot);
    return row?.kind === 'terminal' ? row.sealed.record : undefined;
  };
  const claimOf = (occurrence: OccurrenceId) => {
    const row = find(occurrence, CLAIM_SLOT);
    return row?.kind === 'claim' ? row.sealed : undefined;
  };
  const permitOf = (occurrence: OccurrenceId): PermitState | undefined => {
    const row = find(occurrence, PERMIT_SLOT);
    if (row === undefined) return undefined;
    return row.kind === 'permit' ? { kind: 'consumed', permit: row.sealed } : { kind: 'void' };
  };
  const known = (occurrence: OccurrenceId, execution: ExecutionId): Known => ({
    claim: claimOf(occurrence),
    permit: permitOf(occurrence),
    first: terminalIn(occurrence, terminalSlot(execution)),
    settlement: terminalIn(occurrence, settlementSlot(execution)),
  });
  return {
    opened,
    find,
    claimOf,
    permitOf,
    known,
    resolutionOf(occurrence: OccurrenceId): Sealed<Resolution> | undefined {
      const row = find(occurrence, RESOLUTION_SLOT);
      return row?.kind === 'resolution' ? row.sealed : undefined;
    },
    terminalOf(occurrence: OccurrenceId): Terminal | undefined {
      const execution = claimOf(occurrence)?.record.execution;
      if (execution === undefined) return undefined;
      const { first, settlement } = known(occurrence, execution);
      return settlement ?? first;
    },
    append(
      kind: JournalRow['kind'],
      slot: string,
      { record, text, seal }: Sealed<{ readonly occurrence: OccurrenceId }>,
    ): void {
      const { occurrence } = record;
      invariant(find(occurrence, slot) === undefined, 'a slot of the journal is filled once');
      const place = { seq: rows.length + 1, kind, slot, sealKey: seal.key, sealMac: seal.mac };
      rows.push({ ...place, occurrence, text, digest: rowDigest(context, place) });
    },
  };
}

type ClaimMethods =
  | 'announcePlan'
  | 'claim'
  | 'renew'
  | 'abandon'
  | 'standing'
  | 'holder'
  | 'unsettled';

function claims(
  context: LedgerContext,
  clock: WallClock,
  { plans, issuances, leases }: Memory,
  journal: Journal,
) {
  const isSettled = (occurrence: OccurrenceId): boolean => {
    const terminal = journal.terminalOf(occurrence);
    const ended = terminal !== undefined && terminal.kind !== 'indeterminate';
    return ended || journal.resolutionOf(occurrence) !== undefined;
  };
  const leaseOf = (occurrence: OccurrenceId, execution: ExecutionId) => {
    const holds = journal.claimOf(occurrence)?.record.execution === execution;
    return holds ? leases.get(occurrence) : undefined;
  };
  const ledger: Pick<Ledgers, ClaimMethods> = {
    async announcePlan(task, planRevision) {
      const announced = Math.max(planRevision, plans.get(task) ?? planRevision);
      plans.set(task, announced);
      return announced;
    },
    async claim(request) {
      const checked = checkRequest(context, request);
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
      const claim = makeClaim(context, checked, request.claim, occurrence);
      const ended = journal.find(occurrence, terminalSlot(claim.record.execution));
      invariant(ended === undefined, 'an attempt claims before it ends');
      issuances.set(key, issued);
      leases.set(occurrence, { issued, untilMs: clock.now() + request.leaseMs });
      journal.append('claim', CLAIM_SLOT, claim);
      return { kind: 'claimed', claim };
    },
    async renew(occurrence, execution, leaseMs) {
      const lease = leaseOf(occurrence, execution);
      if (lease !== undefined) lease.untilMs = Math.max(lease.untilMs, clock.now() + leaseMs);
      return lease !== undefined;
    },
    async abandon(occurrence, execution) {
      const lease = leaseOf(occurrence, execution);
      if (lease !== undefined) lease.untilMs = Math.min(lease.untilMs, clock.now());
    },
    async standing(task, { occurrence, execution }) {
      const isHolder = journal.claimOf(occurrence)?.record.execution === execution;
      const holds = isHolder && journal.resolutionOf(occurrence) === undefined;
      return { announced: plans.get(task), holds };
    },
    async holder(occurrence) {
      const claim = journal.claimOf(occurrence);
      const lease = leases.get(occurrence);
      if (claim === undefined || lease === undefined) return undefined;
      const { license, approvedText } = lease.issued;
      const leaseUntilMs = isSettled(occurrence) ? 0 : lease.untilMs;
      const leaseExpired = leaseUntilMs <= clock.now();
      return { claim, license, approvedText, leaseUntilMs, leaseExpired };
    },
    async unsettled({ includeLeased = false } = {}) {
      const open = [...leases.keys()].filter((occurrence) => !isSettled(occurrence));
      const entries = await Promise.all(open.map((occurrence) => ledger.holder(occurrence)));
      return entries
        .filter((entry) => entry !== undefined)
        .filter((entry) => includeLeased || entry.leaseExpired);
    },
  };
  return ledger;
}

type VerdictMethods =
  | 'consumePermit'
  | 'voidPermit'
  | 'permit'
  | 'record'
  | 'terminal'
  | 'resolve'
  | 'resolution'
  | 'recordShadow'
  | 'acknowledge';

function verdicts(
  context: LedgerContext,
  clock: WallClock,
  journal: Journal,
): Pick<Ledgers, VerdictMethods> {
  const { sealer } = context;
  return {
    async consumePermit(permit) {
      const sealed = sealer.check(permitRecord, permit);
      const { occurrence } = sealed.record;
      assertPermitFits(context, journal.claimOf(occurrence), sealed.record);
      const state = journal.permitOf(occurrence);
      if (state?.kind === 'void') return { kind: 'void' };
      if (state !== undefined || journal.terminalOf(occurrence) !== undefined)
        return { kind: 'spent' };
      journal.append('permit', PERMIT_SLOT, sealed);
      return { kind: 'consumed' };
    },
    async voidPermit(occurrence, execution) {
      assertVoidable(journal.known(occurrence, execution), execution);
      const permit = journal.permitOf(occurrence);
      if (permit !== undefined) return permit;
      const attempt = { version: 1 as const, occurrence, execution };
      const marker = {
        ...attempt,
        disposition: 'void' as const,
        voidedAt: instant(clock.now()),
      };
      journal.append('void', PERMIT_SLOT, sealer.seal(markerRecord, marker));
      return { kind: 'void' };
    },
    permit: async (occurrence) => journal.permitOf(occurrence),
    async record(terminal) {
      const sealed = sealer.check(terminalRecord, terminal);
      assertAssured(sealed.record);
      const { occurrence, execution } = sealed.record;
      const known = journal.known(occurrence, execution);
      const recording = decideRecording(context, known, sealed.record);
      if (recording.kind === 'stored') return recording.terminal;
      journal.append('terminal', recording.slot, sealed);
      return sealed.record;
    },
    terminal: async (occurrence) => journal.terminalOf(occurrence),
    async resolve(resolution) {
      const sealed = sealer.open(resolutionRecord, resolution.text, resolution.seal);
      const { occurrence, execution } = sealed.record;
      const known = journal.known(occurrence, execution);
      const stored = decideResolution(known, journal.resolutionOf(occurrence), sealed);
      if (stored !== undefined) return stored;
      journal.append('resolution', RESOLUTION_SLOT, sealed);
      return sealed.record;
    },
    resolution: async (occurrence) => journal.resolutionOf(occurrence)?.record,
    async recordShadow(shadow) {
      const sealed = sealer.check(shadowRecord, shadow);
      const { occurrence } = sealed.record;
      const isUsed = journal.opened().some((row) => row.sealed.record.occurrence === occurrence);
      invariant(!isUsed, 'a shadow shares its occurrence with nothing');
      journal.append('shadow', SHADOW_SLOT, sealed);
    },
    async acknowledge(acknowledgement) {
      const sealed = sealer.check(acknowledgementRecord, acknowledgement);
      const { occurrence, continuation } = sealed.record;
      const claim = journal.claimOf(occurrence);
      const terminal = journal.terminalOf(occurrence);
      const before = precedingSlot(sealed.record);
      const isPreceded = before !== undefined && journal.find(occurrence, before) !== undefined;
      assertReleasable({ claim, terminal }, isPreceded, sealed.record);
      const slot = acknowledgementSlot(sealed.record);
      const completed = acknowledgementSlot({ state: 'completed', continuation });
      const isTaken = [slot, completed].some((one) => journal.find(occurrence, one) !== undefined);
      if (isTaken) return false;
      journal.append('acknowledgement', slot, sealed);
      return true;
    },
  };
}

function reading(
  context: LedgerContext,
  clock: WallClock,
  memory: Memory,
  journal: Journal,
): Omit<Ledgers, ClaimMethods | VerdictMethods | 'durable' | 'shared'> {
  const { sealer } = context;
  const acknowledgements = () =>
    journal
      .opened()
      .filter((row) => row.kind === 'acknowledgement')
      .map(({ sealed }) => sealed.record);
  const chainThrough = (seq: number) =>
    journal
      .opened()
      .slice(0, seq)
      .reduce((chain, row) => extendChain(context, chain, row.digest), CHAIN_START);
  return {
    async attempts(occurrence) {
      const rows = journal.opened().filter((row) => row.kind === 'terminal');
      return rows.map(({ sealed }) => sealed.record).filter((one) => one.occurrence === occurrence);
    },
    acknowledgements: async (occurrence) =>
      acknowledgements().filter((one) => one.occurrence === occurrence),
    uncompleted: async () =>
      acknowledgements().filter(({ occurrence, continuation, state }, at, all) => {
        const completed = acknowledgementSlot({ state: 'completed', continuation });
        const isAgain = all
          .slice(at + 1)
          .some(
            (later) =>
              later.state === 'released' &&
              later.occurrence === occurrence &&
              later.continuation === continuation,
          );
        const isDone = isAgain || journal.find(occurrence, completed) !== undefined;
        return state === 'released' && !isDone;
      }),
    async journal({ afterSeq = 0, limit = 100, last = false, occurrence } = {}) {
      const rows = journal
        .opened()
        .filter(({ seq }) => seq > afterSeq)
        .filter(
          ({ sealed }) => (occurrence ?? sealed.record.occurrence) === sealed.record.occurrence,
        );
      const page = last ? rows.slice(Math.max(0, rows.length - limit)) : rows.slice(0, limit);
      return page.map(entryOf);
    },
    async search(prefix) {
      const ids = new Set(journal.opened().map((row) => row.sealed.record.occurrence));
      const found = [...ids].filter((id) => id.startsWith(prefix));
      return found.toSorted().slice(0, 10);
    },
    async checkpoint() {
      const throughSeq = memory.rows.length;
      if (throughSeq === 0 || memory.checkpoint?.record.throughSeq === throughSeq)
        return memory.checkpoint;
      const at = instant(clock.now());
      const chain = chainThrough(throughSeq);
      const record = { version: 1 as const, throughSeq, rows: throughSeq, chain, at };
      memory.checkpoint = sealer.seal(checkpointRecord, record);
      return memory.checkpoint;
    },
    async verify(exported) {
      const rows = journal.opened().length;
      const known = exported && sealer.open(checkpointRecord, exported.text, exported.seal).record;
      if (known !== undefined && known.throughSeq > rows)
        return { kind: 'tampered', seq: rows + 1, what: 'the end of the journal is missing' };
      if (known !== undefined && chainThrough(known.throughSeq) !== known.chain)
        return {
          kind: 'tampered',
          seq: known.throughSeq,
          what: 'the rows are not the exported ones',
        };
      return { kind: 'intact', rows, checkpointed: memory.checkpoint?.record.throughSeq ?? 0 };
    },
    async keep(digest, text) {
      const kept = memory.documents.get(digest) ?? text;
      invariant(kept === text, 'one digest names one document');
      memory.documents.set(digest, text);
    },
    document: async (digest) => memory.documents.get(digest),
    async keepFirst(name, text) {
      const kept = memory.documents.get(name) ?? text;
      memory.documents.set(name, kept);
      return kept;
    },
    close: async () => {},
  };
}
