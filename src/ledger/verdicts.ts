import { instant } from '../contract/clock.ts';
import type { Ledgers, PermitState } from '../contract/ledgers.ts';
import type { Sealed } from '../contract/seal.ts';
import { invariant } from '../errors.ts';
import { type Acknowledgement, acknowledgementRecord } from '../protocol/continuation.ts';
import { markerRecord } from '../protocol/marker.ts';
import { type PermitRecord, permitRecord } from '../protocol/permit.ts';
import type { ExecutionId, OccurrenceId } from '../protocol/record.ts';
import { type Resolution, resolutionRecord } from '../protocol/resolution.ts';
import { type Shadow, shadowRecord } from '../protocol/shadow.ts';
import { assertAssured, type Terminal, terminalRecord } from '../protocol/terminal.ts';
import { findClaim } from './claims.ts';
import {
  acknowledgementSlot,
  CLAIM_SLOT,
  type OpenedRow,
  PERMIT_SLOT,
  precedingSlot,
  RESOLUTION_SLOT,
  SHADOW_SLOT,
  settlementSlot,
  tampered,
  terminalSlot,
} from './journal.ts';
import {
  assertPermitFits,
  assertReleasable,
  assertVoidable,
  decideRecording,
  decideResolution,
  findMisfit,
  type Known,
} from './rules.ts';
import type { LedgerTables, TableStore } from './store.ts';

type VerdictMethods =
  | 'consumePermit'
  | 'voidPermit'
  | 'permit'
  | 'record'
  | 'terminal'
  | 'attempts'
  | 'resolve'
  | 'resolution'
  | 'recordShadow'
  | 'acknowledge'
  | 'handOver'
  | 'acknowledgements'
  | 'uncompleted';

/** Permits, terminals, operators' decisions, releases and shadows. */
export function verdictLedger(store: TableStore): Pick<Ledgers, VerdictMethods> {
  const { sealer } = store.context;
  const decide = <T>({ occurrence }: Named, body: (tables: LedgerTables) => T): Promise<T> =>
    store.decide({ occurrences: [occurrence] }, 'flushed', body);
  const read = <T>(occurrence: OccurrenceId, look: (tables: LedgerTables) => T): Promise<T> =>
    store.read({ occurrences: [occurrence] }, look);
  return {
    async consumePermit(permit) {
      const sealed = sealer.check(permitRecord, permit);
      return await decide(sealed.record, (tables) => consumePermit(tables, sealed));
    },
    voidPermit: (occurrence, execution) =>
      decide({ occurrence }, (tables) => voidPermit(tables, occurrence, execution)),
    permit: (occurrence) => read(occurrence, (tables) => findPermit(tables, occurrence)),

    async record(terminal, durability, log) {
      const sealed = sealer.check(terminalRecord, terminal);
      assertAssured(sealed.record);
      const about = { occurrences: [sealed.record.occurrence] };
      const decide = (tables: LedgerTables) => {
        const recorded = recordTerminal(tables, sealed);
        if (!recorded.inserted && durability === 'flushed') tables.touch();
        return recorded.terminal;
      };
      return await store.decide(about, durability, decide, log);
    },
    terminal: (occurrence) => read(occurrence, (tables) => findTerminal(tables, occurrence)),
    attempts: (occurrence) =>
      read(occurrence, (tables) =>
        tables.list(occurrence, 'terminal').map(({ sealed }) => sealed.record),
      ),

    async resolve(resolution) {
      const sealed = sealer.open(resolutionRecord, resolution.text, resolution.seal);
      return await decide(sealed.record, (tables) => recordResolution(tables, sealed));
    },
    resolution: (occurrence) =>
      read(occurrence, (tables) => findResolution(tables, occurrence)?.record),

    // Not flushed: nothing depends on a shadow. No other row may share its occurrence, and `verify`
    // checks that.
    async recordShadow(shadow) {
      const sealed = sealer.check(shadowRecord, shadow);
      const about = { occurrences: [sealed.record.occurrence] };
      await store.decide(about, 'relaxed', (tables) => appendShadow(tables, sealed));
    },

    async acknowledge(acknowledgement) {
      const sealed = sealer.check(acknowledgementRecord, acknowledgement);
      return await decide(sealed.record, (tables) => acknowledgeContinuation(tables, sealed));
    },
    ...(store.decideWith && { handOver: handingOver(store, store.decideWith) }),
    acknowledgements: (occurrence) =>
      read(occurrence, (tables) =>
        tables.list(occurrence, 'acknowledgement').map(({ sealed }) => sealed.record),
      ),
    uncompleted: () => store.read({ uncompleted: true }, listUncompleted),
  };
}

