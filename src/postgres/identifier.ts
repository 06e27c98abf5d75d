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

/**
 * Text as an SQL literal that means the same under every setting: text with backslashes is written
 * as `E'…'`.
 */
export function quoteLiteral(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes('\\') ? ` E${quoted.replaceAll('\\', '\\\\')}` : quoted;
}

/** A database object, identified by its schema and name. */
export interface QualifiedName {
  readonly schema: string;
  readonly name: string;
}

const PLAIN = /^[a-z_][a-z0-9_]*$/;

/** An object name as written in SQL: quoted only if necessary, and without the schema `public`. */
export function sqlName({ schema, name }: QualifiedName): string {
  const shown = (part: string) => (PLAIN.test(part) ? part : quoteName(part));
  return schema === 'public' ? shown(name) : `${shown(schema)}.${shown(name)}`;
}

const READABLE = String.raw`[\p{L}_][\p{L}\p{N}_$ -]*`;
const UNQUOTED = new RegExp(`^${READABLE}$`, 'u');

/**
 * The name of a relation in manifests and records: quoted only if it has unusual characters, and
 * without the schema `public`.
 */
export function nameTarget({ schema, name }: QualifiedName): string {
  const shown = (part: string) => (UNQUOTED.test(part) ? part : quoteName(part));
  return schema === 'public' ? shown(name) : `${shown(schema)}.${shown(name)}`;
}

/**
 * The two relations that a name can mean: the one with exactly this name, and the one that SQL
 * would find after folding unquoted letters to lower case. For most names they are the same.
 * Undefined if the text is not a name.
 */
export function readTarget(
  text: string,
): { readonly exact: QualifiedName; readonly folded: QualifiedName } | undefined {
  const exact = parseParts(text, READABLE, (plain) => plain);
  return exact && { exact, folded: parseTarget(text) ?? exact };
}

/**
 * Parses a name as SQL does, folding unquoted parts to lower case. Undefined if it is not a name.
 */
export function parseTarget(text: string): QualifiedName | undefined {
  return parseParts(text, String.raw`[\p{L}_][\p{L}\p{N}_$]*`, foldCase);
}

function parseParts(
  text: string,
  unquoted: string,
  readPlain: (plain: string) => string,
): QualifiedName | undefined {
  const part = new RegExp(String.raw`(?:^|\.)(?:"((?:[^"]|"")+)"|(${unquoted}))`, 'gu');
  const parts = [...text.matchAll(part)];
  if (parts.length === 0 || parts.length > 2 || parts.map(([whole]) => whole).join('') !== text)
    return undefined;
  const [first, second] = parts.map(
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? readPlain(plain ?? ''),
  );
  if (first === undefined) return undefined;
  return second === undefined ? { schema: 'public', name: first } : { schema: first, name: second };
}

/** Folds like a server with UTF-8 encoding: only the letters A to Z. */
function foldCase(name: string): string {
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
