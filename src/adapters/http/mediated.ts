import { unavailable } from '../../backend/setup.ts';
import type { AdapterFactory, Approval } from '../../contract/adapter.ts';
import { digestValueOf } from '../../crypto/digest.ts';
import { EffectMatchError } from '../../errors.ts';
import { type Content, decodeData, isHeaderName } from '../../http/content.ts';
import { invalid, refused } from '../../http/errors.ts';
import type { Exchanged } from '../../http/exchange.ts';
import type { Gateway } from '../../http/gateway.ts';
import { parseJson } from '../../http/json.ts';
import { type Plan, type PlannedEffect, planOf } from '../../http/plan.ts';
import { parseEmptyAction } from '../../http/remote.ts';
import { canonical } from '../../protocol/canon.ts';
import type { ApprovedEffect, CellRow } from '../../protocol/effect.ts';
import { findOversized } from '../../protocol/limits.ts';
import type { Row, Value } from '../../protocol/value.ts';
import { openOperations, type RequestSource } from './operations.ts';
import type { MediatedOperation, MediatedOptions } from './options.ts';
import { fieldAt, type OpenedService } from './service.ts';

/** Always empty: the request is derived from the approval, and the agent cannot add to it. */
export type MediatedAction = Readonly<Record<never, never>>;

/** What a request is derived from. */
type Planned = Pick<Approval, 'effects' | 'requires'>;

/**
 * A service behind a gateway that holds the only credential. The request is derived only from the
 * approved outcome and sent once, with the occurrence as its idempotency key.
 */
export function mediatedHttp(options: MediatedOptions): AdapterFactory<MediatedAction> {
  return {
    open: async (context) =>
      openOperations('MEDIATED', options, context, (service) =>
        derived(options, context.name, service),
      ),
  };
}

/** Derives requests from approvals. */
function derived(
  options: MediatedOptions,
  adapter: string,
  { gateway, registration, normalise }: OpenedService,
): RequestSource<MediatedAction> {
  const operations = Object.entries(options.operations).map(named);
  const byShape = new Map(operations.map((operation) => [shapeOf(operation.effects), operation]));
  if (byShape.size !== operations.length) throw refused('two operations are for the same effects');
  const find = ({ effects }: Pick<Planned, 'effects'>) =>
    findOversized(effects) === undefined ? byShape.get(shapeOf(effects)) : undefined;
  const derive = (planned: Planned): Content => {
    const operation = find(planned);
    if (operation !== undefined) return deriveContent(gateway, operation, planned);
    const known = operations.map(({ name }) => name).join(', ');
    throw invalid(
      `no operation has these effects, so no request can be derived from them (there are: ${known})`,
    );
  };
  const blank = {
    version: 1 as const,
    adapter,
    registration,
    watch: [],
    salt: '0'.repeat(32),
  };
  return {
    async normalise(manifest) {
      const normalised = await normalise(manifest);
      // Without effects, this is the state of an operation contract, and there is nothing to
      // request yet.
      if (normalised.effects.length > 0) derive(normalised);
      return normalised;
    },
    parseAction: parseEmptyAction,
    describeAction: () => ({}),
    request: derive,
    nameOf: (approved) => find(approved)?.name,
    probe: {
      samples: () => operations.map((operation) => ({ ...blank, ...sampleOf(operation) })),
      async exclusiveCredential() {
        for (const operation of operations) {
          if (!(await needsCredential(gateway, derive(sampleOf(operation))))) return false;
        }
        return true;
      },
      async idempotent() {
        for (const operation of operations) {
          const content = derive(sampleOf(operation));
          if (!(await honoursKey(gateway, content, operation, adapter))) return false;
        }
        return true;
      },
    },
  };
}

type NamedOperation = MediatedOperation & { readonly name: string };

/** Checks an operation and adds its name. */
function named([name, operation]: readonly [string, MediatedOperation]): NamedOperation {
  const { effects, idempotency, request, sample, identifier } = operation;
  const wrong = (what: string) => refused(`operation "${name}" ${what}`);
  if (!Array.isArray(effects) || effects.length === 0) throw wrong('does not say its effects');
  if (!isHeaderName(idempotency?.header)) {
    throw wrong(
      'has no idempotency mechanism: name the header that carries the key, or use opaqueHttp',
    );
  }
  if (typeof request !== 'function') throw wrong('does not say how its request is derived');
  if (!Array.isArray(sample) || shapeOf(sample) !== shapeOf(effects))
    throw wrong('needs a sample with the effects it is for, so that admission can try it');
  if (!Array.isArray(identifier) || identifier.length === 0)
    throw wrong('needs identifier: where its response names what it made');
  return { ...operation, name };
}

