import { suggest } from '../protocol/nearest.ts';

/** The names of all options. Typed, so that a new option cannot be forgotten here. */
export type OptionNames<Options> = Readonly<Record<keyof Options & string, true>>;

/** A copy without the fields that are undefined or null. */
export function given<Fields extends object>(
  fields: Fields,
): { readonly [name in keyof Fields]?: NonNullable<Fields[name]> } {
  const entries = Object.entries(fields).filter(([, value]) => (value ?? undefined) !== undefined);
  return Object.fromEntries(entries) as ReturnType<typeof given<Fields>>;
}

/**
 * What is wrong with the names in options, or undefined if nothing is. Unknown options are
 * rejected, because a misspelt restriction would be ignored silently. Inherited options are rejected
 * too, because they would be lost when options are copied.
 */
export function misnamedOption(
  options: unknown,
  known: Readonly<Record<string, true>>,
): string | undefined {
  if (typeof options !== 'object' || options === null) return 'options must be an object';
  const prototype: unknown = Object.getPrototypeOf(options);
  if (prototype !== Object.prototype && prototype !== null) return 'options must be a plain object';
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(known, name));
  if (unknown === undefined) return undefined;
  const names = Object.keys(known);
  return `unknown option "${unknown}"${suggest(unknown, names)}; there are ${names.join(', ')}`;
}

/** Like {@link misnamedOption}, for a list of relations, each a name or an object of options. */
export function misnamedRelation(
  relations: unknown,
  known: Readonly<Record<string, true>>,
): string | undefined {
  if (!Array.isArray(relations)) return 'relations must be a list of tables';
  for (const relation of relations) {
    const wrong = typeof relation === 'string' ? undefined : misnamedOption(relation, known);
    if (wrong !== undefined) return `relation ${JSON.stringify(relation?.name)}: ${wrong}`;
  }
  return undefined;
}
