/**
 * A parameter value: text in the type's text format, a list of texts, or bytes or a list of texts in
 * the type's binary format.
 */
export type ParameterValue = string | readonly (string | null)[] | Uint8Array | TextList | null;

/** A list of texts for the binary format of `text[]`, which needs no escaping. */
export class TextList {
  readonly texts: readonly (string | null)[];

  constructor(texts: readonly (string | null)[]) {
    this.texts = texts;
  }
}

/**
 * One statement over the extended protocol: text to run, text to prepare under a name and run, or
 * the name of a prepared statement.
 */
export interface WireStatement {
  readonly text?: string;
  readonly prepared?: string;
  readonly values?: readonly ParameterValue[];
  /** Asks for the names and types of the returned columns. */
  readonly describe?: boolean;
  /** Fetches at most this many rows. All rows by default. */
  readonly maxRows?: number;
}

/**
 * Writes statements as one message: each is parsed, bound and executed in order, with one Sync at
 * the end. After an error the server skips everything up to the Sync.
 */
export function writeStatements(statements: readonly WireStatement[]): Buffer {
  const frames = new Frames();
  for (const statement of statements) {
    const { text, prepared = '', values = [] } = statement;
    if (text !== undefined) writeParse(frames, prepared, text);
    frames.open('B');
    frames.text('');
    frames.text(prepared);
    frames.count(values.length);
    for (const value of values)
      frames.count(value instanceof Uint8Array || value instanceof TextList ? 1 : 0);
    frames.count(values.length);
    for (const value of values) writeValue(frames, value);
    frames.count(0);
    frames.close();
    if (statement.describe === true) {
      frames.open('D');
      frames.text('P');
      frames.close();
    }
    frames.open('E');
    frames.text('');
    frames.number(statement.maxRows ?? 0);
    frames.close();
  }
  return frames.sync();
}

/** Writes a message that prepares statements under names for the rest of the session. */
export function writePreparation(named: Readonly<Record<string, string>>): Buffer {
  const frames = new Frames();
  for (const [name, text] of Object.entries(named)) writeParse(frames, name, text);
  return frames.sync();
}

/** Writes statements as one message of the simple protocol. */
export function writeScript(text: string): Buffer {
  const frames = new Frames();
  frames.open('Q');
  frames.text(text);
  frames.close();
  return frames.end();
}

function writeParse(frames: Frames, name: string, text: string): void {
  frames.open('P');
  frames.text(name);
  frames.text(text);
  frames.count(0);
  frames.close();
}

type Item = string | Uint8Array | null;

function writeValue(frames: Frames, value: ParameterValue): void {
  if (value instanceof TextList) frames.list(value);
  else frames.value(Array.isArray(value) ? writeList(value) : (value as Item));
}

function writeList(texts: readonly (string | null)[]): string {
  const items = texts.map((text) =>
    text === null ? 'NULL' : `"${text.replace(/["\\]/g, '\\$&')}"`,
  );
  return `{${items.join(',')}}`;
}

const TEXT_TYPE = 25;

/**
 * The bytes that messages are written into before they are copied out. A new buffer for each
 * message costs more than writing it. Messages are written one at a time, without waiting.
 */
let shared = Buffer.allocUnsafeSlow(64 * 1024);
/** A larger buffer is not kept, because messages of that size are rare. */
const KEPT_BYTES_MAX = 1024 * 1024;
const SHORT = 16 * 1024;
/** Doubling a message that holds one very long text would take twice its memory. */
const ROOM_BYTES_MAX = 4 * 1024 * 1024;

/** Client messages, back to back in one buffer. */
class Frames {
  #bytes = shared;
  #end = 0;
  #start = 0;

  open(code: string): void {
    this.#reserve(5);
    this.#bytes[this.#end] = code.charCodeAt(0);
    this.#start = this.#end + 1;
    this.#end += 5;
  }

  /** Fills in the length at the start of the message. */
  close(): void {
    this.#putNumber(this.#end - this.#start, this.#start);
  }

  text(text: string): void {
    this.#put(text);
    this.#reserve(1);
    this.#bytes[this.#end] = 0;
    this.#end += 1;
  }

  count(count: number): void {
    this.#reserve(2);
    this.#bytes[this.#end] = count >> 8;
    this.#bytes[this.#end + 1] = count;
    this.#end += 2;
  }

  number(number: number): void {
    this.#reserve(4);
    this.#putNumber(number, this.#end);
    this.#end += 4;
  }

  value(value: Item): void {
    if (value === null) {
      this.number(-1);
      return;
    }
    const start = this.#end;
    this.number(0);
    if (typeof value === 'string') this.#put(value);
    else {
      this.#reserve(value.length);
      this.#bytes.set(value, this.#end);
      this.#end += value.length;
    }
    this.#putNumber(this.#end - start - 4, start);
  }

  /** Written straight into the message: one of the texts may be very long. */
  list({ texts }: TextList): void {
    const start = this.#end;
    const hasNull = texts.includes(null) ? 1 : 0;
    for (const number of [0, 1, hasNull, TEXT_TYPE, texts.length, 1]) this.number(number);
    for (const text of texts) this.value(text);
    this.#putNumber(this.#end - start - 4, start);
  }

  sync(): Buffer {
    this.open('S');
    this.close();
    return this.end();
  }

  /** The bytes written: a copy if the next message is written over them. */
  end(): Buffer {
    const written = this.#bytes.subarray(0, this.#end);
    if (this.#bytes.length > KEPT_BYTES_MAX) return written;
    shared = this.#bytes;
    return Buffer.from(written);
  }

  #put(text: string): void {
    // A code unit takes three bytes at most. Counting the bytes of a short text takes longer.
    this.#reserve(text.length < SHORT ? text.length * 3 : Buffer.byteLength(text));
    this.#end += this.#bytes.write(text, this.#end);
  }

  #putNumber(number: number, at: number): void {
    this.#bytes[at] = number >> 24;
    this.#bytes[at + 1] = number >> 16;
    this.#bytes[at + 2] = number >> 8;
    this.#bytes[at + 3] = number;
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#bytes.length) return;
    const room = Math.min(this.#bytes.length, ROOM_BYTES_MAX);
    const larger = Buffer.allocUnsafeSlow(this.#end + length + room);
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }
}
