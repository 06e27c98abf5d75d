import type { Connection } from '../../postgres/connection.ts';
import { type QualifiedName, sqlName } from '../../postgres/identifier.ts';
import { TRUSTED_EXTENSIONS } from './certify/builtins.ts';
import { queryPinned } from './formats.ts';
import { SQL } from './sql.ts';

/** Object ids below this belong to the server. */
const USER = 16384;

/** A type that is not built in, as the catalogue has it. */
interface FoundType extends QualifiedName {
  readonly oid: number;
  /** pg_type.typtype: b base, c composite, d domain, e enum, r range, m multirange. */
  readonly kind: string;
  /** Of a domain: the type beneath it, with its modifiers as SQL writes them. */
  readonly base: { readonly oid: number; readonly text: string } | null;
  /** Of an array type: the type of its elements, as SQL writes it. */
  readonly element: { readonly oid: number; readonly text: string } | null;
  /** Application types that reading a value involves. */
  readonly parts: readonly number[];
  /** The type's own code that runs when a value is read, in words. */
  readonly code: string | null;
}

/** How to read a text as a value of a type without running application code. */
export type TypeReading =
  /** With the input function of this type, which may be the one beneath a domain. */
  | { readonly kind: 'built-in'; readonly text: string }
  | { readonly kind: 'code'; readonly why: string };

/** The types of some columns, and the code that reading their values would run. */
export class TypeGraph {
  readonly #types: ReadonlyMap<number, FoundType>;

  constructor(types: readonly FoundType[]) {
    this.#types = new Map(types.map((type) => [type.oid, type]));
  }

  /**
   * A domain whose checks are not built in is read as the type beneath it. The server enforces the
   * checks when the row is written, in a certified stage. The same applies inside arrays. Other
   * types have no such alternative.
   */
  readingOf(oid: number, text: string): TypeReading {
    const why = this.codeBehind(oid);
    if (why === undefined) return { kind: 'built-in', text };
    const { base, element } = this.#types.get(oid) ?? {};
    if (base) return this.readingOf(base.oid, base.text);
    if (!element) return { kind: 'code', why };
    const inner = this.readingOf(element.oid, element.text);
    return inner.kind === 'code' ? inner : { kind: 'built-in', text: `${inner.text}[]` };
  }

  /** The application code that reading a value of this type runs; undefined if there is none. */
  codeBehind(oid: number, seen: Set<number> = new Set()): string | undefined {
    const type = this.#types.get(oid);
    if (oid < USER || seen.has(oid)) return undefined;
    seen.add(oid);
    if (type === undefined) return `type ${oid} was not found`;
    if (type.code !== null) return `${KINDS[type.kind] ?? 'type'} ${sqlName(type)} ${type.code}`;
    for (const part of type.parts) {
      const why = this.codeBehind(part, seen);
      if (why !== undefined) return why;
    }
    return undefined;
  }
}

const KINDS: Readonly<Record<string, string>> = {
  d: 'domain',
  c: 'composite type',
  r: 'range',
  m: 'multirange',
};

/** Extensions whose code only computes values, or that the deployment vouches for. */
export function vouchedExtensions(trustedCode: readonly string[]): readonly string[] {
  return [...TRUSTED_EXTENSIONS, ...trustedCode];
}

/** Reads these types and everything they are made of. Built-in types need not be read. */
export async function readTypes(
  connection: Connection,
  oids: readonly number[],
  vouched: readonly string[],
): Promise<TypeGraph> {
  const unknown = [...new Set(oids)].filter((oid) => oid >= USER);
  if (unknown.length === 0) return new TypeGraph([]);
  const { rows } = await queryPinned(connection, SQL.registered.get('types'), [
    unknown.map(String),
    vouched,
  ]);
  return new TypeGraph(JSON.parse(rows[0]?.[0] ?? '[]') as FoundType[]);
}
