import { refuseAction, refuseValueCount } from '../../contract/action-input.ts';

/**
 * What SQLite calls each parameter of a statement, by its number; null for a plain `?`, which has
 * no name.
 */
export type Parameters = readonly (string | null)[];

/** SQLite's own limit for the number behind a `?`. */
const MAX_NUMBER = 32_766;
/** A name as SQLite's tokenizer takes it; every character beyond ASCII belongs to one. */
const ID = '[\\w$\\u0080-\\uffff]';

/**
 * Everything that may contain a parameter's sign without being one, then parameters, then any other
 * character, in the order in which SQLite's tokenizer decides. A doubled quote inside a string
 * reads as two strings, which is the same here. Whatever is not closed reaches to the end, so that
 * no character is looked at again and again.
 */
const TOKEN = new RegExp(
  [
    ...["'[^']*(?:'|$)", '"[^"]*(?:"|$)', '`[^`]*(?:`|$)', '\\[[^\\]]*(?:\\]|$)'],
    ...['--[^\\n]*', '/\\*(?:[^*]|\\*(?!/))*(?:\\*/|$)'],
    ...[`[A-Za-z_\\u0080-\\uffff]${ID}*`, `\\d(?:${ID}|\\.)*`],
    ...['(?<numbered>\\?\\d*)', `(?<named>[:@$](?:${ID}|::)+(?:\\([^\\s)]*\\)?)?)`],
    '[^]',
  ].join('|'),
  'g',
);

/** The parameters of a statement, numbered as SQLite numbers them. */
export function readParameters(sql: string, where: string): Parameters {
  const parameters: (string | null)[] = [];
  const known = new Set<string>();
  for (const { groups } of sql.matchAll(TOKEN)) {
    const { numbered, named } = groups ?? {};
    if (numbered === '?') parameters.push(null);
    else if (numbered !== undefined) reach(parameters, numbered, where);
    else if (named !== undefined && !known.has(named)) parameters.push(named);
    if (named !== undefined) known.add(named);
    if (parameters.length > MAX_NUMBER)
      throw refuseAction(`${where}: there are more than ${MAX_NUMBER} parameters`);
  }
  return parameters;
}

function reach(parameters: (string | null)[], name: string, where: string): void {
  const number = Number(name.slice(1));
  if (number < 1 || number > MAX_NUMBER)
    throw refuseAction(`${where}: parameters are numbered from ?1 to ?${MAX_NUMBER}`);
  while (parameters.length < number) parameters.push(null);
  parameters[number - 1] ??= name;
}

/**
 * Refuses values that are not one for each parameter: SQLite would take NULL for a missing one without a word, and a
 * value too many would fail only when the license is spent.
 */
export function checkCount(parameters: Parameters, count: number, where: string): void {
  const named = parameters.find((name) => name !== null && !name.startsWith('?'));
  if (named !== undefined) {
    throw refuseAction(
      `${where}: the parameter ${named} has a name; give values as an object with the names`,
    );
  }
  if (parameters.length === count) return;
  throw refuseValueCount(`${where}: the statement`, parameters.length, count);
}

/** The same for values by name. A name may be given with or without its first character. */
export function checkNames(parameters: Parameters, names: readonly string[], where: string): void {
  const unnamed = parameters.find((name) => name === null || name.startsWith('?'));
  if (unnamed !== undefined) {
    throw refuseAction(
      `${where}: the parameter ${unnamed ?? '?'} has no name; give values as a list`,
    );
  }
  const known = new Map<string, string>();
  for (const name of parameters as readonly string[]) {
    const other = known.get(name.slice(1));
    if (other !== undefined)
      throw refuseAction(`${where}: ${other} and ${name} must have different names`);
    known.set(name.slice(1), name);
  }
  const given = new Set<string>();
  for (const name of names) {
    const bare = known.get(name.slice(1)) === name ? name.slice(1) : name;
    if (!known.has(bare)) throw refuseAction(`${where}: the statement has no parameter "${name}"`);
    if (given.has(bare)) throw refuseAction(`${where}: the parameter "${name}" has two values`);
    given.add(bare);
  }
  const missing = [...known].find(([name]) => !given.has(name));
  if (missing !== undefined)
    throw refuseAction(`${where}: there is no value for the parameter ${missing[1]}`);
}
