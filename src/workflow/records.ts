import type { Ledgers } from '../contract/ledgers.ts';
import { digestText } from '../crypto/digest.ts';
import { EffectMatchError } from '../errors.ts';
import { canonical } from '../protocol/canon.ts';
import type { Proposal, SignedLicense } from '../protocol/license.ts';
import type { Digest } from '../protocol/record.ts';
import type { Value } from '../protocol/value.ts';
import type { Refusal } from '../runtime/attempt.ts';
import { isWorkflowName } from './definition.ts';

/** One node of a plan as recorded, so that a run can be read without the code of its plan. */
export interface PlanNode {
  readonly name: string;
  /** The nodes that must be done first. */
  readonly before: readonly string[];
  /** The operation that it executes. `of` is the node that releases it. */
  readonly operation: string | null;
  readonly of: string | null;
  /** How many items it has; null if it runs once. */
  readonly items: number | null;
  readonly propose: 'start' | 'ready';
  /** Whether its work is handed over to a queue. */
  readonly isQueued: boolean;
}

/** One revision of a run, as the ledger stores it. It is written once and never changed. */
export interface RunRecord {
  readonly version: 1;
  readonly workflow: string;
  readonly run: string;
  readonly revision: number;
  /** Digest of the plan and its functions. */
  readonly plan: Digest;
  /** In an order in which they can run. */
  readonly nodes: readonly PlanNode[];
  readonly onFailure: 'finish-branches' | 'stop';
  readonly approval: 'all' | 'each';
  readonly input: Value;
  readonly startedAt: string;
}

/** The proposal for one instance: its operation's input, and what an approver signs. */
export interface ProposedNode {
  readonly input: unknown;
  readonly proposal: Proposal;
}

/** Records that nothing more of a run may start. */
interface Cancellation {
  readonly by: string;
  readonly reason: string;
  readonly at: string;
}

/** A run, one of its revisions, or one instance in a revision, and so in one plan. */
interface Place extends Pick<RunRecord, 'run'>, Partial<Pick<RunRecord, 'revision' | 'plan'>> {
  /** The node's name, with the item's number if the node has items. */
  readonly instance?: string;
}

/** What is stored about a run, by kind. */
interface Kept {
  readonly run: RunRecord;
  readonly proposal: ProposedNode;
  readonly license: SignedLicense;
  /** Why an instance cannot run. It has no attempt that could say so. */
  readonly refusal: Refusal;
  readonly cancel: Cancellation;
  /** Nothing more happens in this revision, so that later starts skip it. */
  readonly over: { readonly over: true };
  /** The preflight of a revision found something: nothing of it may start. */
  readonly stop: { readonly why: string };
}

const REVISION = ['run', 'revision'] as const;
const INSTANCE = ['run', 'revision', 'plan', 'instance'] as const;

/** The parts of a place that identify each kind of stored record. */
const PARTS: Readonly<Record<keyof Kept, readonly (keyof Place)[]>> = {
  run: REVISION,
  proposal: INSTANCE,
  license: INSTANCE,
  refusal: INSTANCE,
  cancel: ['run'],
  over: REVISION,
  stop: REVISION,
};

/**
 * What a run stores in the ledger besides verdicts: its revisions, proposals and licenses. Each
 * text has a name made from its place, and the first text under a name counts, so any number of
 * processes may write. The ledger seals and verifies them like its other documents.
 */
export class RunRecords {
  readonly #ledgers: Ledgers;
  /** Places in the list whose runs are over. A later revision takes a new place. */
  readonly #over = new Set<number>();
  /** Every place before this one is taken. */
  #free = 1;

  constructor(ledgers: Ledgers) {
    this.#ledgers = ledgers;
  }

  /** Stores content at a place unless something is there. Returns what is there. */
  keep<Kind extends keyof Kept>(
    kind: Kind,
    place: Place,
    content: Kept[Kind],
  ): Promise<Kept[Kind]> {
    return this.#keep(placeName(kind, place), content);
  }

