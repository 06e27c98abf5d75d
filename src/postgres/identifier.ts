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

/** An object as SQL writes it: the schema left out if it is `public`, quotes where needed. */
export function sqlName({ schema, name }: QualifiedName): string {
  const shown = (part: string) => (PLAIN.test(part) ? part : quoteName(part));
  return schema === 'public' ? shown(name) : `${shown(schema)}.${shown(name)}`;
}

const READABLE = String.raw`[\p{L}_][\p{L}\p{N}_$ -]*`;
const UNQUOTED = new RegExp(`^${READABLE}$`, 'u');

/**
 * The name under which people and records know a relation: the name itself without quotes, with
 * the schema left out if it is `public`. Only unusual characters need the quotes of SQL.
 */
export function nameTarget({ schema, name }: QualifiedName): string {
  const shown = (part: string) => (UNQUOTED.test(part) ? part : quoteName(part));
  return schema === 'public' ? shown(name) : `${shown(schema)}.${shown(name)}`;
}

/**
 * What a stated name can mean: the relation with exactly this name, and the one that SQL would
 * find, which folds letters without quotes. They are the same for most names. Undefined if the text
 * is not a name.
 */
export function readTarget(
  text: string,
): { readonly exact: QualifiedName; readonly folded: QualifiedName } | undefined {
  const exact = parseParts(text, READABLE, (plain) => plain);
  return exact && { exact, folded: parseTarget(text) ?? exact };
}

/** Reads a name as SQL does: parts without quotes are folded. Undefined if it is not a name. */
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

/** As a server with UTF-8 folds unquoted names: the letters A to Z and no others. */
function foldCase(name: string): string {
  return name.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
