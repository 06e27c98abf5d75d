import { digestValueOf } from '../../crypto/digest.ts';
import { refused } from '../../http/gateway.ts';
import type { Registration, Target } from '../../protocol/registration.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import type { MediatedOperation, OpaqueOperation, TargetOptions } from './options.ts';
import { placeOf } from './read-back.ts';

/** The registered collections, checked. */
export function targetsOf(options: Readonly<Record<string, TargetOptions>>): readonly Target[] {
  const targets = Object.entries(options ?? {}).map(([name, { columns, key, volatile = [] }]) => {
    const texts = [columns, key, volatile].every(
      (list) =>
        Array.isArray(list) && list.every((column) => typeof column === 'string' && column !== ''),
    );
    if (!texts || columns.length === 0)
      throw refused(`target "${name}" needs columns and key, as lists of names`);
    const stray = [...key, ...volatile].find((column) => !columns.includes(column));
    if (stray !== undefined)
      throw refused(`"${stray}" of target "${name}" is not among its columns`);
    return { name, columns: [...columns], key: [...key], volatile: [...volatile] };
  });
  if (targets.length === 0) throw refused('register at least one target');
  return targets;
}

/** Checks what every operation has to say, whoever makes its request. */
export function checkOperations(
  operations: Readonly<Record<string, MediatedOperation | OpaqueOperation>>,
  targets: readonly Target[],
): void {
  const entries = Object.entries(operations ?? {});
  if (entries.length === 0) throw refused('register at least one operation');
  for (const [name, { method, path, readBack, assigns = [] }] of entries) {
    if (!['POST', 'PUT', 'PATCH', 'DELETE'].includes(method))
      throw refused(`operation "${name}" has no usable method`);
    const paths = {
      path,
      'readBack.path': readBack?.path,
      ...(readBack?.witness && { witness: readBack.witness.path }),
    };
    for (const [field, text] of Object.entries(paths)) {
      if (typeof text !== 'string' || !/^\/(?!\/)/.test(text)) {
        throw refused(`${field} of operation "${name}" must be a path from "/" on`);
      }
    }
    if (typeof readBack.found !== 'function')
      throw refused(`operation "${name}" does not say how to read back`);
    const uncovered = targets.find((target) => !readBack.covers.includes(target.name));
    if (uncovered !== undefined) {
      throw refused(
        `the read-back of operation "${name}" does not cover "${uncovered.name}", in which it promises that nothing ` +
          'else changes; cover it, or do not register it',
      );
    }
    for (const place of assigns) {
      const { target, column } = placeOf(place);
      const known = targets
        .find((candidate) => candidate.name === target)
        ?.columns.includes(column);
      if (known !== true)
        throw refused(`"${place}" in assigns of operation "${name}" is not a registered column`);
    }
  }
}

/**
 * Everything of a configuration that decides what is sent and what is believed, by the text of its
 * functions.
 */
export function identifyOptions(options: unknown): string {
  const plain = (value: unknown): unknown => {
    if (typeof value === 'function') return `function ${String(value)}`;
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value !== 'object' || value === null) return value ?? null;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
  };
  return digestValueOf('effectmatch/http-options/v1', plain(options)).slice(0, 32);
}

/** The registration that approvals carry. */
export function registrationOf(
  targets: readonly Target[],
  options: { readonly profile?: Registration['profile']; readonly values?: Registration['values'] },
  capability: 'MEDIATED' | 'OPAQUE',
): Registration {
  const { profile = 'row-event', values = 'plain' } = options;
  return { profile, values, targets, capability };
}

/** What stands at a path of fields in a response. */
export function fieldAt(body: Value, path: readonly string[]): Value | undefined {
  let at: Value | undefined = body;
  for (const name of path)
    at = at !== undefined && isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  return at ?? undefined;
}
