import { parseTarget, type QualifiedName } from '../../postgres/identifier.ts';

/** A function or procedure by name, with its argument types if several have the same name. */
export interface RoutineName extends QualifiedName {
  readonly signature?: readonly string[];
}

/** The argument types of a routine, in every accepted spelling. */
export interface Signature {
  /** The types of its inputs as the server prints them. */
  readonly types: readonly string[];
  /** All spellings of each type. */
  readonly spellings: readonly (readonly string[])[];
  /** With argument modes and names, as `doctor` prints it. */
  readonly identity: string;
}

/** Parses `name`, `schema.name` and `schema.name(type, type)`; undefined for any other text. */
export function parseRoutine(text: string): RoutineName | undefined {
  const [, plain, types] =
    /^\s*((?:"(?:[^"]|"")+"|[^"()\s])+)\s*(?:\((.*)\)\s*)?$/s.exec(text) ?? [];
  const name = plain === undefined ? undefined : parseTarget(plain);
  if (name === undefined || types === undefined) return name;
  return { ...name, signature: readTypes(types) };
}

/** Whether a stated signature matches this one. */
export function isSignature(
  { spellings, identity }: Signature,
  stated: readonly string[],
): boolean {
  const printed = readTypes(identity);
  if (stated.length === printed.length && stated.every((text, index) => text === printed[index]))
    return true;
  return (
    stated.length === spellings.length &&
    stated.every((text, index) => spellings[index]?.includes(text))
  );
}

/**
 * Parses comma-separated types. Folds case like SQL, and drops lengths, which do not distinguish
 * routines.
 */
function readTypes(text: string): readonly string[] {
  const folded = text.replace(/"(?:[^"]|"")*"|[^"]+/g, (part) =>
    part.startsWith('"') ? part : foldType(part),
  );
  const parts = folded.match(/(?:"(?:[^"]|"")*"|[^,"])+/g) ?? [];
  return parts.map((part) => spellOut(part.trim())).filter((part) => part !== '');
}

function foldType(part: string): string {
  return part
    .replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
    .replace(/\([^()]*\)/g, '')
    .replace(/\s+/g, ' ')
    .replace(/(?: ?\[\d*\])+/g, '[]');
}

/** Type keywords that the server prints differently. */
const KEYWORDS: Readonly<Record<string, string>> = {
  char: 'character',
  dec: 'numeric',
  decimal: 'numeric',
  float: 'double precision',
  int: 'integer',
  time: 'time without time zone',
  timestamp: 'timestamp without time zone',
  varchar: 'character varying',
};

function spellOut(type: string): string {
  const element = type.replace(/\[\]$/, '');
  return `${Object.hasOwn(KEYWORDS, element) ? KEYWORDS[element] : element}${type.slice(element.length)}`;
}
