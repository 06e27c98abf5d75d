/**
 * An identifier as SQL text, always quoted: mixed case, spaces, quotes and reserved words need no
 * special case.
 */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A schema-qualified object as SQL text. */
export function quoteQualified({ schema, name }: QualifiedName): string {
  return `${quoteName(schema)}.${quoteName(name)}`;
}

/** Text as an SQL literal. Escape syntax is avoided, so no setting changes its meaning. */
export function quoteLiteral(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}

/** An object of the database by the two names that identify it. */
export interface QualifiedName {
  readonly schema: string;
  readonly name: string;
}

const PLAIN = /^[a-z_][a-z0-9_]*$/;

/**
 * The name under which people and records know a relation: as they would write it in SQL, with the
 * schema left out where it is `public`, and quotes only where they are needed.
 */
export function nameTarget({ schema, name }: QualifiedName): string {
  const shown = (part: string) => (PLAIN.test(part) ? part : quoteName(part));
  return schema === 'public' ? shown(name) : `${shown(schema)}.${shown(name)}`;
}

/**
 * Reads what {@link nameTarget} writes; undefined where the text is no such name. Unquoted parts
 * are folded as SQL folds them.
 */
export function parseTarget(text: string): QualifiedName | undefined {
  const parts = [...text.matchAll(/(?:^|\.)(?:"((?:[^"]|"")+)"|([\p{L}_][\p{L}\p{N}_$]*))/gu)];
  if (parts.length === 0 || parts.length > 2 || parts.map(([whole]) => whole).join('') !== text)
    return undefined;
  const [first, second] = parts.map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? foldCase(plain ?? ''),
  );
  if (first === undefined) return undefined;
  return second === undefined ? { schema: 'public', name: first } : { schema: first, name: second };
}

/** As a server with UTF-8 folds unquoted names: the letters A to Z and no others. */
function foldCase(name: string): string {
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