/** The kinds of effects and the number of each, in any order. */
function shapeOf(
  effects: readonly { readonly op: string; readonly target: string; readonly count?: number }[],
): string {
  return effects
    .flatMap(({ op, target, count = 1 }) => Array<string>(count).fill(`${op} ${target}`))
    .toSorted()
    .join('\n');
}

/** The request gets the approved effects in canonical order, however they were stated. */
function deriveContent(gateway: Gateway, operation: NamedOperation, planned: Planned): Content {
  const { name, method, path, idempotency, ifMatch, request } = operation;
  const effects = planned.effects.toSorted((a, b) => (canonical(a) < canonical(b) ? -1 : 1));
  const plan = planOf(effects);
  const { headers, body, ...parts } = request(plan);
  const condition = ifMatch && { 'if-match': versionRequired(operation, ifMatch, plan, planned) };
  return gateway.compose(
    {
      operation: name,
      method,
      path,
      idempotency: idempotency.header.toLowerCase(),
    },
    {
      ...parts,
      headers: { ...headers, ...condition },
      ...(body !== undefined && { body: decodeData(body) }),
    },
  );
}

/** The required version of the changed entry. Versions of other entries do not count. */
function versionRequired(
  { name }: NamedOperation,
  { target, column }: NonNullable<MediatedOperation['ifMatch']>,
  plan: Plan,
  { requires }: Planned,
): string {
  const changed = plan.effects.filter((effect) => effect.target === target);
  const keys = new Set(changed.map(({ key }) => canonical(key)));
  const versions = new Set<Value>();
  for (const required of requires) {
    const concerns = keys.size === 0 || keys.has(canonical(required.key));
    const version = required.target === target && concerns ? required.row?.[column] : undefined;
    if (version !== undefined) versions.add(version);
  }
  const [version] = versions;
  if (typeof version === 'string' && versions.size === 1) return version;
  throw invalid(
    `operation "${name}" is conditional: require "${column}" of the one "${target}" that is changed, as it is now`,
  );
}

/** A sample as an approval would state it, with the version that a conditional operation needs. */
function sampleOf({ sample, ifMatch }: MediatedOperation): Planned {
  const effects = sample.map(asApproved);
  if (ifMatch === undefined) return { effects, requires: [] };
  const { target, column } = ifMatch;
  const key = sample.find((effect) => effect.target === target)?.key ?? { id: 'sample' };
  return { effects, requires: [{ target, key, row: { [column]: '"sample"' } }] };
}

function asApproved({ op, target, key, before, after }: PlannedEffect): ApprovedEffect {
  return {
    op,
    target,
    key: cells(key),
    before: cells(before),
    after: cells(after),
    count: 1,
  };
}

function cells(row: Row): CellRow {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [column, { is: value }]));
}

/** Sends the same request without the credential. The service must refuse it. */
async function needsCredential(gateway: Gateway, content: Content): Promise<boolean> {
  const key = probeKey(canonical(content));
  const { status } = answerOf(await gateway.send(content, key, { bare: true }));
  return status === 401 || status === 403;
}

/**
 * Sends the request twice with the same key, which must name the same entry both times. The key is
 * fixed, so that at most one entry remains.
 */
async function honoursKey(
  gateway: Gateway,
  content: Content,
  { name, identifier, ifMatch }: NamedOperation,
  adapter: string,
): Promise<boolean> {
  const key = probeKey(`${adapter} ${name}\n${canonical(content)}`);
  const first = answerOf(await gateway.send(content, key));
  // The sample of a conditional operation names a version that never existed. A service that
  // refuses it checks the condition. The same request then cannot act twice, because the first one
  // changes the version.
  if (ifMatch !== undefined) return first.status === 412;
  if (first.status >= 300) {
    const isDenied = first.status === 401 || first.status === 403;
    const advice = isDenied
      ? 'check the credential'
      : 'its sample must be a request that the service accepts';
    throw new EffectMatchError(
      'ERR_EM_ADAPTER_REFUSED',
      `adapter "${adapter}" failed the admission probe idempotent-service: the service answered ` +
        `${first.status} to the sample of operation "${name}"; ${advice}`,
    );
  }
  const second = answerOf(await gateway.send(content, key));
  const [made, again] = [first, second].map(({ status, body }) => {
    const value = status < 300 ? parseJson(body) : undefined;
    return value === undefined ? undefined : fieldAt(value, identifier);
  });
  return made !== undefined && canonical(made) === canonical(again ?? null);
}

function answerOf(exchanged: Exchanged): Extract<Exchanged, { readonly kind: 'response' }> {
  if (exchanged.kind === 'response') return exchanged;
  throw unavailable(`the service did not answer an admission probe: ${exchanged.why}`);
}

function probeKey(of: string): string {
  return `occ_${digestValueOf('effectmatch/http-probe/v1', of).slice(0, 40)}`;
}
