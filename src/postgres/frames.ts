/**
 * A parameter value: text in the type's text format, a list of texts, or bytes in the type's binary
 * format.
 */
export type ParameterValue = string | readonly (string | null)[] | Uint8Array | null;

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
    for (const value of values) frames.count(value instanceof Uint8Array ? 1 : 0);
    frames.count(values.length);
    for (const value of values)
      frames.value(Array.isArray(value) ? writeList(value) : (value as Item));
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

type Item = Exclude<ParameterValue, readonly (string | null)[]>;

function writeList(texts: readonly (string | null)[]): string {
  const items = texts.map((text) =>
    text === null ? 'NULL' : `"${text.replace(/["\\]/g, '\\$&')}"`,
  );
  return `{${items.join(',')}}`;
}

const TEXT_TYPE = 25;

/** A list of texts in the binary format of `text[]`, which needs no escaping. */
export function writeTexts(texts: readonly (string | null)[]): Buffer {
  const frames = new Frames();
  const hasNull = texts.includes(null) ? 1 : 0;
  for (const number of [1, hasNull, TEXT_TYPE, texts.length, 1]) frames.number(number);
  for (const text of texts) frames.value(text);
  return frames.end();
}

/** Client messages, back to back in one buffer. */
class Frames {
  #bytes = Buffer.allocUnsafe(4096);
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
    this.#bytes.writeInt32BE(this.#end - this.#start, this.#start);
  }

  text(text: string): void {
    this.#reserve(Buffer.byteLength(text) + 1);
    this.#end += this.#bytes.write(text, this.#end);
    this.#bytes[this.#end] = 0;
    this.#end += 1;
  }

  count(count: number): void {
    this.#reserve(2);
    this.#end = this.#bytes.writeUInt16BE(count, this.#end);
  }

  number(number: number): void {
    this.#reserve(4);
    this.#end = this.#bytes.writeInt32BE(number, this.#end);
  }

  value(value: Item): void {
    const length =
      value === null ? -1 : typeof value === 'string' ? Buffer.byteLength(value) : value.length;
    this.number(length);
    if (value === null) return;
    this.#reserve(length);
    if (typeof value === 'string') this.#bytes.write(value, this.#end);
    else this.#bytes.set(value, this.#end);
    this.#end += length;
  }

  sync(): Buffer {
    this.open('S');
    this.close();
    return this.end();
  }

  end(): Buffer {
    return this.#bytes.subarray(0, this.#end);
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#end + length));
    this.#bytes.copy(larger, 0, 0, this.#end);
    this.#bytes = larger;
  }
}
