import { parseTarget, type QualifiedName } from '../../postgres/identifier.ts';

/**
 * A function or procedure as people name it, with the types of its arguments where several have the
 * name.
 */
export interface RoutineName extends QualifiedName {
  readonly signature?: readonly string[];
}

/** What a routine takes, in the ways that people write it. */
export interface Signature {
  /** The types of its inputs as the server prints them. */
  readonly types: readonly string[];
  /** Every spelling of each of them. */
  readonly spellings: readonly (readonly string[])[];
  /** As `doctor` prints it: with modes and names of arguments. */
  readonly identity: string;
}

/**
 * Reads `name`, `schema.name` and `schema.name(type, type)`; undefined where the text is none of
 * these.
 */
export function parseRoutine(text: string): RoutineName | undefined {
  const [, plain, types] =
    /^\s*((?:"(?:[^"]|"")+"|[^"()\s])+)\s*(?:\((.*)\)\s*)?$/s.exec(text) ?? [];
  const name = plain === undefined ? undefined : parseTarget(plain);
  if (name === undefined || types === undefined) return name;
  return { ...name, signature: readTypes(types) };
}

/** Whether a stated signature is this one. */
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
 * Types between commas, folded as SQL folds them, without lengths, which do not tell routines
 * apart.
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

/** Keywords that stand for a type that the server prints in other words. */
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
