import type {
  AdapterContext,
  AdapterFactory,
  Approval,
  RemoteAdapter,
} from '../../contract/adapter.ts';
import { digestValueOf } from '../../crypto/digest.ts';
import { EffectMatchError } from '../../errors.ts';
import { buildContent, type Content } from '../../http/content.ts';
import { decodeData } from '../../http/decode-data.ts';
import { type Gateway, refused } from '../../http/gateway.ts';
import { parseJson } from '../../http/json.ts';
import { canonical } from '../../protocol/canon.ts';
import type { ApprovedEffect, CellRow } from '../../protocol/effect.ts';
import { findOversized } from '../../protocol/limits.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { fieldAt } from './layout.ts';
import {
  checkOptionNames,
  type MediatedOperation,
  type MediatedOptions,
  type PlannedEffect,
} from './options.ts';
import { asPlan, planOf } from './plan.ts';
import { openShared } from './remote.ts';

/** The agent says nothing about the request: what is sent follows from what was approved. */
export type MediatedAction = Readonly<Record<never, never>>;

type Planned = Pick<Approval, 'effects' | 'requires'>;

/**
 * A service behind a gateway that holds the only credential. The request is derived from the
 * approved outcome alone and sent once, with the occurrence as its idempotency key.
 */
export function mediatedHttp(options: MediatedOptions): AdapterFactory<MediatedAction> {
  return { open: async (context) => openMediated(options, context) };
}

function openMediated(
  options: MediatedOptions,
  context: AdapterContext,
): RemoteAdapter<MediatedAction> {
  checkOptionNames(options);
  const operations = Object.entries(options.operations ?? {});
  for (const [name, operation] of operations) checkMediated(name, operation);
  const shapes = new Map(operations.map(([name, { effects }]) => [shapeOf(effects), name]));
  if (shapes.size !== operations.length) throw refused('two operations are for the same effects');
  const nameOf = ({ effects }: Pick<Planned, 'effects'>) =>
    findOversized(effects) === undefined ? shapes.get(shapeOf(repeated(effects))) : undefined;
  const build = (planned: Planned) => {
    const name = nameOf(planned);
    const operation = name === undefined ? undefined : options.operations[name];
    if (name === undefined || operation === undefined) {
      const known = operations.map(([known]) => known).join(', ');
      throw invalid(
        `no operation has these effects, so no request can be derived from them (there are: ${known})`,
      );
    }
    return deriveContent(gateway, name, operation, planned);
  };
  const { gateway, shared } = openShared('MEDIATED', options, context, {
    check: (manifest) => void build(manifest),
    operationOf: (approved) => options.operations[nameOf(approved) ?? ''],
  });
  const samples = operations.map(([, operation]) => sampleOf(operation));
  return {
    ...shared,
    parseAction: parseNothing,
    describeAction: () => ({}),
    buildRequest: (approved) => ({ content: build(approved) as unknown as Value }),
    probe: {
      fingerprint: (digest) => gateway.keyedFingerprint(digest),
      samples: () =>
        samples.map((sample) => ({ ...blankApproval(shared, context.name), ...sample })),
      exclusiveCredential: async () => await everyRefused(gateway, samples.map(build)),
      idempotent: async () => {
        for (const [index, [name, operation]] of operations.entries()) {
          const sample = samples[index];
          if (
            sample === undefined ||
            !(await honoursKey(gateway, build(sample), operation, { adapter: context.name, name }))
          ) {
            return false;
          }
        }
        return true;
      },
    },
  };
}

function checkMediated(name: string, operation: MediatedOperation): void {
  const { effects, idempotency, request, sample, identifier } = operation;
  if (!Array.isArray(effects) || effects.length === 0)
    throw refused(`operation "${name}" does not say its effects`);
  if (typeof idempotency?.header !== 'string' || !/^[A-Za-z0-9-]+$/.test(idempotency.header)) {
    throw refused(
      `operation "${name}" has no idempotency mechanism: name the header that carries the key, or use opaqueHttp`,
    );
  }
  if (typeof request !== 'function')
    throw refused(`operation "${name}" does not say how its request is derived`);
  if (!Array.isArray(sample) || shapeOf(sample) !== shapeOf(effects)) {
    throw refused(
      `operation "${name}" needs a sample with the effects it is for, so that admission can try it`,
    );
  }
  if (!Array.isArray(identifier) || identifier.length === 0) {
    throw refused(`operation "${name}" needs identifier: where its response names what it made`);
  }
}

/**
 * Approved effects are in canonical order whatever the order they were stated in; the request sees
 * them so.
 */
function deriveContent(
  gateway: Gateway,
  name: string,
  operation: MediatedOperation,
  planned: Planned,
): Content {
  const { method, path, idempotency, ifMatch, request } = operation;
  const effects = planned.effects.toSorted((a, b) => (canonical(a) < canonical(b) ? -1 : 1));
  const fixed = { method, path, idempotency: idempotency.header.toLowerCase() };
  const { headers, body, ...parts } = request(planOf(effects));
  const condition = ifMatch && { 'if-match': versionRequired(name, ifMatch, planned) };
  const whole = {
    ...parts,
    headers: { ...headers, ...condition },
    ...(body !== undefined && { body: decodeData(body) }),
  };
  return buildContent(name, fixed, whole, [gateway.credentialHeader]);
}

