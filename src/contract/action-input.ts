import { type EffectMatchError, errorsOf } from '../errors.ts';
import { describeRounded, findRounded } from '../protocol/value.ts';

/** Names and values of an object that was read once. */
export type Fields = { readonly [name: string]: unknown };

/** The own fields of untrusted input, read once, so that the input cannot change them later. */
export function readFields(input: unknown, where: string): Fields {
  const prototype: unknown =
    typeof input === 'object' && input !== null ? Object.getPrototypeOf(input) : undefined;
  if (prototype !== Object.prototype && prototype !== null)
    throw refuseAction(`${where} must be a plain object`);
  // Without a prototype, `__proto__` is a name like any other.
  const fields: { [name: string]: unknown } = Object.create(null);
  const found = Object.getOwnPropertyDescriptors(input as object);
  for (const name of Object.keys(found)) {
    const { value, enumerable, get, set } = found[name] as PropertyDescriptor;
    if (get !== undefined || set !== undefined)
      throw refuseAction(`${where} must be plain data, without accessors`);
    if (enumerable) fields[name] = value;
  }
  return fields;
}

/** Refuses unknown fields by name. */
export function refuseUnknown(object: object, known: readonly string[], where: string): void {
  const unknown = Object.keys(object).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw refuseAction(`${where} has an unknown field "${unknown}"; it may have ${known.join(', ')}`);
}

/**
 * Refuses integers that may have been rounded, anywhere in an action. `instead` says
 * what to write.
 */
export function refuseRounded(value: unknown, where: string, instead: string): void {
  const rounded = findRounded(value);
  if (rounded !== undefined)
    throw refuseAction(`${where}: there is ${describeRounded(rounded, instead)}`);
}

/** The error for a statement or call with too many or too few values. */
export function refuseValueCount(
  what: string,
  takes: number,
  given: number,
): EffectMatchError<'ERR_EM_ACTION_INVALID'> {
  const values = takes === 1 ? '1 value' : `${takes === 0 ? 'no' : takes} values`;
  return refuseAction(
    `${what} takes ${values}, but ${given} ${given === 1 ? 'was' : 'were'} given`,
  );
}

/** The error for an invalid action. The message says what to change. */
export const refuseAction = errorsOf('ERR_EM_ACTION_INVALID');
