/** JSON values of the task data. All numbers are integers. */
export type Json =
  | null
  | boolean
  | number
  | string
  | readonly Json[]
  | { readonly [name: string]: Json };

/** One step of a recorded difference (RFC 6902, only these operations). */
export type PatchStep =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: Json }
  | { readonly op: 'remove'; readonly path: string };

type Mutable = { [name: string]: Json };

/**
 * Applies the steps to a copy of the document. Paths pass only through objects. A field that is
 * replaced or removed must exist, and a field that is added must not, so a patch for another
 * document is an error.
 */
export function applyPatch<T extends Json>(document: T, steps: readonly PatchStep[]): T {
  const copy = structuredClone(document);
  for (const step of steps) applyStep(copy, step);
  return copy;
}

function applyStep(document: Json, step: PatchStep): void {
  const tokens = readPointer(step.path);
  const name = tokens.pop();
  if (name === undefined)
    throw new Error('a recorded difference never replaces the whole document');
  const parent = tokens.reduce((at, token) => enter(at, token, step.path), document);
  const holder = asObject(parent, step.path);
  const exists = Object.hasOwn(holder, name);
  if (exists === (step.op === 'add'))
    throw new Error(`${step.op} ${step.path} does not fit the document`);
  if (step.op === 'remove') delete holder[name];
  else holder[name] = structuredClone(step.value);
}

/** Splits an RFC 6901 pointer into its tokens. */
export function readPointer(path: string): string[] {
  const [empty, ...tokens] = path.split('/');
  if (empty !== '') throw new Error(`"${path}" is no JSON pointer`);
  return tokens.map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function enter(at: Json, token: string, path: string): Json {
  const holder = asObject(at, path);
  const inner = Object.hasOwn(holder, token) ? holder[token] : undefined;
  if (inner === undefined) throw new Error(`${path} leads nowhere`);
  return inner;
}

function asObject(value: Json, path: string): Mutable {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Mutable;
  throw new Error(`${path} does not lead through objects`);
}
