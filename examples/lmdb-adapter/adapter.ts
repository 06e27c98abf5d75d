// A complete adapter on a storage engine: tables of rows in one LMDB file. Elsewhere the last three
// imports are 'effectmatch/backend', 'effectmatch/contract' and 'effectmatch/protocol'.
import { randomUUID } from 'node:crypto';
import { ABORT, open } from 'lmdb';
import {
  adapterCode,
  type Backend,
  type Candidate,
  copyAction,
  deniedOutlets,
  fingerprint,
  normaliseManifest,
  normaliseReads,
  plainSchema,
  promotable,
  readFields,
  readItems,
  refuseAction,
  refusedPromotion,
  refuseUnknown,
  stageFailed,
} from '../../src/backend/index.ts';
import type { AdapterContext, AdapterFactory, MarkerText } from '../../src/contract/index.ts';
import {
  type ChangeRecord,
  canonical,
  type Registration,
  type Row,
  type StateRead,
  type Value,
} from '../../src/protocol/index.ts';

/** Columns include those of the key. */
type Table = { readonly columns: readonly string[]; readonly key: readonly string[] };
export type LmdbOptions = { readonly file: string; readonly tables: Record<string, Table> };

/** `put` writes a whole row, `remove` takes the key of one. */
type Step = { readonly op: 'put' | 'remove'; readonly table: string; readonly row: Row };
/** What an agent submits: steps that are carried out in this order. */
export type LmdbAction = { readonly steps: readonly Step[] };

/** The row under an address as canonical text; null if there is none. */
type Image = string | null;

/** What admission tries. Its name cannot be registered, so no action can write there. */
const PROBE = { name: '*probe', columns: ['token'], key: ['token'], volatile: [] };
type Store = ReturnType<typeof openStore>;

/** The engine. Everything is synchronous, so two candidates never share a transaction. */
function openStore({ file, tables }: LmdbOptions) {
  if (Object.hasOwn(tables, PROBE.name)) throw new Error(`no table can be named ${PROBE.name}`);
  const targets = Object.entries(tables).map(([name, table]) => ({ name, ...table, volatile: [] }));
  const registration: Registration = { profile: 'net-state', values: 'plain', targets };
  // Without overlapping sync, a commit is on disk before `transactionSync` returns.
  const root = open({ path: file, noSubdir: true, overlappingSync: false, cache: false });
  const rows = root.openDB<string, string>({ name: 'rows', encoding: 'string' });
  const markers = root.openDB<MarkerText, string>({ name: 'markers', encoding: 'json' });
  const control = root.openDB<string, string>({ name: 'control', encoding: 'string' });
  root.transactionSync(() => control.get('id') ?? control.putSync('id', randomUUID()));
  return {
    registration,
    schema: plainSchema(registration),
    markers,
    id: () => control.get('id') ?? '',
    get: (address: string): Image => rows.get(address) ?? null,
    set(address: string, image: Image): void {
      if (image === null) rows.removeSync(address);
      else rows.putSync(address, image);
    },
    /** Runs in a transaction that is flushed when this returns, unless it throws or says ABORT. */
    write: <T>(work: () => T): T => root.transactionSync(work),
    /** Looks at what every process has committed so far. */
    look<T>(work: () => T): T {
      root.resetReadTxn();
      return work();
    },
    close: () => root.close(),
  };
}

const tableNamed = ({ registration }: Store, name: unknown) =>
  registration.targets.find((table) => table.name === name) ?? PROBE;

const pick = (row: Row, columns: readonly string[]): Row =>
  Object.fromEntries(columns.map((column) => [column, row[column] ?? null]));

const rowOf = (image: Image): Row | null => (image === null ? null : JSON.parse(image));

/** Answers from images, which may be those beneath a candidate. */
function answer(store: Store, reads: readonly StateRead[], imageAt: (address: string) => Image) {
  return normaliseReads(store.schema, reads).map(({ target, key, columns }) => {
    const row = rowOf(imageAt(canonical([target, key])));
    return { target, key, row: row && pick(row, columns ?? tableNamed(store, target).columns) };
  });
}

/** Checks everything. The copy is plain data that the caller cannot change afterwards. */
function parseAction(store: Store, input: unknown): LmdbAction {
  const action = readFields(copyAction(input), 'the action');
  refuseUnknown(action, ['steps'], 'the action');
  const steps = readItems(action.steps, { name: 'step', max: 1000 }, (item, where): Step => {
    const { op, table, row: given, ...unknown } = readFields(item, where);
    refuseUnknown(unknown, [], where);
    if (op !== 'put' && op !== 'remove') throw refuseAction(`${where}: op is put or remove`);
    const { name, columns, key } = tableNamed(store, table);
    if (name === PROBE.name) throw refuseAction(`${where}: this table is not registered`);
    const row = readFields(given, where);
    refuseUnknown(row, op === 'put' ? columns : key, where);
    if (Object.values(row).some((cell) => typeof cell === 'object' && cell !== null))
      throw refuseAction(`${where}: a cell is a text, a number, a boolean or null`);
    const own = pick(row as Row, key);
    if (Object.values(own).includes(null) || canonical(own).length > 400)
      throw refuseAction(`${where}: a row has its key, of at most 400 characters`);
    return { op, table: name, row: op === 'put' ? pick(row as Row, columns) : own };
  });
  return { steps };
}

