import { hash } from 'node:crypto';
import type { Assigned, Evidence } from '../../contract/adapter.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { type CheckedAction, chosenBy, probeToken } from './action.ts';
import { type Current, digestState, PROBE_TABLE, type Version } from './control.ts';
import { diffViews } from './diff.ts';
import type { Document } from './document.ts';
import type { Layout } from './layout.ts';
import type { CallReport } from './tools.ts';
import type { View } from './view.ts';

/**
 * The channels that must all answer, and agree, before an observation of this adapter counts as
 * complete.
 */
export const CHANNELS = ['difference', 'isolation', 'state'] as const;

/** What an observation is made from. */
export interface Held {
  readonly candidate: string;
  readonly layout: Layout;
  readonly action: CheckedAction;
  readonly base: Current & { readonly view: () => View };
  /** The candidate, and the digest of its text when the last tool had ended. */
  readonly document: Document;
  readonly digest: string;
  /** The candidate taken apart; the base's where nothing changed. */
  readonly view: () => View;
  readonly calls: readonly CallReport[];
  /**
   * What a fingerprint is of and no longer changes, as text: the base, the digest, and how every
   * call ended.
   */
  readonly settled: string;
  readonly window: Evidence['window'];
}

/** Reads the candidate against its base: records and channels. Nothing is concluded here. */
export function observeCandidate(held: Held, durable: Version): Evidence {
  const { layout, base } = held;
  const digest = digestState(held.document.text);
  const before = base.view();
  const after = held.view();
  const changes = after === before ? [] : diffViews(layout, before, after);
  const records = [...changes, ...probeRecords(held.action)];
  return {
    candidate: held.candidate,
    evidence: fingerprintEvidence(held, durable),
    records,
    channels: [
      { channel: 'difference', kind: 'records', count: records.length },
      {
        channel: 'isolation',
        kind: 'stable',
        before: `version ${base.version}`,
        after: describeDurable(base, durable),
      },
      {
        channel: 'state',
        kind: 'stable',
        before: 'as the tools left it',
        after: describeHeld(held.digest, digest),
      },
    ],
    unattributed: 0,
    assigned: changes.length === 0 ? [] : assignedValues(layout, held.action, before, changes),
    window: held.window,
  };
}

/**
 * Without digests: what channels say may be stored, and a state of few possible values is found by
 * trying them.
 */
function describeDurable(base: Version, { version, digest }: Version): string {
  return `version ${version}${version === base.version && digest !== base.digest ? ' with other content' : ''}`;
}

function describeHeld(then: string, now: string): string {
  return now === then ? 'as the tools left it' : 'changed since';
}

function describeVersion({ version, digest }: Version): string {
  return `version ${version} ${digest}`;
}

/** Fingerprint of everything that an observation is made from, recovered tool errors included. */
export function fingerprintEvidence({ settled }: Held, durable: Version): string {
  return hash('sha256', `${settled}\n${describeVersion(durable)}`, 'hex');
}

/**
 * The part of a fingerprint that is known when the last tool has ended; no state can change as
 * text.
 */
export function settleFacts(base: Version, digest: string, calls: readonly CallReport[]): string {
  return JSON.stringify([describeVersion(base), digest, calls]);
}

function probeRecords(action: CheckedAction): readonly ChangeRecord[] {
  const token = probeToken(action);
  return token === undefined
    ? []
    : [{ op: 'insert', target: PROBE_TABLE, key: { token }, before: null, after: {} }];
}

/**
 * Values that are new in their field of their collection. One that the agent wrote into its calls
 * is not among them: it was chosen, however new it is. A counter's next numbers are, because small
 * numbers also occur as arguments. Only a record that was added or changed can hold a new one, so
 * what was there before is looked through only for those.
 */
export function assignedValues(
  { generated }: Layout,
  action: CheckedAction,
  before: View,
  changes: readonly ChangeRecord[],
): readonly Assigned[] {
  let isChosen: ((text: string) => boolean) | undefined;
  const assigned: Assigned[] = [];
  for (const { target, column } of generated) {
    const written: (string | number)[] = [];
    for (const change of changes) {
      const value = change.target === target ? writtenValue(change, column) : undefined;
      // Tools generate texts and numbers; nothing else names a record.
      if (typeof value === 'string' || typeof value === 'number') written.push(value);
    }
    if (written.length === 0) continue;
    const used = columnValues(before, target, column);
    const known = new Set(used);
    const added = written.filter((value) => !known.has(value));
    if (added.length === 0) continue;
    isChosen ??= chosenBy(action);
    const wasChosen = isChosen;
    let highest = 0;
    for (const value of used) if (typeof value === 'number' && value > highest) highest = value;
    const isNext = (value: Value) =>
      typeof value === 'number' && value > highest && value <= highest + added.length;
    const fresh = added.filter((value) => isNext(value) || !wasChosen(String(value)));
    if (fresh.length > 0) assigned.push({ target, column, fresh });
  }
  return assigned;
}

/** An update says nothing new about its key. */
function writtenValue({ op, key, after }: ChangeRecord, column: string): Value | undefined {
  return (op === 'insert' ? ownValue(key, column) : undefined) ?? ownValue(after, column);
}

function columnValues(view: View, target: string, column: string): (Value | undefined)[] {
  const values: (Value | undefined)[] = [];
  for (const { key, fields } of view.collections.get(target)?.records.values() ?? []) {
    values.push(ownValue(key, column) ?? ownValue(fields, column));
  }
  for (const row of view.elements.get(target) ?? []) values.push(ownValue(row, column));
  return values;
}

function ownValue(row: Row | null, column: string): Value | undefined {
  return row !== null && Object.hasOwn(row, column) ? row[column] : undefined;
}
