import { hash } from 'node:crypto';
import type { Applied, Candidate, CandidateEvidence } from '../../backend/candidate.ts';
import type { Assigned, CallAnswer, Promotion } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import { randomIds } from '../../crypto/random-ids.ts';
import type { ChangeRecord, StateRead, StateReading } from '../../protocol/effect.ts';
import type { CheckedCall, CheckedSnapshotAction } from './action.ts';
import { digestState, PROBE_TABLE, type StagedBase, type StateVersion } from './control.ts';
import { diffViews } from './diff.ts';
import type { Document } from './document.ts';
import { assignedValues, type FreshValues, joinAssigned } from './evidence.ts';
import type { DocumentLayout } from './layout.ts';
import { type PromotionSite, promoteState } from './promotion.ts';
import { readState } from './reading.ts';
import type { CallReport, ToolRunner } from './tools.ts';
import type { DocumentView } from './view.ts';

/** What reports on a candidate. All must agree. */
export const CHANNELS = ['difference', 'isolation', 'state'] as const;

/** What a candidate needs to be held and promoted. */
export interface CandidateSite extends PromotionSite {
  readonly layout: DocumentLayout;
  readonly runner: ToolRunner;
  /** Reads the current durable version. */
  readonly durable: () => Promise<StateVersion>;
  /** The parts of a document that are compared, kept as long as the document. */
  readonly viewOf: (document: Document) => DocumentView;
  /** Called with the document after it is promoted. */
  readonly onPromoted: (document: Document) => void;
}

/**
 * A private copy of the durable state with the changes of the calls, held in memory as text.
 * Nothing is locked: the promotion requires that the base version and the file are unchanged.
 */
export class SnapshotCandidate implements Candidate<CheckedSnapshotAction> {
  readonly id: string;
  readonly #site: CandidateSite;
  readonly #base: StagedBase;
  /** The document that the calls started from. */
  readonly #initial: Document;
  readonly #calls: CheckedCall[] = [];
  readonly #reports: CallReport[] = [];
  #made: Document;
  #digest: string;
  #token: string | undefined;
  /** The values that calls of a task have assigned so far; undefined if none changed the state. */
  #assigned: readonly FreshValues[] | undefined;

  constructor(site: CandidateSite, base: StagedBase, initial: Document) {
    this.id = `snapshot:${site.backend}:${base.version}:${randomIds.hex(16)}`;
    this.#site = site;
    this.#base = base;
    this.#initial = initial;
    this.#made = initial;
    this.#digest = base.digest;
  }

  async apply({ calls, token }: CheckedSnapshotAction): Promise<Applied> {
    const ran = await this.#site.runner.run(this.#made, calls);
    if (ran.kind === 'failed') return ran;
    if (ran.made !== this.#made) this.#digest = digestState(ran.made.text);
    this.#made = ran.made;
    this.#token = token;
    this.#calls.push(...calls);
    this.#reports.push(...ran.calls);
    return { kind: 'done' };
  }

  /**
   * Runs one call of a task. Once a tool assigns an identifier, the agent knows it and may name it
   * in later calls. An identifier therefore counts as chosen only if the agent wrote it before.
   */
  async call({ calls }: CheckedSnapshotAction): Promise<CallAnswer> {
    this.#calls.push(...calls);
    const before = this.#made;
    const ran = await this.#site.runner.run(before, calls, { wantsReturned: true });
    if (ran.kind === 'failed') return ran;
    this.#reports.push(...ran.calls.map(({ returned: _, ...report }) => report));
    if (ran.made !== before) {
      this.#made = ran.made;
      this.#digest = digestState(ran.made.text);
      this.#noteAssigned(before);
    }
    return { kind: 'done', returned: ran.calls.map(({ returned = null }) => returned) };
  }

  #noteAssigned(before: Document): void {
    const { layout, viewOf } = this.#site;
    const earlier = viewOf(before);
    const changes = diffViews(layout, earlier, viewOf(this.#made));
    const known = [viewOf(this.#initial), earlier];
    const assigned = assignedValues(layout, this.#calls, known, changes);
    this.#assigned = joinAssigned([this.#assigned ?? [], assigned]);
  }

  /** Reads the version that the calls started from. The promotion is refused if it has changed. */
  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    return readState(this.#site.layout, this.#initial.state, reads);
  }

  async observe(): Promise<CandidateEvidence> {
    const base = this.#base;
    const durable = await this.#site.durable();
    const { changes, assigned } = this.#compare();
    const records = [...changes, ...this.#probeRecords()];
    const isHeld = digestState(this.#made.text) === this.#digest;
    const held = 'as the tools left it';
    return {
      evidence: this.#fingerprint(durable),
      records,
      channels: [
        { channel: 'difference', kind: 'records', count: records.length },
        {
          channel: 'isolation',
          kind: 'stable',
          before: `version ${base.version}`,
          after: describeDurable(base, durable),
        },
        { channel: 'state', kind: 'stable', before: held, after: isHeld ? held : 'changed since' },
      ],
      unattributed: 0,
      assigned,
    };
  }

  async recheck(): Promise<string> {
    return this.#fingerprint(await this.#site.durable());
  }

  async commit(marker: MarkerText): Promise<Promotion> {
    const { text } = this.#made;
    const next = { version: this.#base.version + 1, digest: this.#digest, text };
    const request = { marker, base: this.#base, next, token: this.#token };
    const promotion = await promoteState(request, this.#site);
    if (promotion.kind === 'confirmed') this.#site.onPromoted(this.#made);
    return promotion;
  }

  /** There is nothing to release: the candidate holds only memory. */
  async end(): Promise<void> {}

  #compare(): {
    readonly changes: readonly ChangeRecord[];
    readonly assigned: readonly Assigned[];
  } {
    if (this.#made === this.#initial) return { changes: [], assigned: [] };
    const { layout, viewOf } = this.#site;
    const before = viewOf(this.#initial);
    const changes = diffViews(layout, before, viewOf(this.#made));
    const assigned = this.#assigned ?? assignedValues(layout, this.#calls, [before], changes);
    return { changes, assigned };
  }

  #probeRecords(): readonly ChangeRecord[] {
    if (this.#token === undefined) return [];
    const key = { token: this.#token };
    return [{ op: 'insert', target: PROBE_TABLE, key, before: null, after: {} }];
  }

  /**
   * Covers everything that an observation is made from, including tool errors that were allowed.
   */
  #fingerprint(durable: StateVersion): string {
    const { version, digest } = this.#base;
    const facts = [version, digest, this.#digest, this.#reports, durable.version, durable.digest];
    return hash('sha256', JSON.stringify(facts), 'hex');
  }
}

/**
 * Leaves out digests: channels may be stored, and a digest of few possible states can be guessed.
 */
function describeDurable(base: StateVersion, { version, digest }: StateVersion): string {
  const isOther = version === base.version && digest !== base.digest;
  return `version ${version}${isOther ? ' with other content' : ''}`;
}