/** Holds the rows to write in memory, and every row that it saw: none of these may have moved. */
function candidateOn(store: Store, { reached }: AdapterContext): Candidate<LmdbAction> {
  const beneath = new Map<string, Image>();
  const held = new Map<string, { readonly target: string; readonly key: Row; image: Image }>();
  const see = (address: string): Image => {
    if (!beneath.has(address)) beneath.set(address, store.get(address));
    return beneath.get(address) ?? null;
  };
  const moved = () => [...beneath].filter(([address, image]) => store.get(address) !== image);
  const records = (): readonly ChangeRecord[] =>
    [...held].flatMap(([address, { target, key, image }]) => {
      const [before, after] = [rowOf(see(address)), rowOf(image)];
      if (canonical(before) === canonical(after)) return [];
      const op = before === null ? 'insert' : after === null ? 'delete' : 'update';
      return [{ op, target, key, before, after }];
    });
  const evidence = () => fingerprint([records(), moved()]);
  const carryOut = ({ op, table, row }: Step): boolean => {
    const key = pick(row, tableNamed(store, table).key);
    const address = canonical([table, key]);
    see(address);
    if (op === 'remove' && store.get(address) === null) return false;
    store.set(address, op === 'put' ? canonical(row) : null);
    held.set(address, { target: table, key, image: store.get(address) });
    return true;
  };
  return {
    id: randomUUID(),
    async apply({ steps }) {
      let failed: Step | undefined;
      store.write(() => {
        failed = steps.find((step) => !carryOut(step));
        return ABORT;
      });
      if (failed) return stageFailed('no-such-row', `${failed.table} has no such row`);
      return { kind: 'done' };
    },
    read: async (reads) => store.look(() => answer(store, reads, see)),
    observe: async () =>
      store.look(() => ({
        evidence: evidence(),
        records: records(),
        channels: [
          { channel: 'rows', kind: 'records', count: records().length },
          { channel: 'beneath', kind: 'stable', before: '0', after: String(moved().length) },
        ],
        unattributed: 0,
        assigned: [],
      })),
    recheck: async () => store.look(evidence),
    async commit(marker) {
      const refusal = store.write(() => {
        if (store.markers.get(marker.occurrence))
          return refusedPromotion('marked', 'the occurrence already has a marker');
        if (moved().length > 0) return refusedPromotion('moved', 'a row beneath it has changed');
        for (const [address, { image }] of held) store.set(address, image);
        store.markers.putSync(marker.occurrence, marker);
        return reached('adapter:marker-written');
      }); // a throw is `unknown`
      if (refusal) return refusal;
      reached('adapter:commit-returned');
      return { kind: 'confirmed' };
    },
    end: async () => held.clear(), // only memory is held
  };
}

function markersIn(store: Store, { reached }: AdapterContext): Backend<LmdbAction>['markers'] {
  return {
    find: async (occurrence) => store.look(() => store.markers.get(occurrence)),
    async void(marker) {
      const found = store.write(() => {
        const earlier = store.markers.get(marker.occurrence);
        if (earlier) return earlier;
        store.markers.putSync(marker.occurrence, marker);
        return reached('adapter:void-written');
      });
      if (found) return { kind: 'conflict', marker: found };
      reached('adapter:void-committed');
      return { kind: 'inserted' };
    },
    forget: async (occurrence) => void store.write(() => store.markers.removeSync(occurrence)),
  };
}

const surveyOf = (store: Store) =>
  ({
    backend: store.look(store.id),
    outlets: [
      { outlet: 'the rows', disposition: 'observed', by: 'a transaction that was aborted' },
      ...deniedOutlets({ 'anything else': 'actions are data, so no code of an agent runs' }),
    ],
    executor: 'this process',
    configuration: fingerprint(store.registration),
    credentials: 'of the process',
    enforcement: 'none',
  }) as const;

/** Protects tables in a file. Everything that writes to the file must use this adapter. */
export function lmdbTables(options: LmdbOptions): AdapterFactory<LmdbAction> {
  return {
    async open(context) {
      const store = openStore(options);
      const { registration, schema } = store;
      const backend: Backend<LmdbAction> = {
        identity: { kind: 'lmdb', backend: store.id(), code: adapterCode(import.meta.url) },
        registration,
        profiles: ['net-state'],
        channels: ['rows', 'beneath'],
        markers: markersIn(store, context),
        probe: {
          target: PROBE.name,
          action: (token) => ({ steps: [{ op: 'put', table: PROBE.name, row: { token } }] }),
          durable: async (token) =>
            store.look(() => store.get(canonical([PROBE.name, { token }])) !== null),
        },
        normalise: async (manifest) => normaliseManifest(schema, manifest),
        read: async (reads) => store.look(() => answer(store, reads, store.get)),
        parseAction: (input) => parseAction(store, input),
        describeAction: ({ steps }) => ({ steps: steps as unknown as Value }),
        survey: async () => surveyOf(store),
        async hold({ occurrence, reads }) {
          const candidate = candidateOn(store, context);
          await candidate.read(reads);
          return { kind: 'open', candidate, marker: store.markers.get(occurrence) };
        },
        close: () => store.close(),
      };
      return promotable(backend, context);
    },
  };
}
