import { copyAction } from '../backend/action.ts';
import { adapterCode, deniedOutlets } from '../backend/setup.ts';
import { refuseAction } from '../contract/action-input.ts';
import type {
  AdapterContext,
  Approval,
  Dispatch,
  Evidence,
  Outlet,
  RemoteAdapter,
  RemoteProbe,
  Survey,
} from '../contract/adapter.ts';
import type { RequestPermit } from '../contract/proof.ts';
import { digestValueOf, requestDigest } from '../crypto/digest.ts';
import { canonical } from '../protocol/canon.ts';
import type { StateRead, StateReading } from '../protocol/effect.ts';
import type { Row } from '../protocol/value.ts';
import type { Content } from './content.ts';
import { invalid } from './errors.ts';
import type { Exchanged } from './exchange.ts';
import type { Gateway } from './gateway.ts';
import { Recent } from './recent.ts';

/** The only way to a service: where it leads, and fingerprints of what opens it. */
export type ServiceAccess = Pick<Gateway, 'host' | 'fingerprint' | 'keyedFingerprint'>;

/** Who an adapter is and what it can reach, as it is said of every service behind a gateway. */
export interface DescribedService {
  readonly kind: string;
  readonly backend: string;
  readonly capability: string;
  readonly gateway: ServiceAccess;
  /** The adapter's `import.meta.url`. */
  readonly module: string;
  /** Folders that its code stands on besides this one, relative to the module. */
  readonly folders?: readonly string[];
  /** Everything that may be requested. */
  readonly operations: Readonly<Record<string, { readonly method: string; readonly path: string }>>;
  /** What else could be reached and is not, each with what keeps it so; HTTP unless said. */
  readonly denied?: Readonly<Record<string, string>>;
  /** Identifies everything else that decides what is sent and what is believed. */
  readonly configuration: string;
}

const DENIED = {
  'other requests to the service': 'the gateway alone has the credential',
  'other hosts': 'one registered host; no redirect is followed',
};

/** The identity and the survey of an adapter that reaches its service through a gateway. */
export function describeService(
  service: DescribedService,
): Pick<RemoteAdapter, 'identity' | 'survey'> {
  const { kind, backend, capability, gateway, module, folders = [], configuration } = service;
  const code = adapterCode(module, new URL('.', import.meta.url).href, ...folders);
  // The same frozen list every time, so that the core digests it once.
  const outlets = outletsOf(service);
  const fixed = {
    backend,
    executor: `${capability} gateway to ${gateway.host}`,
    outlets,
    configuration,
    enforcement: 'the agent holds no credential of this service',
  };
  return {
    identity: { kind, backend, code: `${code}+${configuration}` },
    survey: async (): Promise<Survey> => ({ ...fixed, credentials: gateway.fingerprint() }),
  };
}

/**
 * The registered requests, and what keeps everything else from being sent with the gateway's
 * credential.
 */
function outletsOf({ gateway, operations, denied = DENIED }: DescribedService): readonly Outlet[] {
  const requests = Object.entries(operations).map(([name, { method, path }]) => ({
    outlet: `operation ${name}: ${method} ${gateway.host}${path}`,
    disposition: 'observed' as const,
    by: 'its own read-back, after it was sent once',
  }));
  const outlets = [...requests, ...deniedOutlets(denied)];
  return Object.freeze(outlets.map((outlet) => Object.freeze(outlet)));
}

/** What a read-back found. Attributed to the request unless `unattributed` says otherwise. */
export type ReadBackFindings = Pick<Evidence, 'records' | 'channels' | 'assigned' | 'refused'> &
  Partial<Pick<Evidence, 'unattributed'>>;

/** A request as canonical data, with the name of its operation. */
type NamedRequest = Row & { readonly operation: string };

/** What became of a request. Only `not-sent` says that nothing of it left. */
type Sent = Extract<Exchanged, { kind: 'not-sent' }> | { readonly kind: 'lost' | 'response' };

/** What is particular to a remote adapter; {@link remoteAdapter} adds what all of them do. */
export interface RemoteBackend<Action, Request extends NamedRequest = Content>
  extends DescribedService,
    Pick<
      RemoteAdapter<Action>,
      | 'capability'
      | 'registration'
      | 'profiles'
      | 'channels'
      | 'normalise'
      | 'read'
      | 'parseAction'
      | 'describeAction'
    > {
  readonly capability: RemoteAdapter['capability'];
  readonly context: AdapterContext;
  /** See `buildRequest` of {@link RemoteAdapter}. */
  request(approved: Approval, action: Action): Request;
  /** Sends a request that its permit allows, through the gateway, once. */
  send(content: Request, permit: RequestPermit): Promise<Sent>;
  /**
   * Looks for what the request did. A string says why that is not known. `operation` is undefined
   * if a process that did not send the request asks.
   */
  lookUp(
    occurrence: string,
    operation: string | undefined,
    approved: Approval,
  ): Promise<ReadBackFindings | string>;
  /** Absent if nothing is promised about the service. */
  readonly probe?: Omit<RemoteProbe, 'fingerprint'>;
  /** Ends connections, if it keeps some. */
  close?(): Promise<void>;
}