interface Named {
  readonly occurrence: OccurrenceId;
}

/** `inserted` is false if the terminal agrees with the stored one. */
function recordTerminal(
  tables: LedgerTables,
  sealed: Sealed<Terminal>,
): { readonly terminal: Terminal; readonly inserted: boolean } {
  const { occurrence, execution } = sealed.record;
  const known = findKnown(tables, occurrence, execution);
  const recording = decideRecording(tables.context, known, sealed.record);
  if (recording.kind === 'stored') return { terminal: recording.terminal, inserted: false };
  tables.append('terminal', recording.slot, sealed);
  if (recording.settles && !tables.settle(occurrence)) {
    invariant(
      findResolution(tables, occurrence) !== undefined,
      'a claim has its entry until it is settled',
    );
  }
  return { terminal: sealed.record, inserted: true };
}

function findPermit(tables: LedgerTables, occurrence: OccurrenceId): PermitState | undefined {
  return permitIn(tables.find(occurrence, PERMIT_SLOT));
}

function permitIn(row: OpenedRow | undefined): PermitState | undefined {
  if (row === undefined) return undefined;
  return row.kind === 'permit' ? { kind: 'consumed', permit: row.sealed } : { kind: 'void' };
}

/** The terminal of the attempt that holds the claim, or its settlement if there is one. */
export function findTerminal(tables: LedgerTables, occurrence: OccurrenceId): Terminal | undefined {
  const execution = findClaim(tables, occurrence)?.record.execution;
  if (execution === undefined) return undefined;
  const { first, settlement } = findKnown(tables, occurrence, execution);
  return settlement ?? first;
}

/**
 * Everything that a verdict about one attempt depends on. Stored terminals are checked against the
 * claim again.
 */
export function findKnown(
  tables: LedgerTables,
  occurrence: OccurrenceId,
  execution: ExecutionId,
): Known {
  const [first, settlement] = [terminalSlot(execution), settlementSlot(execution)];
  const rows = tables.findAll(occurrence, [CLAIM_SLOT, PERMIT_SLOT, first, settlement]);
  const held = rows.get(CLAIM_SLOT);
  const claim = held?.kind === 'claim' ? held.sealed : undefined;
  const permit = permitIn(rows.get(PERMIT_SLOT));
  const terminalIn = (slot: string): Terminal | undefined => {
    const row = rows.get(slot);
    if (row?.kind !== 'terminal') return undefined;
    const misfit = findMisfit(tables.context, { claim, permit }, row.sealed.record);
    if (misfit !== undefined)
      throw tampered(row.seq, `it breaks a rule that held when it was written: ${misfit}`);
    return row.sealed.record;
  };
  return { claim, permit, first: terminalIn(first), settlement: terminalIn(settlement) };
}

function appendShadow(tables: LedgerTables, sealed: Sealed<Shadow>): void {
  const unused = tables.count(sealed.record.occurrence) === 0;
  invariant(unused, 'a shadow shares its occurrence with nothing');
  tables.append('shadow', SHADOW_SLOT, sealed);
}

/** Consumes a permit, unless it was voided or consumed before or its attempt has ended. */
function consumePermit(
  tables: LedgerTables,
  sealed: Sealed<PermitRecord>,
): { readonly kind: 'consumed' | 'void' | 'spent' } {
  const { occurrence } = sealed.record;
  assertPermitFits(tables.context, findClaim(tables, occurrence), sealed.record);
  const state = findPermit(tables, occurrence);
  if (state?.kind === 'void') return { kind: 'void' };
  const isOver = state !== undefined || findTerminal(tables, occurrence) !== undefined;
  if (isOver) return { kind: 'spent' };
  tables.append('permit', PERMIT_SLOT, sealed);
  return { kind: 'consumed' };
}

