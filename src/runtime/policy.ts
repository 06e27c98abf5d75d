import { misnamedOption, type OptionNames } from '../contract/options.ts';
import { parseDuration } from '../crypto/duration.ts';
import { issuerKeyId } from '../crypto/issuer-key.ts';
import { EffectMatchError, errorsOf } from '../errors.ts';
import type { Op } from '../protocol/effect.ts';
import { type Policy, policyRecord, type Source } from '../protocol/frame.ts';
import { type Day, localTime } from '../protocol/hours.ts';
import { type Limits, OPS } from '../protocol/limits.ts';
import type { Target } from '../protocol/registration.ts';
import type { Admitted } from './deployment.ts';
import type { Operation } from './operation.ts';

/**
 * `{ from: '08:00', to: '18:00', zone: 'Europe/Berlin', days: ['mon', 'fri'] }`. Without `days` it
 * applies every day.
 */
export interface HoursConfig {
  readonly from: string;
  readonly to: string;
  readonly zone: string;
  readonly days?: readonly Day[];
}

/** Limits on an issuer's approvals. Anything left out is not limited. */
export interface LimitsConfig {
  /** Only these operations, and nothing else. */
  readonly operations?: readonly string[];
  /** Only these relations, with every kind of write or only those named. */
  readonly relations?: readonly (string | { readonly name: string; readonly ops: readonly Op[] })[];
  /** The number of changes that one license may allow, over all its occurrences. */
  readonly maxEffects?: number;
  /** The same for one relation. */
  readonly maxRows?: Readonly<Record<string, number>>;
  /**
   * The largest number that may be written to a column. Use decimal text if a double is not exact.
   */
  readonly amounts?: readonly {
    readonly target: string;
    readonly column: string;
    readonly max: number | bigint | string;
  }[];
  /** When this issuer's approvals may be executed, in a named time zone. Several windows add up. */
  readonly hours?: HoursConfig | readonly HoursConfig[];
  /** How long a license may be valid: milliseconds or '10m', '1h', '2d'. */
  readonly maxLifetime?: string | number;
}

/**
 * Who may approve: the public key, and the adapters it may approve for. Several keys are possible,
 * during a rotation or for a person with several.
 */
export interface IssuerConfig {
  /** `ed25519:…`, or `passkey:…` as the console shows it. */
  readonly key: string | readonly string[];
  readonly may: readonly string[];
  /** The sources of this issuer's approvals. By default all but `rehearsed`. */
  readonly sources?: readonly Source[];
  readonly limits?: LimitsConfig;
  /** One of these issuers must sign as well before anything that this one approves is executed. */
  readonly second?: readonly string[];
}

interface Configured {
  readonly issuers: Readonly<Record<string, IssuerConfig>>;
  readonly adapters: Readonly<Record<string, unknown>>;
  readonly operations?: Readonly<Record<string, Operation>> | undefined;
}

/** The policy record of a configuration, with every limit written out. */
export function policyOf(config: Configured): Policy {
  for (const [name, issuer] of Object.entries(config.issuers)) {
    const keys = [issuer?.key].flat();
    if (keys.length === 0 || keys.some((key) => typeof key !== 'string')) {
      throw invalid(
        `issuer "${name}" needs a key: the approver's public key, as text, or a list of them`,
      );
    }
    if (!Array.isArray(issuer.may))
      throw invalid(`issuer "${name}" needs may: the adapters it may approve for`);
    const unknown = issuer.may.find((adapter) => !Object.hasOwn(config.adapters, adapter));
    if (unknown !== undefined) {
      throw invalid(
        `issuer "${name}" may approve for "${unknown}", but no adapter of that name is configured`,
      );
    }
    const stray = issuer.limits?.operations?.find(
      (operation) => !Object.hasOwn(config.operations ?? {}, operation),
    );
    if (stray !== undefined) {
      throw invalid(
        `issuer "${name}" may approve operation "${stray}", but no operation of that name is configured`,
      );
    }
    checkSecond(`issuer "${name}"`, issuer.second, Object.keys(config.issuers), name);
  }
  const issuers = Object.entries(config.issuers).map(([name, issuer]) => {
    const { key, may, sources, limits, second } = issuer;
    const entry = {
      keys: [key].flat().map(issuerKeyId),
      may: [...may],
      sources: [...(sources ?? ['manifest', 'contract'])],
      ...(limits !== undefined && { limits: limitsOf(name, limits) }),
      ...(second !== undefined && { second: [...second] }),
    };
    return [name, entry] as const;
  });
  return parsePolicy({ version: 1, issuers: Object.fromEntries(issuers) });
}

/** Rejects a second signer who is not another issuer, because that signature could never arrive. */
function checkSecond(
  what: string,
  second: readonly string[] | undefined,
  issuers: readonly string[],
  self?: string,
): void {
  if (second === undefined) return;
  if (!Array.isArray(second) || second.length === 0)
    throw invalid(`${what} has a \`second\` that names no issuer; list who must sign too`);
  const stray = second.find((name) => !issuers.includes(name) || name === self);
  if (stray === self && self !== undefined)
    throw invalid(`${what} names itself as the second person; name other issuers`);
  if (stray !== undefined)
    throw invalid(`${what} needs a second signature by "${stray}", who is not an issuer`);
}

