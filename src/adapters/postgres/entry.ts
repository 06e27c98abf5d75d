import type { Connection } from '../../postgres/connection.ts';
import { type QualifiedName, sqlName } from '../../postgres/identifier.ts';
import { suggest } from '../../protocol/nearest.ts';
import { queryPinned } from './formats.ts';
import { refused } from './options.ts';
import { isSignature, type RoutineName, type Signature } from './routine-name.ts';
import { SQL } from './sql.ts';

/** A function or procedure that agents may call. */
export interface EntryRoutine extends QualifiedName {
  readonly oid: number;
  /** The name in actions and records, with its signature if it was registered with one. */
  readonly target: string;
  readonly signature: Signature;
  readonly kind: 'function' | 'procedure';
  /** In call order. Output arguments of a procedure are included: its calls pass NULL for them. */
  readonly arguments: readonly { readonly type: string; readonly input: boolean }[];
}

interface Found {
  readonly oid: number;
  readonly prokind: string;
  readonly variadic: boolean;
  readonly identity: string;
  readonly arguments: readonly {
    readonly type: string;
    readonly mode: string;
    readonly printed: string;
    readonly spellings: readonly string[];
  }[];
}

/**
 * Looks up the entry points with these names. Refuses the first that is not usable, with a remedy.
 */
export async function demandEntries(
  connection: Connection,
  names: readonly RoutineName[],
): Promise<readonly EntryRoutine[]> {
  if (names.length === 0) return [];
  const { rows } = await queryPinned(connection, SQL.registered.get('entry_points'), [
    names.map(({ schema }) => schema),
    names.map(({ name }) => name),
  ]);
  const entries = names.map((name, index) => {
    const [found, near] = (rows[index] ?? []).map((text) => JSON.parse(text ?? '[]'));
    return describeEntry(name, found ?? [], near ?? []);
  });
  const twice = entries.find(
    ({ oid }, index) => entries.findIndex((entry) => entry.oid === oid) < index,
  );
  if (twice !== undefined) throw refused(`entry point "${twice.target}" is registered twice`);
  return entries;
}

function describeEntry(
  { signature: types, ...name }: RoutineName,
  all: readonly Found[],
  near: readonly string[],
): EntryRoutine {
  const stated = types === undefined ? sqlName(name) : withTypes(name, types);
  const unusable = (why: string) => refused(`entry point "${stated}" cannot be registered: ${why}`);
  if (all.length === 0)
    throw unusable(`there is no such function or procedure${suggest(name.name, near)}`);
  const candidates = all.map((found) => ({ found, signature: signatureOf(found) }));
  const known = candidates.map(({ signature }) => withTypes(name, signature.types)).sort();
  const [only, ...others] = candidates.filter(
    ({ signature }) => types === undefined || isSignature(signature, types),
  );
  if (only === undefined)
    throw unusable(`none of this name takes (${types?.join(', ')}); there are ${known.join(', ')}`);
  if (others.length > 0)
    throw unusable(`there are ${known.length} of this name; write one of ${known.join(', ')}`);
  const { signature } = only;
  const { oid, prokind, variadic, arguments: list } = only.found;
  if (!['f', 'p'].includes(prokind)) throw unusable('it is an aggregate or window function');
  if (variadic) throw unusable('it takes any number of arguments; declare an array instead');
  const kind = prokind === 'p' ? 'procedure' : 'function';
  const inputs = list.map(({ type, mode }) => ({ type, input: isInput(mode) }));
  const called = inputs.filter(({ input }) => input || kind === 'procedure');
  const target = types === undefined ? stated : withTypes(name, signature.types);
  return { ...name, oid, target, signature, kind, arguments: called };
}

function withTypes(name: QualifiedName, types: readonly string[]): string {
  return `${sqlName(name)}(${types.join(', ')})`;
}

function signatureOf({ arguments: list, identity }: Found): Signature {
  const inputs = list.filter(({ mode }) => isInput(mode) || mode === 'v');
  return {
    types: inputs.map(({ printed }) => printed),
    spellings: inputs.map(({ printed, spellings }) => [printed, ...spellings]),
    identity,
  };
}

function isInput(mode: string): boolean {
  return mode === 'i' || mode === 'b';
}