/** The version of the entry that is changed: that of another one says nothing about it. */
function versionRequired(
  name: string,
  { target, column }: NonNullable<MediatedOperation['ifMatch']>,
  { effects, requires }: Planned,
): string {
  const changed = planOf(effects).effects.filter((effect) => effect.target === target);
  const keys = new Set(changed.map(({ key }) => canonical(key)));
  const versions = requires
    .filter(
      (required) =>
        required.target === target && (keys.size === 0 || keys.has(canonical(required.key))),
    )
    .map(({ row }) => row?.[column])
    .filter((version) => version !== undefined);
  const [version] = versions;
  if (typeof version === 'string' && new Set(versions).size === 1) return version;
  throw invalid(
    `operation "${name}" is conditional: require "${column}" of the one "${target}" that is changed, as it is now`,
  );
}

function shapeOf(effects: readonly { readonly op: string; readonly target: string }[]): string {
  return effects
    .map(({ op, target }) => `${op} ${target}`)
    .toSorted()
    .join('\n');
}

function repeated(effects: readonly ApprovedEffect[]): readonly ApprovedEffect[] {
  return effects.flatMap((effect) => Array.from({ length: effect.count }, () => effect));
}

/** A sample as an approval would carry it, with the version that a conditional operation needs. */
function sampleOf({ sample, ifMatch }: MediatedOperation): Planned {
  const effects = asPlan(sample).effects.map(asApproved);
  const key = sample.find(({ target }) => target === ifMatch?.target)?.key ?? { id: 'sample' };
  const requires =
    ifMatch === undefined
      ? []
      : [{ target: ifMatch.target, key, row: { [ifMatch.column]: '"sample"' } }];
  return { effects, requires };
}

function asApproved({ op, target, key, before, after }: PlannedEffect): ApprovedEffect {
  return { op, target, key: cells(key), before: cells(before), after: cells(after), count: 1 };
}

function cells(row: Row): CellRow {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [column, { is: value }]));
}

function blankApproval({ registration }: Pick<RemoteAdapter, 'registration'>, adapter: string) {
  return { version: 1 as const, adapter, registration, watch: [], salt: '0'.repeat(32) };
}

/**
 * The same requests without the credential: the service itself must turn every one of them away.
 */
async function everyRefused(gateway: Gateway, contents: readonly Content[]): Promise<boolean> {
  for (const content of contents) {
    const exchanged = await gateway.send(content, probeKey(canonical(content)), { bare: true });
    if (exchanged.kind !== 'response') throw unavailable(exchanged.why);
    if (exchanged.status !== 401 && exchanged.status !== 403) return false;
  }
  return true;
}

/**
 * The same key twice names the same thing twice. The key is always the same, so that one entry is
 * all that remains.
 */
async function honoursKey(
  gateway: Gateway,
  content: Content,
  { identifier, ifMatch }: MediatedOperation,
  { adapter, name }: { readonly adapter: string; readonly name: string },
): Promise<boolean> {
  const key = probeKey(`${adapter} ${name}\n${canonical(content)}`);
  const made: (Value | undefined)[] = [];
  for (let times = 0; times < 2; times += 1) {
    const exchanged = await gateway.send(content, key);
    if (exchanged.kind !== 'response') throw unavailable(exchanged.why);
    // The sample of a conditional operation names a version that never was. A service that refuses
    // it looks at the condition, and then the same request cannot act twice, because the first one
    // changes the version.
    if (ifMatch !== undefined) return exchanged.status === 412;
    if (times === 0 && exchanged.status >= 300)
      throw sampleRefused(adapter, name, exchanged.status);
    const body = parseJson(exchanged.body);
    made.push(exchanged.status < 300 && body !== undefined ? fieldAt(body, identifier) : undefined);
  }
  return made[0] !== undefined && canonical(made[0]) === canonical(made[1] ?? null);
}

/** A service that does not do what the sample asks shows nothing about its keys. */
function sampleRefused(
  adapter: string,
  name: string,
  status: number,
): EffectMatchError<'ERR_EM_ADAPTER_REFUSED'> {
  const cause =
    status === 401 || status === 403
      ? 'check the credential'
      : 'its sample must be a request that the service accepts';
  return new EffectMatchError(
    'ERR_EM_ADAPTER_REFUSED',
    `adapter "${adapter}" failed the admission probe idempotent-service: the service answered ${status} to the sample of ` +
      `operation "${name}"; ${cause}`,
  );
}

function probeKey(of: string): string {
  return `occ_${digestValueOf('effectmatch/http-probe/v1', of).slice(0, 40)}`;
}

function parseNothing(input: unknown): MediatedAction {
  const text = input === undefined ? '{}' : safeText(input);
  if (text === '{}') return Object.freeze({});
  throw new EffectMatchError(
    'ERR_EM_ACTION_INVALID',
    'the request is derived from what was approved, and nothing can be added to it: pass {} as the action',
  );
}

function safeText(input: unknown): string {
  try {
    return canonical(input);
  } catch (cause) {
    throw new EffectMatchError('ERR_EM_ACTION_INVALID', 'the action is not plain data', { cause });
  }
}

function invalid(what: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', what);
}

function unavailable(why: string): EffectMatchError<'ERR_EM_ADAPTER_UNAVAILABLE'> {
  return new EffectMatchError(
    'ERR_EM_ADAPTER_UNAVAILABLE',
    `the service did not answer an admission probe: ${why}`,
  );
}