/** Nothing is demanded of an OPAQUE service. */
const NOTHING_PROMISED: Omit<RemoteProbe, 'fingerprint'> = {
  samples: () => [],
  exclusiveCredential: async () => false,
  idempotent: async () => false,
};

/** A remote adapter: what all of them do, around what is particular to one. */
export function remoteAdapter<Action, Request extends NamedRequest = Content>(
  backend: RemoteBackend<Action, Request>,
): RemoteAdapter<Action> {
  const { capability, registration, profiles, channels, gateway, context } = backend;
  const { normalise, read, parseAction, describeAction } = backend;
  const sentAtMs = new Recent<number>();
  return {
    ...describeService(backend),
    capability,
    registration,
    profiles,
    channels,
    normalise,
    read,
    parseAction,
    describeAction,
    buildRequest: (approved, action) => ({ content: backend.request(approved, action) }),

    async dispatch(permit, request): Promise<Dispatch> {
      const { bound, occurrence } = permit.record;
      if (!('request' in bound) || bound.request !== requestDigest(request)) {
        return { mayHaveSent: false, why: 'the request is not the one that the permit is for' };
      }
      sentAtMs.set(occurrence, context.clock.now());
      const exchanged = await backend.send(request.content as Request, permit);
      // No status proves that nothing left: the request had arrived.
      if (exchanged.kind === 'not-sent') return { mayHaveSent: false, why: exchanged.why };
      return { mayHaveSent: true };
    },

    async readBack(occurrence, request, approved) {
      const toMs = context.clock.now();
      const fromMs = sentAtMs.get(occurrence);
      const operation = (request?.content as Request | undefined)?.operation;
      const found =
        fromMs === undefined && hasTime(approved)
          ? 'when the request ran is no longer known'
          : await backend.lookUp(occurrence, operation, approved);
      const facts = {
        candidate: `request ${occurrence}`,
        window: { fromMs: fromMs ?? toMs, toMs },
        unattributed: 0,
      };
      if (typeof found === 'string') return { ...facts, ...silence(channels, found) };
      const evidence = digestValueOf('effectmatch/http-evidence/v1', found.records);
      return { ...facts, evidence, ...found };
    },

    probe: {
      ...(backend.probe ?? NOTHING_PROMISED),
      fingerprint: (digest) => gateway.keyedFingerprint(digest),
    },
    close: async () => await backend.close?.(),
  };
}

/** Whether a time was approved as "now", which can be judged only by who knows when that was. */
function hasTime({ effects }: Approval): boolean {
  const cells = effects.flatMap(({ key, before, after }) =>
    [key, before, after].flatMap((row) => Object.values(row ?? {})),
  );
  return cells.some((cell) => 'now' in cell);
}

/** Evidence in which nothing is claimed. */
function silence(channels: readonly string[], why: string) {
  const silent = channels.map((channel) => ({ channel, kind: 'silent' as const, why }));
  return {
    evidence: 'none',
    records: [],
    channels: silent,
    assigned: [],
  };
}

/** Reads registered entries in the order asked, with `readRow` for one of them. */
export async function readRows(
  reads: readonly StateRead[],
  readRow: (read: StateRead) => Promise<Row | null>,
): Promise<readonly StateReading[]> {
  const readings: StateReading[] = [];
  for (const read of reads) {
    const { target, key } = read;
    const row = await readRow(read);
    readings.push({ target, key, row: row && pick(row, read) });
  }
  return readings;
}

function pick(row: Row, { target, columns = Object.keys(row) }: StateRead): Row {
  const picked = columns.map((column) => {
    if (Object.hasOwn(row, column)) return [column, row[column] ?? null] as const;
    throw invalid(`the service did not say "${column}" of "${target}"`);
  });
  return Object.fromEntries(picked);
}

/** An adapter that derives its requests from approvals alone takes no action but `{}`. */
export function parseEmptyAction(input: unknown): Readonly<Record<never, never>> {
  if (input === undefined || canonical(copyAction(input)) === '{}') return Object.freeze({});
  throw refuseAction(
    'the request is derived from what was approved, and nothing can be added to it: pass {} as the action',
  );
}
