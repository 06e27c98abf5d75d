import type { Value } from '../protocol/value.ts';
import { encodeNumber } from './number.ts';

/**
 * JSON as values: whole numbers beyond the safe range and decimals that no double carries keep
 * their digits in a tag rather than becoming their neighbours, and keys that start with `$` are
 * doubled, so that a text cannot contain tags. Undefined where the bytes are not JSON in UTF-8, or
 * say two things under one key: that is then no answer at all.
 */
export function parseJson(bytes: Buffer): Value | undefined {
  const text = bytes.toString('utf8');
  if (!Buffer.from(text, 'utf8').equals(bytes)) return undefined;
  try {
    const value = JSON.parse(text, revive as (key: string, value: unknown) => unknown) as Value;
    return hasRepeatedKey(text) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** Called for what stands in the text, innermost first; what it returns is not visited again. */
function revive(key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (key === '__proto__') throw new SyntaxError('no value has a key of that name');
  if (typeof value === 'number') return reviveNumber(context.source ?? String(value));
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (!Object.keys(value).some((name) => name.startsWith('$'))) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name.startsWith('$') ? `$${name}` : name, inner]),
  );
}

function reviveNumber(source: string): Value {
  const value = encodeNumber(source);
  if (value === undefined) throw new SyntaxError('a number is longer than any that is compared');
  return value;
}

/**
 * Whether an object in this JSON names a key twice. `JSON.parse` keeps the last one, other readers
 * the first: what such a text says depends on who reads it, so it proves nothing.
 */
function hasRepeatedKey(json: string): boolean {
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < json.length; at += 1) {
    switch (json[at]) {
      case '{':
        open.push(new Set());
        break;
      case '[':
        open.push(undefined);
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case '"': {
        const end = endOfString(json, at);
        const names = open.at(-1);
        if (names !== undefined && isFollowedByColon(json, end)) {
          const quoted = json.slice(at, end);
          const name = quoted.includes('\\') ? JSON.stringify(JSON.parse(quoted)) : quoted;
          if (names.has(name)) return true;
          names.add(name);
        }
        at = end - 1;
        break;
      }
    }
  }
  return false;
}

/** Where the string that starts here is over. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

function isFollowedByColon(json: string, from: number): boolean {
  let at = from;
  while (at < json.length && ' \t\r\n'.includes(json[at] ?? '')) at += 1;
  return json[at] === ':';
}
