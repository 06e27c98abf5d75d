import { normaliseManifest } from '../../backend/normalise.ts';
import type { AdapterContext, Dispatch, RemoteAdapter } from '../../contract/adapter.ts';
import { codeIdentity, digestFolders } from '../../crypto/code-identity.ts';
import { requestDigest } from '../../crypto/digest.ts';
import { EffectMatchError } from '../../errors.ts';
import { type Content, fillPath } from '../../http/content.ts';
import { Gateway } from '../../http/gateway.ts';
import { normaliseRow } from '../../http/number.ts';
import { Recent } from '../../http/recent.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Target } from '../../protocol/registration.ts';
import { checkOperations, identifyOptions, registrationOf, targetsOf } from './layout.ts';
import { serviceSchema } from './numbers.ts';
import type {
  MediatedOperation,
  MediatedOptions,
  OpaqueOperation,
  OpaqueOptions,
  TargetOptions,
} from './options.ts';
import { planOf } from './plan.ts';
import { CHANNELS, readBackEvidence, silence } from './read-back.ts';
import { surveyService } from './survey.ts';

type Operation = MediatedOperation | OpaqueOperation;
type Shared = Omit<RemoteAdapter, 'parseAction' | 'describeAction' | 'buildRequest' | 'probe'>;

export interface Opened {
  readonly gateway: Gateway;
  readonly targets: readonly Target[];
  readonly shared: Shared;
}

/**
 * What MEDIATED and OPAQUE adapters have in common: everything but where the request comes from.
 */
export function openShared(
  capability: 'MEDIATED' | 'OPAQUE',
  options: MediatedOptions | OpaqueOptions,
  context: AdapterContext,
  hooks: {
    /** Refuses a manifest that no request can be derived from, before anybody signs it. */
    readonly check: (manifest: Manifest) => void;
    /** The operation that an approval is for, as far as recovery can know it. */
    readonly operationOf: (
      approved: Parameters<RemoteAdapter['buildRequest']>[0],
    ) => Operation | undefined;
  },
): Opened {
  const gateway = new Gateway(options.service, context);
  const targets = targetsOf(options.targets);
  checkOperations(options.operations, targets);
  const { backend } = options.service;
  const { url } = options.service;
  const { operations, targets: described } = options;
  const optionsDigest = identifyOptions({ url, operations, described });
  const registration = registrationOf(targets, options, capability);
  const sentAtMs = new Recent<number>();
  const shared: Shared = {
    capability,
    identity: { kind: 'http', backend, code: adapterCode(optionsDigest) },
    registration,
    profiles: ['row-event', 'net-state', 'relation-write'],
    channels: CHANNELS,
    async normalise(manifest) {
      const normalised = normaliseManifest(serviceSchema(registration), manifest);
      // Without effects it is the state of an operation contract that is normalised, and nothing to
      // request yet.
      if (normalised.effects.length > 0) hooks.check(normalised);
      return normalised;
    },
    read: (reads) => readEntries(gateway, options.targets, reads),
    survey: async () => surveyService({ gateway, backend, capability, operations, optionsDigest }),
    async dispatch(permit, request) {
      if (requestDigest(request) !== permitted(permit.record.bound)) {
        return { mayHaveSent: false, why: 'the request is not the one that the permit is for' };
      }
      const { occurrence } = permit.record;
      sentAtMs.set(occurrence, context.clock.now());
      return judgeDispatch(
        await gateway.send(request.content as unknown as Content, occurrence, { warrant: permit }),
      );
    },
    async readBack(occurrence, request, approved) {
      const named = (request?.content as unknown as Content | undefined)?.operation;
      const operation = named === undefined ? hooks.operationOf(approved) : operations[named];
      const toMs = context.clock.now();
      const fromMs = sentAtMs.get(occurrence);
      const window = { fromMs: fromMs ?? toMs, toMs };
      const unknown =
        operation === undefined
          ? 'which operation was requested is no longer known'
          : timeUnknown();
      if (operation === undefined || unknown !== undefined) {
        return {
          candidate: `request ${occurrence}`,
          unattributed: 0,
          window,
          ...silence(unknown ?? ''),
        };
      }
      const plan = planOf(approved.effects);
      const { readBack, assigns = [] } = operation;
      return readBackEvidence(gateway, {
        key: occurrence,
        plan,
        options: readBack,
        assigns,
        window,
      });

      /**
       * Recovery does not know when the request ran, so a time that was approved as "now" cannot be
       * checked.
       */
      function timeUnknown(): string | undefined {
        const timed = approved.effects.some(({ key, before, after }) =>
          [key, before, after].some((cells) =>
            Object.values(cells ?? {}).some((cell) => 'now' in cell),
          ),
        );
        return timed && fromMs === undefined
          ? 'when the request ran is no longer known'
          : undefined;
      }
    },
    close: async () => {},
  };
  return { gateway, targets, shared };
}

/**
 * Only a connection that never stood proves that nothing left. No status says so: the request had
 * arrived.
 */
function judgeDispatch(exchanged: Awaited<ReturnType<Gateway['send']>>): Dispatch {
  return exchanged.kind === 'not-sent'
    ? { mayHaveSent: false, why: exchanged.why }
    : { mayHaveSent: true };
}

function permitted(bound: object): unknown {
  return 'request' in bound ? bound.request : undefined;
}

/** Reads registered entries in the order asked; a service that does not answer is a fault. */
export async function readEntries(
  gateway: Gateway,
  targets: Readonly<Record<string, TargetOptions>>,
  reads: readonly StateRead[],
): Promise<readonly StateReading[]> {
  const readings: StateReading[] = [];
  for (const { target, key, columns } of reads) {
    const how = targets[target]?.read;
    if (how === undefined)
      throw invalid(`"${target}" cannot be read; register how, or do not require it`);
    const answer = await gateway.get(fillPath(how.path, key));
    if (answer.kind === 'silent') {
      throw new EffectMatchError(
        'ERR_EM_ADAPTER_UNAVAILABLE',
        `"${target}" could not be read: ${answer.why}`,
      );
    }
    const row =
      answer.kind === 'absent' ? null : normaliseRow(how.row(answer.body, answer.headers));
    const wanted = columns ?? Object.keys(row ?? {});
    const missing = row === null ? undefined : wanted.find((column) => !Object.hasOwn(row, column));
    if (missing !== undefined) throw invalid(`the service did not say "${missing}" of "${target}"`);
    const picked = row && Object.fromEntries(wanted.map((column) => [column, row[column] ?? null]));
    readings.push({ target, key, row: picked });
  }
  return readings;
}

/** The adapter's own modules, those they stand on, and what they were configured with. */
export function adapterCode(optionsDigest: string): string {
  const beneath = digestFolders(
    ['../../http/', '../../backend/'].map((folder) => new URL(folder, import.meta.url)),
  );
  return [codeIdentity(new URL('.', import.meta.url)), beneath, optionsDigest].join('+');
}

function invalid(what: string): EffectMatchError<'ERR_EM_MANIFEST_INVALID'> {
  return new EffectMatchError('ERR_EM_MANIFEST_INVALID', what);
}
