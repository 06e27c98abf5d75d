import type { Json } from '../data/patch.ts';
import type { Packet, StateRecord } from '../data/state-bench.ts';

/** A record that a tool may change. */
export type Row = { [field: string]: Json };

/** The business state that a call works on: records by namespace and id. */
export type BusinessState = { [namespace: string]: { [id: string]: Row } };

export type Arguments = { readonly [name: string]: Json | undefined };
export type Answer = { readonly [name: string]: Json };

/** The data that all calls of a task share. It can be sent to another thread. */
export interface DeskData {
  readonly domain: string;
  /** The task's clock, such as `2026-06-12T10:00:00`. */
  readonly now: string;
  /** Catalogue records by kind: products, promotions, flights. */
  readonly reference: { readonly [kind: string]: readonly StateRecord[] };
  /** Policy texts, by the arguments of the call that asks for them. */
  readonly policies: { readonly [asked: string]: Answer };
  /** The ids of each namespace in the data's order. A store may use another order. */
  readonly order: { readonly [namespace: string]: readonly string[] };
}

/** Builds the data that the tools of a task need. */
export function deskFor(packet: Packet, policies: DeskData['policies']): DeskData {
  const { domain, now, reference, initial } = packet;
  const order = Object.entries(initial).map(([namespace, rows]) => [namespace, Object.keys(rows)]);
  return { domain, now, reference, policies, order: Object.fromEntries(order) };
}

/** What a tool works on: the business state, and what the tools of a task remember. */
export class Desk {
  readonly data: DeskData;
  state: BusinessState;
  /** Facts outside the business state, such as "this cancellation was previewed". */
  readonly notes = new Set<string>();
  /** Numbers outside the business state. */
  readonly numbers = new Map<string, number>();
  /** Texts outside the business state. */
  readonly texts = new Map<string, string>();

  constructor(data: DeskData, state: BusinessState) {
    this.data = data;
    this.state = state;
  }

  /** The records in the data's order, then the records that calls added. */
  rows(namespace: string): readonly Row[] {
    const rows = this.state[namespace] ?? {};
    const known = this.data.order[namespace] ?? [];
    const added = Object.keys(rows).filter((id) => !known.includes(id));
    return [...known, ...added.sort()].flatMap((id) => (rows[id] === undefined ? [] : [rows[id]]));
  }

  row(namespace: string, id: Json | undefined): Row | undefined {
    const rows = this.state[namespace] ?? {};
    return typeof id === 'string' && Object.hasOwn(rows, id) ? rows[id] : undefined;
  }

  add(namespace: string, id: string, row: Row): void {
    const rows = this.state[namespace];
    if (rows === undefined) throw new Error(`there is no namespace ${namespace}`);
    rows[id] = row;
  }

  remove(namespace: string, id: string): void {
    delete this.state[namespace]?.[id];
  }

  catalogue(kind: string): readonly StateRecord[] {
    return this.data.reference[kind] ?? [];
  }

  find(kind: string, field: string, value: Json | undefined): StateRecord | undefined {
    return this.catalogue(kind).find((record) => record[field] === value);
  }
}

/** One business tool. It refuses with an `error` in its answer, but may still change the state. */
export type StateTool = (desk: Desk, given: Arguments) => Answer;
export type StateTools = { readonly [name: string]: StateTool };

/** `prefix` and four digits: the number after the highest id in use or given out before. */
export function nextId(desk: Desk, namespace: string, prefix: string): string {
  const ids = Object.keys(desk.state[namespace] ?? {});
  const taken = ids.map((id) => Number(new RegExp(`^${prefix}(\\d+)$`).exec(id)?.[1] ?? 0));
  const last = Math.max(0, desk.numbers.get(namespace) ?? 0, ...taken);
  desk.numbers.set(namespace, last + 1);
  return `${prefix}${String(last + 1).padStart(4, '0')}`;
}

export function policyTool(desk: Desk, given: Arguments): Answer {
  desk.notes.add(`policy ${given.topic}`);
  const found = desk.data.policies[policyKey(given)];
  return found ?? { error: `There is no policy for ${given.topic}.` };
}

/** The key of a policy. It includes every argument, because some texts depend on cabin or route. */
export function policyKey(given: Arguments): string {
  const names = Object.keys(given).sort();
  return names.map((name) => `${name}=${given[name]}`).join('&');
}

export function number(value: Json | undefined): number {
  return typeof value === 'number' ? value : 0;
}

export function text(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

export function list(value: Json | undefined): readonly Json[] {
  return Array.isArray(value) ? value : [];
}

export function words(value: string): string[] {
  return value.toLowerCase().match(/[a-z0-9]+/g) ?? [];
}

/** A time without a zone in milliseconds. All times of a task are in one zone. */
export function timeOf(value: Json | undefined): number {
  const given = text(value);
  return Date.parse(`${given.length === 10 ? `${given}T00:00:00` : given}Z`);
}

export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;
