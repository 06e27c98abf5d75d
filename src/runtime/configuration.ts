import { misnamedOption, type OptionNames } from '../contract/options.ts';
import { wrongPlace } from '../contract/store-place.ts';
import { EffectMatchError } from '../errors.ts';
import type { IssuerConfig } from './policy.ts';
import type { RuntimeConfig } from './runtime.ts';

/** How long a silent attempt counts as alive, by default. */
export const LEASE_MS = 30_000;
/** How long to retry a stage that other transactions prevent, by default. */
export const RESTAGE_MS = 30_000;
const DAY_MS = 86_400_000;

const CONFIG: OptionNames<RuntimeConfig> = {
  store: true,
  keyring: true,
  issuers: true,
  operators: true,
  operations: true,
  adapters: true,
  leaseMs: true,
  restageMs: true,
  requests: true,
  workflows: true,
  agents: true,
  upstreams: true,
  console: true,
  telemetry: true,
  recoverAtStart: true,
};
const ISSUER: OptionNames<IssuerConfig> = {
  key: true,
  may: true,
  sources: true,
  limits: true,
  second: true,
};
const OPERATOR = { key: true } as const;

/**
 * Names the first part of a configuration that is missing, of the wrong type or unknown, before
 * anything is opened. The contents of the parts are checked where they are used.
 */
export function checkConfiguration(
  value: unknown,
  where = 'the configuration',
): asserts value is RuntimeConfig {
  const wrong = isObject(value)
    ? (findWrongPart(value) ?? misnamedOption(value, CONFIG) ?? findMisnamedPerson(value))
    : 'it is not an object';
  if (wrong !== undefined)
    throw new EffectMatchError('ERR_EM_CONFIG_INVALID', `${where}: ${wrong}`);
}

function findWrongPart(config: Record<string, unknown>): string | undefined {
  const { store, keyring, issuers, adapters } = config;
  const { operators = {}, operations = {}, agents = {} } = config;
  if (!isText(store) && !hasOpen(store))
    return '`store` is missing; give the path of the ledger file, for example "effectmatch.db"';
  const wrong = findWrongPlace(config);
  if (wrong !== undefined) return wrong;
  if (!isText(keyring) && !isObject(keyring))
    return '`keyring` is missing; give the path of the keyring file, or { env: "EFFECTMATCH_KEYS" }';
  if (!isObject(issuers))
    return '`issuers` is missing; name who may approve, with a public key for each';
  if (!isObject(operators))
    return '`operators` must name who may resolve, with a public key for each';
  if (!isObject(operations) || !Object.values(operations).every(isObject))
    return '`operations` must name what defineOperation has made';
  const { workflows = { plans: {} } } = config;
  if (!isObject(workflows) || !isObject(workflows.plans))
    return '`workflows` must have `plans`: what defineWorkflow has made, by name';
  if (!isObject(agents)) return '`agents` must name the agents that are served over MCP';
  if (!isObject(adapters)) return '`adapters` is missing; name at least one backend';
  const stray = Object.keys(adapters).find((name) => !hasOpen(adapters[name]));
  if (stray !== undefined)
    return `adapter "${stray}" is not an adapter; use a factory such as sqlite({ file, relations })`;
  return (
    findWrongTime('leaseMs', config.leaseMs ?? LEASE_MS, 1) ??
    findWrongTime('restageMs', config.restageMs ?? RESTAGE_MS, 0)
  );
}

function findWrongPlace({ store, requests }: Record<string, unknown>): string | undefined {
  const asked = isObject(requests) ? requests.store : undefined;
  return (
    (isText(store) ? wrongPlace('store', store) : undefined) ??
    (isText(asked) ? wrongPlace('requests.store', asked) : undefined)
  );
}

function findWrongTime(name: string, value: unknown, min: number): string | undefined {
  const isTime = Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= DAY_MS;
  return isTime
    ? undefined
    : `${name} must be a whole number of milliseconds from ${min} to ${DAY_MS}`;
}

function findMisnamedPerson({ issuers, operators }: Record<string, unknown>): string | undefined {
  return findMisnamed(issuers, 'issuer', ISSUER) ?? findMisnamed(operators, 'operator', OPERATOR);
}

function findMisnamed(
  people: unknown,
  kind: string,
  known: Readonly<Record<string, true>>,
): string | undefined {
  for (const [name, person] of Object.entries(people ?? {})) {
    const unknown = isObject(person) ? misnamedOption(person, known) : undefined;
    if (unknown !== undefined) return `${kind} "${name}": ${unknown}`;
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function hasOpen(value: unknown): boolean {
  return isObject(value) && typeof value.open === 'function';
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