  /** What is stored at a place. */
  read<Kind extends keyof Kept>(kind: Kind, place: Place): Promise<Kept[Kind] | undefined> {
    return this.#read(placeName(kind, place));
  }

  /** Stores the record unless the run already has this revision. Returns the stored one. */
  async begin(record: RunRecord): Promise<RunRecord> {
    const kept = await this.keep('run', record, record);
    await this.#list(kept);
    return kept;
  }

  /** The newest revision; undefined for a run that was never started. */
  async newest(run: string): Promise<RunRecord | undefined> {
    let newest: RunRecord | undefined;
    for (let revision = 1; ; revision += 1) {
      const found = await this.read('run', { run, revision });
      if (found === undefined) return newest;
      newest = found;
    }
  }

  /** The newest revision of a run that must exist. */
  async find(run: string): Promise<RunRecord> {
    const record = isWorkflowName(run) ? await this.newest(run) : undefined;
    if (record !== undefined) return record;
    const message = `run ${JSON.stringify(run)?.slice(0, 80)} was never started`;
    throw new EffectMatchError('ERR_EM_NOT_FOUND', message);
  }

  /** Every run ever started, in order. */
  async list(): Promise<readonly string[]> {
    const places = Array.from({ length: (await this.#firstFree()) - 1 }, (_, at) => at + 1);
    const found = await Promise.all(places.map((at) => this.#listed(at)));
    return [...new Set(found.flatMap((one) => (one === undefined ? [] : [one.run])))];
  }

  /**
   * The newest revision of every run that is not over. Runs that are over are remembered, so
   * repeated calls only read the open ones.
   */
  async open(): Promise<readonly RunRecord[]> {
    const found = new Map<string, RunRecord>();
    const free = await this.#firstFree();
    for (let at = 1; at < free; at += 1) {
      if (this.#over.has(at)) continue;
      const listed = await this.#listed(at);
      const record = listed && (found.get(listed.run) ?? (await this.newest(listed.run)));
      if (record === undefined) continue;
      if ((await this.read('over', record)) !== undefined) this.#over.add(at);
      else found.set(record.run, record);
    }
    return [...found.values()];
  }

  #listed(at: number): Promise<{ readonly run: string } | undefined> {
    return this.#read(nameOf('list', String(at)));
  }

  /** Places are taken without gaps, so a binary search finds the first free one. */
  async #firstFree(): Promise<number> {
    let taken = this.#free - 1;
    let step = 1;
    for (; (await this.#listed(taken + step)) !== undefined; step *= 2) taken += step;
    let free = taken + step;
    while (free - taken > 1) {
      const middle = Math.floor((taken + free) / 2);
      if ((await this.#listed(middle)) === undefined) free = middle;
      else taken = middle;
    }
    this.#free = free;
    return free;
  }

  async #list({ run, revision }: RunRecord): Promise<void> {
    const listed = nameOf('listed', run, ...(revision === 1 ? [] : [String(revision)]));
    if ((await this.#read(listed)) !== undefined) return;
    let at = await this.#firstFree();
    while ((await this.#keep(nameOf('list', String(at)), { run })).run !== run) at += 1;
    await this.#keep(listed, { at });
  }

  async #keep<T extends object>(name: Digest, content: T): Promise<T> {
    const text = canonical(content as Value);
    const kept = await this.#ledgers.keepFirst(name, text);
    return kept === text ? content : (JSON.parse(kept) as T);
  }

  async #read<T>(name: Digest): Promise<T | undefined> {
    const text = await this.#ledgers.document(name);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }
}

function placeName(kind: keyof Kept, place: Place): Digest {
  return nameOf(kind, ...PARTS[kind].map((part) => String(place[part])));
}

function nameOf(...parts: readonly string[]): Digest {
  return digestText('effectmatch/workflow-run/v1', parts.join('\n'));
}

/**
 * The task that an instance's license is signed for: the workflow, run, plan, revision and node. A
 * license for any other task does not fit.
 */
export function taskOf({ workflow, run, revision, plan }: RunRecord, instance: string): string {
  return [workflow, run, `r${revision}-${plan.slice(0, 16)}`, instance].join('/');
}
