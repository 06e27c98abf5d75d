import { refuseAction, refuseValueCount } from '../../contract/action-input.ts';

/** What SQLite calls each parameter of a statement, by its number; null for a plain `?`, which has no name. */
export type Parameters = readonly (string | null)[];

/** SQLite's own limit for the number behind a `?`. */
const MAX_NUMBER = 32_766;
/** A name as SQLite's tokenizer takes it; every character beyond ASCII belongs to one. */
const ID = '[\\w$\\u0080-\\uffff]';

/**
 * Everything that may contain a parameter's sign without being one, then parameters, then any other character, in the
 * order in which SQLite's tokenizer decides. A doubled quote inside a string reads as two strings, which is the same here.
 */
const TOKEN = new RegExp(
  [
    ...["'[^']*(?:'|$)", '"[^"]*(?:"|$)', '`[^`]*(?:`|$)', '\\[[^\\]]*(?:\\]|$)'],
    ...['--[^\\n]*', '/\\*(?:[^*]|\\*(?!/))*(?:\\*/|$)'],
    ...[`[A-Za-z_\\u0080-\\uffff]${ID}*`, `\\d(?:${ID}|\\.)*`],
    ...['(?<numbered>\\?\\d*)', `(?<named>[:@$](?:${ID}|::)+(?:\\([^\\s)]*\\))?)`],
    '[^]',
  ].join('|'),
  'g',
);

/** The parameters of a statement, numbered as SQLite numbers them. */
export function readParameters(sql: string, where: string): Parameters {
  const parameters: (string | null)[] = [];
  for (const { groups } of sql.matchAll(TOKEN)) {
    const { numbered, named } = groups ?? {};
    if (numbered === '?') parameters.push(null);
    else if (numbered !== undefined) reach(parameters, numbered, where);
    else if (named !== undefined && !parameters.includes(named)) parameters.push(named);
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
    throw refuseAction(`${where}: the parameter ${named} has a name; give values as an object with the names`);
  }
  if (parameters.length === count) return;
  throw refuseValueCount(`${where}: the statement`, parameters.length, count);
}

/** The same for values by name. A name may be given with or without its first character. */
export function checkNames(parameters: Parameters, names: readonly string[], where: string): void {
  const unnamed = parameters.find((name) => name === null || name.startsWith('?'));
  if (unnamed !== undefined) {
    throw refuseAction(`${where}: the parameter ${unnamed ?? '?'} has no name; give values as a list`);
  }
  const known = new Map<string, string>();
  for (const name of parameters as readonly string[]) {
    const other = known.get(name.slice(1));
    if (other !== undefined) throw refuseAction(`${where}: ${other} and ${name} must have different names`);
    known.set(name.slice(1), name);
  }
  const bare = names.map((name) => (/^[:@$]/.test(name) && parameters.includes(name) ? name.slice(1) : name));
  const unknown = names.find((_, index) => !known.has(bare[index] ?? ''));
  if (unknown !== undefined) throw refuseAction(`${where}: the statement has no parameter "${unknown}"`);
  const twice = names.find((_, index) => bare.indexOf(bare[index] ?? '') !== index);
  if (twice !== undefined) throw refuseAction(`${where}: the parameter "${twice}" has two values`);
  const missing = [...known].find(([name]) => !bare.includes(name));
  if (missing !== undefined) throw refuseAction(`${where}: there is no value for the parameter ${missing[1]}`);
}
