import { hash } from 'node:crypto';
import type { Assigned, Evidence } from '../../contract/adapter.ts';
import { valueText } from '../../protocol/bag.ts';
import type { ChangeRecord } from '../../protocol/effect.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { type CheckedAction, chosenBy, probeToken } from './action.ts';
import { countSpoilings } from './built-ins.ts';
import { type Current, digestState, PROBE_TABLE, type Version } from './control.ts';
import { diffViews } from './diff.ts';
import type { Layout } from './layout.ts';
import type { CallReport } from './tools.ts';
import type { View } from './view.ts';

/** The channels that must all answer, and agree, before an observation of this adapter counts as complete. */
export const CHANNELS = ['difference', 'isolation', 'state'] as const;

/** What an observation is made from. */
export interface Held {
  readonly candidate: string;
  readonly layout: Layout;
  readonly action: CheckedAction;
  readonly base: Current & { readonly view: () => View };
  /** The candidate's canonical text, and its digest when the last tool had ended. */
  readonly text: string;
  readonly digest: string;
  /** The candidate taken apart; the base's where nothing changed. */
  readonly view: () => View;
  readonly calls: readonly CallReport[];
  readonly window: Evidence['window'];
}

/** Reads the candidate against its base: records and channels. Nothing is concluded here. */
export function observeCandidate(held: Held, durable: Version): Evidence {
  const { layout, base } = held;
  // First of all: what it finds and puts back must not be in the way of what follows.
  const spoilings = countSpoilings();
  const digest = digestState(held.text);
  const before = base.view();
  const after = held.view();
  const changes = after === before ? [] : diffViews(layout, before, after);
  const records = [...changes, ...probeRecords(held.action)];
  return {
    candidate: held.candidate,
    evidence: fingerprint(held, { durable, digest, spoilings }),
    records,
    channels: [
      { channel: 'difference', kind: 'records', count: records.length },
      { channel: 'isolation', kind: 'stable', before: describeVersion(base), after: describeVersion(durable) },
      { channel: 'state', kind: 'stable', before: held.digest, after: digest },
    ],
    unattributed: 0,
    assigned: changes.length === 0 ? [] : assignedValues(layout, held.action, before, changes),
    window: held.window,
  };
}

function describeVersion({ version, digest }: Version): string {
  return `version ${version} ${digest}`;
}

/** Fingerprint of everything that an observation is made from, recovered tool errors included. */
export function fingerprintEvidence(held: Held, durable: Version): string {
  return fingerprint(held, { durable, digest: digestState(held.text), spoilings: countSpoilings() });
}

function fingerprint(
  { base, calls }: Held,
  now: { readonly durable: Version; readonly digest: string; readonly spoilings: number },
): string {
  const { durable, digest, spoilings } = now;
  const facts = { base: describeVersion(base), durable: describeVersion(durable), digest, calls, spoilings };
  return hash('sha256', JSON.stringify(facts), 'hex');
}

function probeRecords(action: CheckedAction): readonly ChangeRecord[] {
  const token = probeToken(action);
  return token === undefined ? [] : [{ op: 'insert', target: PROBE_TABLE, key: { token }, before: null, after: {} }];
}

/**
 * Values that are new in their field of their collection. One that the agent wrote into its calls is not among them:
 * it was chosen, however new it is. A counter's next numbers are, because small numbers also occur as arguments. Only a
 * record that was added or changed can hold a new one, so what was there before is looked through only for those.
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
    const written = changes.flatMap((change) => (change.target === target ? writtenIdentifiers(change, column) : []));
    if (written.length === 0) continue;
    const used = columnValues(before, target, column);
    const known = new Set(used.map(valueText));
    const added = written.filter((value) => !known.has(valueText(value)));
    if (added.length === 0) continue;
    isChosen ??= chosenBy(action);
    const wasChosen = isChosen;
    const highest = used.reduce<number>((top, value) => (typeof value === 'number' && value > top ? value : top), 0);
    const isNext = (value: Value) => typeof value === 'number' && value > highest && value <= highest + added.length;
    const fresh = added.filter((value) => isNext(value) || !wasChosen(String(value)));
    if (fresh.length > 0) assigned.push({ target, column, fresh });
  }
  return assigned;
}

/** Tools generate texts and numbers; nothing else names a record. */
function writtenIdentifiers({ op, key, after }: ChangeRecord, column: string): readonly (string | number)[] {
  const value = (op === 'insert' ? ownValue(key, column) : undefined) ?? ownValue(after, column);
  return typeof value === 'string' || typeof value === 'number' ? [value] : [];
}

function columnValues(view: View, target: string, column: string): Value[] {
  const records = [...(view.collections.get(target)?.records.values() ?? [])];
  const values = [
    ...records.map(({ key, fields }) => ownValue(key, column) ?? ownValue(fields, column)),
    ...(view.elements.get(target) ?? []).map((row) => ownValue(row, column)),
  ];
  return values.filter((value) => value !== undefined);
}

function ownValue(row: Row | null, column: string): Value | undefined {
  return row !== null && Object.hasOwn(row, column) ? row[column] : undefined;
}
