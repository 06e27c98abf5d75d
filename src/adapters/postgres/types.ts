import type { Connection } from '../../postgres/connection.ts';
import { type QualifiedName, sqlName } from '../../postgres/identifier.ts';
import { TRUSTED_EXTENSIONS } from './certify/builtins.ts';
import { queryPinned } from './formats.ts';
import { SQL } from './sql.ts';

/** Object ids below are the server's own. */
const USER = 16384;

/** A type that the server did not come with, as the catalogue has it. */
interface FoundType extends QualifiedName {
  readonly oid: number;
  /** pg_type.typtype: b base, c composite, d domain, e enum, r range, m multirange. */
  readonly kind: string;
  /** Of a domain: the type beneath it, with its modifiers as SQL writes them. */
  readonly base: { readonly oid: number; readonly text: string } | null;
  /** Of an array type: the type of its elements, as SQL writes it. */
  readonly element: { readonly oid: number; readonly text: string } | null;
  /** Types of the application that reading a value goes through. */
  readonly parts: readonly number[];
  /** Which code of the type itself runs when a value is read. */
  readonly code: string | null;
}

/** How a text can be read as a value of a type without running code of the application. */
export type TypeReading =
  /** With the input function of this type, which may be the one beneath a domain. */
  | { readonly kind: 'built-in'; readonly text: string }
  | { readonly kind: 'code'; readonly why: string };

/** The types of some columns, and what reading a value of them would run. */
export class TypeGraph {
  readonly #types: ReadonlyMap<number, FoundType>;

  constructor(types: readonly FoundType[]) {
    this.#types = new Map(types.map((type) => [type.oid, type]));
  }

  /**
   * Domains are read as the type beneath them where their checks are not built in: the server
   * enforces a check when the row is written, in a stage that was certified. The same inside
   * arrays. Other types have no such form.
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

  /**
   * The code of the application that reading a value of this type runs; undefined where there is
   * none.
   */
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

/** Extensions whose code computes values only, or that the deployment vouches for. */
export function vouchedExtensions(trustedCode: readonly string[]): readonly string[] {
  return [...TRUSTED_EXTENSIONS, ...trustedCode];
}

/** Reads everything that values of these types are made of. Types of the server need no reading. */
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
