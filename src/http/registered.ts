import { type ManifestSchema, plainSchema } from '../backend/manifest-schema.ts';
import { normaliseManifest } from '../backend/normalise.ts';
import type { AdapterRefusal } from '../backend/setup.ts';
import type { RemoteAdapter } from '../contract/adapter.ts';
import { digestValueOf } from '../crypto/digest.ts';
import type { ChangeRecord } from '../protocol/effect.ts';
import type { Registration, Target } from '../protocol/registration.ts';
import { normaliseNumbers, normaliseRow } from './number.ts';

/** The fields of a registered collection, and those that identify an entry. */
export interface TargetColumns {
  readonly columns: readonly string[];
  readonly key: readonly string[];
  readonly volatile?: readonly string[];
}

/** Registers the targets of a service, and how their values are compared and kept. */
export function registerTargets(
  terms: Omit<Registration, 'targets'>,
  targets: Readonly<Record<string, TargetColumns>>,
  refused: AdapterRefusal,
): Pick<RemoteAdapter, 'registration' | 'profiles' | 'normalise'> {
  const registration: Registration = { ...terms, targets: targetsOf(targets, refused) };
  // Values are kept as stated, but numbers get the form in which JSON is read.
  const schema: ManifestSchema = {
    ...plainSchema(registration),
    store: (_relation, _column, value) => normaliseNumbers(value),
  };
  return {
    registration,
    profiles: ['row-event', 'net-state', 'relation-write'],
    normalise: async (manifest) => normaliseManifest(schema, manifest),
  };
}

function targetsOf(
  options: Readonly<Record<string, TargetColumns>>,
  refused: AdapterRefusal,
): readonly Target[] {
  const targets = Object.entries(options ?? {}).map(([name, { columns, key, volatile = [] }]) => {
    if (![columns, key, volatile].every(isNameList) || columns.length === 0)
      throw refused(`target "${name}" needs columns and key, as lists of names`);
    const stray = [...key, ...volatile].find((column) => !columns.includes(column));
    if (stray !== undefined)
      throw refused(`"${stray}" of target "${name}" is not among its columns`);
    return {
      name,
      columns: [...columns],
      key: [...key],
      volatile: [...volatile],
    };
  });
  if (targets.length === 0) throw refused('register at least one target');
  return targets;
}

function isNameList(list: unknown): boolean {
  return Array.isArray(list) && list.every((column) => typeof column === 'string' && column !== '');
}

/** A digest of the options that affect requests and read-backs. Functions count by their text. */
export function identifyOptions(options: object): string {
  const plain = (value: unknown): unknown => {
    if (typeof value === 'function') return `function ${String(value)}`;
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value !== 'object' || value === null) return value ?? null;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]));
  };
  return digestValueOf('effectmatch/http-options/v1', plain(options)).slice(0, 32);
}

/**
 * Converts the numbers of a record to the form in manifests, because an option's function may
 * calculate.
 */
export function normaliseRecord(record: ChangeRecord): ChangeRecord {
  const { key, before, after } = record;
  return {
    ...record,
    key: key && normaliseRow(key),
    before: before && normaliseRow(before),
    after: after && normaliseRow(after),
  };
}
