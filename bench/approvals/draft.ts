import type { Json } from '../data/patch.ts';
import type { Packet, Snapshot, StateRecord } from '../data/state-bench.ts';

type Fields = { [field: string]: Json };

/**
 * Builds an expected state from the initial one, record by record. Whatever a calculation does not
 * change is approved to keep its value.
 */
export class Expected {
  readonly #state: { [namespace: string]: { [id: string]: StateRecord } };

  constructor(initial: Snapshot) {
    this.#state = structuredClone(initial) as {
      [namespace: string]: { [id: string]: StateRecord };
    };
  }

  get state(): Snapshot {
    return this.#state;
  }

  /** Sets fields that the record already has. */
  change(namespace: string, id: string, fields: Fields): void {
    const record = this.record(namespace, id);
    const unknown = Object.keys(fields).find((field) => !Object.hasOwn(record, field));
    if (unknown !== undefined) throw new Error(`${namespace}/${id} has no field ${unknown}`);
    this.#namespace(namespace)[id] = { ...record, ...fields };
  }

  add(namespace: string, id: string, record: StateRecord): void {
    if (Object.hasOwn(this.#namespace(namespace), id)) throw new Error(`${namespace}/${id} exists`);
    this.#namespace(namespace)[id] = record;
  }

  remove(namespace: string, id: string): void {
    this.record(namespace, id);
    delete this.#namespace(namespace)[id];
  }

  record(namespace: string, id: string): StateRecord {
    const record = this.#namespace(namespace)[id];
    if (record === undefined) throw new Error(`there is no ${namespace}/${id}`);
    return record;
  }

  records(namespace: string): readonly (readonly [id: string, record: StateRecord])[] {
    return Object.entries(this.#namespace(namespace));
  }

  #namespace(name: string): { [id: string]: StateRecord } {
    const found = this.#state[name];
    if (found === undefined) throw new Error(`there is no namespace ${name}`);
    return found;
  }
}

/** Returns the only catalogue record whose field has this value. */
export function lookUp(packet: Packet, kind: string, field: string, value: Json): StateRecord {
  const found = (packet.reference[kind] ?? []).filter((record) => record[field] === value);
  const [record] = found;
  if (record === undefined || found.length > 1)
    throw new Error(`${found.length} ${kind} have ${field} ${value}`);
  return record;
}

/**
 * Throws unless the customer wrote these words: the specification would not apply, and the mistake
 * would be ours.
 */
export function demandSaid(packet: Packet, words: readonly string[]): void {
  const said = packet.messages.join('\n').toLowerCase();
  const unsaid = words.find((word) => !said.includes(word.toLowerCase()));
  if (unsaid !== undefined)
    throw new Error(`${packet.taskId}: the request does not ask for "${unsaid}"`);
}

export function textOf(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  throw new Error(`${JSON.stringify(value)} is no text`);
}

export function numberOf(value: Json | undefined): number {
  if (typeof value === 'number') return value;
  throw new Error(`${JSON.stringify(value)} is no number`);
}

/**
 * A time without a zone in milliseconds. All times of a task share one zone, so only differences
 * are meaningful.
 */
export function instantOf(time: string): number {
  return Date.parse(`${time}Z`);
}