/** Voids the permit if it was not consumed; otherwise returns the consumed one. */
function voidPermit(
  tables: LedgerTables,
  occurrence: OccurrenceId,
  execution: ExecutionId,
): PermitState {
  const known = findKnown(tables, occurrence, execution);
  assertVoidable(known, execution);
  if (known.permit !== undefined) return known.permit;
  const marker = tables.context.sealer.seal(markerRecord, {
    version: 1,
    disposition: 'void',
    occurrence,
    execution,
    voidedAt: instant(tables.now()),
  });
  tables.append('void', PERMIT_SLOT, marker as Sealed<typeof marker.record>);
  return { kind: 'void' };
}

/**
 * Records a release, completion or reopening. Returns false if it is recorded already, or if the
 * work has completed.
 */
function acknowledgeContinuation(tables: LedgerTables, sealed: Sealed<Acknowledgement>): boolean {
  const { occurrence, continuation } = sealed.record;
  checkRelease(tables, sealed.record);
  const slot = acknowledgementSlot(sealed.record);
  const completed = acknowledgementSlot({ state: 'completed', continuation });
  if ([slot, completed].some((taken) => tables.find(occurrence, taken) !== undefined)) return false;
  tables.append('acknowledgement', slot, sealed);
  return true;
}

/** Commits the release and the work's writes in one transaction, if the store supports that. */
function handingOver(
  store: TableStore,
  decideWith: NonNullable<TableStore['decideWith']>,
): NonNullable<Ledgers['handOver']> {
  return async (acknowledgement, work) => {
    const sealed = store.context.sealer.check(acknowledgementRecord, acknowledgement);
    const { occurrence } = sealed.record;
    const slot = acknowledgementSlot(sealed.record);
    return await decideWith(
      { occurrences: [occurrence] },
      work,
      (tables) => acknowledgeContinuation(tables, sealed),
      // The hand-over committed if the stored row carries the seal made above.
      (tables) => tables.find(occurrence, slot)?.sealed.seal.mac === sealed.seal.mac,
    );
  };
}

/** Throws unless the attempt is committed and the preceding acknowledgement is recorded. */
export function checkRelease(tables: LedgerTables, acknowledgement: Acknowledgement): void {
  const { occurrence } = acknowledgement;
  const claim = findClaim(tables, occurrence);
  const terminal = findTerminal(tables, occurrence);
  const slot = precedingSlot(acknowledgement);
  const isPreceded = slot !== undefined && tables.find(occurrence, slot) !== undefined;
  assertReleasable({ claim, terminal }, isPreceded, acknowledgement);
}

/**
 * Releases without a completion, oldest first. For work that was released again, only the last one.
 */
function listUncompleted(tables: LedgerTables): readonly Acknowledgement[] {
  const rows = tables.uncompleted().filter((row) => row.kind === 'acknowledgement');
  const last = new Map<string, Acknowledgement>();
  for (const { sealed } of rows) {
    const name = `${sealed.record.occurrence} ${sealed.record.continuation}`;
    last.delete(name);
    last.set(name, sealed.record);
  }
  return [...last.values()];
}

/** An operator's decision about an occurrence. */
export function findResolution(
  tables: LedgerTables,
  occurrence: OccurrenceId,
): Sealed<Resolution> | undefined {
  const row = tables.find(occurrence, RESOLUTION_SLOT);
  return row?.kind === 'resolution' ? row.sealed : undefined;
}

/** Records an operator's decision and removes the claim from the list of unsettled claims. */
function recordResolution(tables: LedgerTables, sealed: Sealed<Resolution>): Resolution {
  const { occurrence, execution } = sealed.record;
  const known = findKnown(tables, occurrence, execution);
  const stored = decideResolution(known, findResolution(tables, occurrence), sealed);
  if (stored !== undefined) {
    tables.touch();
    return stored;
  }
  tables.append('resolution', RESOLUTION_SLOT, sealed);
  invariant(tables.settle(occurrence), 'a claim has its entry until it is settled');
  return sealed.record;
}
