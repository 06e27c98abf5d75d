/**
 * A value of a parameter: text as the server reads it, a list of texts, or bytes in the type's
 * binary form.
 */
export type ParameterValue = string | readonly (string | null)[] | Uint8Array | null;

/**
 * One statement over the extended protocol: its text, its text and the name to prepare it under, or
 * the name under which it was prepared.
 */
export interface WireStatement {
  readonly text?: string;
  readonly prepared?: string;
  readonly values?: readonly ParameterValue[];
  /** Asks for the names and types of the columns that it returns. */
  readonly describe?: boolean;
  /** Fetches at most so many rows; all of them unless said otherwise. */
  readonly maxRows?: number;
}

/**
 * Statements as one message: parsed, bound and executed in order, and one Sync after the last. The
 * server leaves out everything between an error and the Sync.
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

/** Prepares statements under names, for as long as the session lives. */
export function writePreparation(named: Readonly<Record<string, string>>): Buffer {
  const frames = new Frames();
  for (const [name, text] of Object.entries(named)) writeParse(frames, name, text);
  return frames.sync();
}

/** Statements of the simple protocol. */
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

/** A list of texts in the binary form of `text[]`, in which nothing has to be escaped. */
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

  /** Writes how long the message has become where it begins. */
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
