import { EffectMatchError } from '../errors.ts';
import { isObject, readTag, type Value } from '../protocol/value.ts';

/**
 * Approved values as the JSON that a service is sent: keys that start with `$$` lose one, as they
 * do not have it outside of an approval. Tagged scalars have no JSON form that would not be a
 * guess, and are refused: an operation that takes such a number says itself how it is written, for
 * example as text.
 */
export function decodeData(value: Value): Value {
  if (Array.isArray(value)) return (value as readonly Value[]).map(decodeData);
  if (!isObject(value)) return value;
  const tagged = readTag(value);
  if (tagged !== undefined)
    throw invalid(`a body cannot carry ${tagged.tag} ${tagged.text.slice(0, 40)}`);
  const entries = Object.entries(value).map(
    ([key, inner]) => [decodeKey(key), decodeData(inner)] as const,
  );
  if (new Set(entries.map(([key]) => key)).size < entries.length)
    throw invalid('a body has two keys that are sent as one');
  return Object.fromEntries(entries);
}

function decodeKey(key: string): string {
  return key.startsWith('$$') ? key.slice(1) : key;
}

function invalid(why: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError(
    'ERR_EM_MANIFEST_INVALID',
    `what is approved cannot be requested exactly: ${why}`,
  );
}