function parsePolicy(policy: unknown): Policy {
  try {
    return policyRecord.parse(policy);
  } catch (cause) {
    if (!(cause instanceof EffectMatchError)) throw cause;
    throw new EffectMatchError(
      'ERR_EM_CONFIG_INVALID',
      `the issuers are not usable: ${cause.message}`,
      { cause },
    );
  }
}

const LIMITS: OptionNames<LimitsConfig> = {
  operations: true,
  relations: true,
  maxEffects: true,
  maxRows: true,
  amounts: true,
  hours: true,
  maxLifetime: true,
};

/** A limit that is misspelt, inherited or in a list must not mean "no limit". */
function limitsOf(issuer: string, limits: LimitsConfig): object {
  const misnamed = misnamedOption(limits, LIMITS);
  if (misnamed !== undefined) throw invalid(`issuer "${issuer}", limits: ${misnamed}`);
  const { relations, amounts, hours, maxLifetime, ...others } = limits;
  const windows = hours === undefined ? undefined : [hours].flat();
  for (const window of windows ?? []) checkZone(issuer, window?.zone);
  return {
    ...others,
    ...(relations !== undefined && {
      relations: relations.map((relation) =>
        typeof relation === 'string' ? { name: relation, ops: OPS } : relation,
      ),
    }),
    ...(amounts !== undefined && {
      amounts: amounts.map(({ max, ...place }) => ({ ...place, max: decimalOf(issuer, max) })),
    }),
    ...(windows !== undefined && { hours: windows }),
    ...(maxLifetime !== undefined && { maxLifetimeMs: lifetimeOf(issuer, maxLifetime) }),
  };
}

function lifetimeOf(issuer: string, maxLifetime: string | number): number {
  try {
    return parseDuration(maxLifetime, Number.MAX_SAFE_INTEGER);
  } catch {
    throw invalid(
      `issuer "${issuer}" has the maxLifetime ${String(maxLifetime)}; write a duration such as '1h'`,
    );
  }
}

function checkZone(issuer: string, zone: string): void {
  try {
    localTime(String(zone), 0);
  } catch {
    throw invalid(
      `issuer "${issuer}" has hours in the zone "${zone}", which is not known; write one such as Europe/Berlin`,
    );
  }
}

function decimalOf(issuer: string, max: number | bigint | string): string {
  const text = String(max);
  if (/^-?(?:0|[1-9]\d*)(?:\.\d+)?$/.test(text)) return text;
  throw invalid(
    `issuer "${issuer}" has the amount limit ${text}; write a decimal number such as 10000 or '0.05'`,
  );
}

/**
 * Rejects a limit on something that is not registered: a misspelt name must not mean "no limit".
 */
export function checkTargets(policy: Policy, adapters: ReadonlyMap<string, Admitted>): void {
  for (const [issuer, { may, limits }] of Object.entries(policy.issuers)) {
    if (limits === undefined) continue;
    const approvable = [...adapters].filter(([name]) => may.includes(name));
    const targets = approvable.flatMap(([, { adapter }]) => adapter.registration.targets);
    for (const { target, column } of placesOf(limits)) {
      const found = targets.filter(({ name }) => name === target);
      if (found.length === 0)
        throw invalid(`issuer "${issuer}" has a limit for "${target}", which is not registered`);
      if (column === undefined || found.some((candidate) => hasColumn(candidate, column))) continue;
      throw invalid(
        `issuer "${issuer}" has a limit for "${target}"."${column}", but there is no such column`,
      );
    }
  }
}

function placesOf(
  limits: Limits,
): readonly { readonly target: string; readonly column?: string }[] {
  const { relations = [], maxRows = {}, amounts = [] } = limits;
  const named = [...relations.map(({ name }) => name), ...Object.keys(maxRows)];
  return [...named.map((target) => ({ target })), ...amounts];
}

function hasColumn({ columns, key, volatile }: Target, column: string): boolean {
  return [...columns, ...key, ...volatile].includes(column);
}

/** The configured operations by name. */
export function operationsOf(config: Configured): ReadonlyMap<string, Operation> {
  const operations = new Map(Object.entries(config.operations ?? {}));
  for (const [key, { name, adapter, second }] of operations) {
    checkSecond(`operation "${name}"`, second, Object.keys(config.issuers));
    if (key !== name)
      throw invalid(`operation "${name}" is configured as "${key}"; use its own name`);
    if (!Object.hasOwn(config.adapters, adapter)) {
      throw invalid(
        `operation "${name}" is for adapter "${adapter}", but no adapter of that name is configured`,
      );
    }
  }
  return operations;
}

const invalid = errorsOf('ERR_EM_CONFIG_INVALID');
