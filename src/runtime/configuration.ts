import { misnamedOption, type OptionNames } from '../contract/options.ts';
import { EffectMatchError } from '../errors.ts';
import type { IssuerConfig } from './policy.ts';
import type { RuntimeConfig } from './runtime.ts';

/** How long a silent attempt counts as alive, unless said otherwise. */
export const LEASE_MS = 30_000;
const LEASE_MAX_MS = 86_400_000;

const CONFIG: OptionNames<RuntimeConfig> = {
  ...{
    store: true,
    keyring: true,
    issuers: true,
    operators: true,
    operations: true,
    adapters: true,
  },
  ...{ leaseMs: true, telemetry: true, recoverAtStart: true },
};
const ISSUER: OptionNames<IssuerConfig> = { key: true, may: true, sources: true, limits: true };
const OPERATOR = { key: true } as const;

/**
 * Names the first part of a configuration that is missing, of the wrong kind or unknown, before
 * anything is opened. What the parts say is checked where they are used.
 */
export function checkConfiguration(
  value: unknown,
  where = 'the configuration',
): asserts value is RuntimeConfig {
  const wrong = (what: string) =>
    new EffectMatchError('ERR_EM_CONFIG_INVALID', `${where}: ${what}`);
  if (!isObject(value)) throw wrong('it is no object');
  const {
    store,
    keyring,
    issuers,
    adapters,
    operators = {},
    operations = {},
    leaseMs = LEASE_MS,
  } = value;
  if (!isText(store) && !(isObject(store) && typeof store.open === 'function')) {
    throw wrong(
      '`store` is missing; give the path of the ledger file, for example "effectmatch.db"',
    );
  }
  if (!isText(keyring) && !isObject(keyring)) {
    throw wrong(
      '`keyring` is missing; give the path of the keyring file, or { env: "EFFECTMATCH_KEYS" }',
    );
  }
  if (!isObject(issuers))
    throw wrong('`issuers` is missing; name who may approve, with a public key for each');
  if (!isObject(operators))
    throw wrong('`operators` must name who may resolve, with a public key for each');
  if (!isObject(operations) || !Object.values(operations).every(isObject)) {
    throw wrong('`operations` must name what defineOperation has made');
  }
  if (!isObject(adapters)) throw wrong('`adapters` is missing; name at least one backend');
  for (const [name, adapter] of Object.entries(adapters)) {
    if (!isObject(adapter) || typeof adapter.open !== 'function') {
      throw wrong(
        `adapter "${name}" is not an adapter; use a factory such as sqlite({ file, relations })`,
      );
    }
  }
  if (
    typeof leaseMs !== 'number' ||
    !Number.isSafeInteger(leaseMs) ||
    leaseMs < 1 ||
    leaseMs > LEASE_MAX_MS
  ) {
    throw wrong(`leaseMs must be a whole number of milliseconds from 1 to ${LEASE_MAX_MS}`);
  }
  const misnamed = misnamedOption(value, CONFIG);
  if (misnamed !== undefined) throw wrong(misnamed);
  for (const [people, kind, known] of [
    [issuers, 'issuer', ISSUER] as const,
    [operators, 'operator', OPERATOR] as const,
  ]) {
    for (const [name, person] of Object.entries(people)) {
      const unknown = isObject(person) ? misnamedOption(person, known) : undefined;
      if (unknown !== undefined) throw wrong(`${kind} "${name}": ${unknown}`);
    }
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
