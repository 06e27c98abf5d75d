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
import { RecentMap } from '../protocol/recent-map.ts';
import type { Row } from '../protocol/value.ts';
import type { Content } from './content.ts';
import { invalid } from './errors.ts';
import type { Exchanged } from './exchange.ts';
import type { Gateway } from './gateway.ts';
import { normaliseRow } from './number.ts';

/** The access to a service: its host, and fingerprints of its credential. */
export type ServiceAccess = Pick<Gateway, 'host' | 'fingerprint' | 'keyedFingerprint'>;

/** The identity of an adapter behind a gateway, and what it can reach. */
export interface DescribedService {
  readonly kind: string;
  readonly backend: string;
  readonly capability: string;
  readonly gateway: ServiceAccess;
  /** The adapter's `import.meta.url`. */
  readonly module: string;
  /** More folders with code of the adapter, relative to the module. */
  readonly folders?: readonly string[];
  /** Everything that can be requested. */
  readonly operations: Readonly<Record<string, { readonly method: string; readonly path: string }>>;
  /** Other outlets, and what denies them. Default: those of HTTP. */
  readonly denied?: Readonly<Record<string, string>>;
  /** Identifies all other options that affect requests and read-backs. */
  readonly configuration: string;
}

const DENIED = {
  'other requests to the service': 'the gateway alone has the credential',
  'other hosts': 'one registered host; no redirect is followed',
};

/** The identity and the survey of an adapter behind a gateway. */
export function describeService(
  service: DescribedService,
): Pick<RemoteAdapter, 'identity' | 'survey'> {
  const { kind, backend, capability, gateway, module, folders = [], configuration } = service;
  const code = adapterCode(module, new URL('.', import.meta.url).href, ...folders);
  // Always the same frozen list, so that the core digests it only once.
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

/** The registered requests, and what prevents other requests with the gateway's credential. */
function outletsOf({ gateway, operations, denied = DENIED }: DescribedService): readonly Outlet[] {
  const requests = Object.entries(operations).map(([name, { method, path }]) => ({
    outlet: `operation ${name}: ${method} ${gateway.host}${path}`,
    disposition: 'observed' as const,
    by: 'its own read-back, after it was sent once',
  }));
  const outlets = [...requests, ...deniedOutlets(denied)];
  return Object.freeze(outlets.map((outlet) => Object.freeze(outlet)));
}

/** What a read-back found. It comes from the request unless `unattributed` says otherwise. */
export type ReadBackFindings = Pick<Evidence, 'records' | 'channels' | 'assigned' | 'refused'> &
  Partial<Pick<Evidence, 'unattributed'>>;

/** A request as canonical data, with the name of its operation. */
type NamedRequest = Row & { readonly operation: string };

/** The result of a request. Only `not-sent` says that nothing of it was sent. */
type Sent = Extract<Exchanged, { kind: 'not-sent' }> | { readonly kind: 'lost' | 'response' };

/** What is specific to a remote adapter. {@link remoteAdapter} adds what all of them share. */
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
  /** Sends a permitted request once, through the gateway. */
  send(content: Request, permit: RequestPermit): Promise<Sent>;
  /**
   * Looks for what the request did, or returns why that is unknown. `operation` is undefined if
   * this process did not send the request.
   */
  lookUp(
    occurrence: string,
    operation: string | undefined,
    approved: Approval,
  ): Promise<ReadBackFindings | string>;
  /** Absent if nothing is promised about the service. */
  readonly probe?: Omit<RemoteProbe, 'fingerprint'>;
  /** Closes open connections, if there are any. */
  close?(): Promise<void>;
}

/** Nothing is required of an OPAQUE service. */
const NOTHING_PROMISED: Omit<RemoteProbe, 'fingerprint'> = {
  samples: () => [],
  exclusiveCredential: async () => false,
  idempotent: async () => false,
};

/** How many of its latest requests a process remembers. */
export const REQUESTS_KEPT = 10_000;

/** Builds a remote adapter: what all of them share, around what is specific to one. */
export function remoteAdapter<Action, Request extends NamedRequest = Content>(
  backend: RemoteBackend<Action, Request>,
): RemoteAdapter<Action> {
  const { capability, registration, profiles, channels, gateway, context } = backend;
  const { normalise, read, parseAction, describeAction } = backend;
  const sentAtMs = new RecentMap<string, number>(REQUESTS_KEPT);
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
      // No status proves that nothing was sent: the request had arrived.
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

/**
 * Whether a time was approved as "now". Only the process that sent the request knows when that was.
 */
function hasTime({ effects }: Approval): boolean {
  const cells = effects.flatMap(({ key, before, after }) =>
    [key, before, after].flatMap((row) => Object.values(row ?? {})),
  );
  return cells.some((cell) => 'now' in cell);
}

/** Evidence that claims nothing. */
function silence(channels: readonly string[], why: string) {
  const silent = channels.map((channel) => ({ channel, kind: 'silent' as const, why }));
  return {
    evidence: 'none',
    records: [],
    channels: silent,
    assigned: [],
  };
}

/** Reads registered entries in the given order. Each target says how to read one. */
export async function readEntries<How>(
  reads: readonly StateRead[],
  targets: Readonly<Record<string, { readonly read?: How }>>,
  readRow: (how: How, read: StateRead) => Promise<Row | null>,
): Promise<readonly StateReading[]> {
  const readings: StateReading[] = [];
  for (const read of reads) {
    const { target, key } = read;
    const how = targets[target]?.read;
    if (how === undefined)
      throw invalid(`"${target}" cannot be read; register how, or do not require it`);
    const row = await readRow(how, read);
    readings.push({ target, key, row: row && pick(normaliseRow(row), read) });
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

/** The only action of an adapter that derives its requests from approvals is `{}`. */
export function parseEmptyAction(input: unknown): Readonly<Record<never, never>> {
  if (input === undefined || canonical(copyAction(input)) === '{}') return Object.freeze({});
  throw refuseAction(
    'the request is derived from what was approved, and nothing can be added to it: pass {} as the action',
  );
}
