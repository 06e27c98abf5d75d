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
  /**
   * The name as people and records know it, with its signature where it was registered with one.
   */
  readonly target: string;
  readonly signature: Signature;
  readonly kind: 'function' | 'procedure';
  /** In the order of a call. What a procedure only returns stands in its calls too, as NULL. */
  readonly arguments: readonly { readonly type: string; readonly input: boolean }[];
  /** Runs with the rights of its owner instead of the execution login's. */
  readonly securityDefiner: boolean;
  readonly language: string;
}

/** What became of a name. */
type EntryInspection =
  | { readonly kind: 'usable'; readonly entry: EntryRoutine }
  | { readonly kind: 'unusable'; readonly target: string; readonly why: string };

interface Found
  extends Omit<EntryRoutine, 'kind' | 'arguments' | 'schema' | 'name' | 'target' | 'signature'> {
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

/** Looks up entry points as they are now, in the order asked, in one round trip. */
export async function readEntries(
  connection: Connection,
  names: readonly RoutineName[],
): Promise<readonly EntryInspection[]> {
  const { rows } = await queryPinned(connection, SQL.registered.get('entry_points'), [
    names.map(({ schema }) => schema),
    names.map(({ name }) => name),
  ]);
  return names.map((name, index) => {
    const [found, near] = rows[index] ?? [];
    return inspectEntry(
      name,
      JSON.parse(found ?? '[]') as readonly Found[],
      JSON.parse(near ?? '[]') as string[],
    );
  });
}

/** The entry points of these names; refuses the first that cannot be one, with what to change. */
export async function demandEntries(
  connection: Connection,
  names: readonly RoutineName[],
): Promise<readonly EntryRoutine[]> {
  if (names.length === 0) return [];
  const entries = (await readEntries(connection, names)).map((inspection) => {
    if (inspection.kind === 'usable') return inspection.entry;
    throw refused(`entry point "${inspection.target}" cannot be registered: ${inspection.why}`);
  });
  const twice = entries.find(
    ({ oid }, index) => entries.findIndex((entry) => entry.oid === oid) < index,
  );
  if (twice !== undefined) throw refused(`entry point "${twice.target}" is registered twice`);
  return entries;
}

function inspectEntry(
  stated: RoutineName,
  found: readonly Found[],
  near: readonly string[],
): EntryInspection {
  const { signature: types, ...name } = stated;
  const target = types === undefined ? sqlName(name) : withTypes(name, types);
  const unusable = (why: string): EntryInspection => ({ kind: 'unusable', target, why });
  if (found.length === 0)
    return unusable(`there is no such function or procedure${suggest(name.name, near)}`);
  const candidates = found.map((row) => ({ row, signature: signatureOf(row) }));
  const known = candidates.map(({ signature }) => withTypes(name, signature.types)).sort();
  const [only, ...others] = candidates.filter(
    ({ signature }) => types === undefined || isSignature(signature, types),
  );
  if (only === undefined)
    return unusable(
      `none of this name takes (${types?.join(', ')}); there are ${known.join(', ')}`,
    );
  if (others.length > 0)
    return unusable(`there are ${known.length} of this name; write one of ${known.join(', ')}`);
  const { signature } = only;
  const { prokind, variadic, arguments: list, identity: _identity, ...rest } = only.row;
  if (!['f', 'p'].includes(prokind)) return unusable('it is an aggregate or window function');
  if (variadic) return unusable('it takes any number of arguments; declare an array instead');
  const kind = prokind === 'p' ? 'procedure' : 'function';
  const all = list.map(({ type, mode }) => ({ type, input: isInput(mode) }));
  const called = kind === 'procedure' ? all : all.filter(({ input }) => input);
  const registered = types === undefined ? target : withTypes(name, signature.types);
  return {
    kind: 'usable',
    entry: { ...name, ...rest, target: registered, signature, kind, arguments: called },
  };
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
