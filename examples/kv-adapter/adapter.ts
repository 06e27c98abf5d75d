// A complete adapter, as a third party would write it. Outside this repository the last three
// imports are 'effectmatch/backend', 'effectmatch/contract' and 'effectmatch/protocol'.
import { hash, randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import {
  type Backend,
  type Candidate,
  copyAction,
  deniedOutlets,
  normaliseManifest,
  normaliseReads,
  plainSchema,
  promotable,
  readFields,
  refuseAction,
  refusedPromotion,
  refuseUnknown,
  stageFailed,
} from '../../src/backend/index.ts';
import type {
  AdapterContext,
  AdapterFactory,
  Markers,
  MarkerText,
} from '../../src/contract/index.ts';
import {
  type ChangeRecord,
  canonical,
  type Registration,
  type StateRead,
} from '../../src/protocol/index.ts';

/** What an agent submits: texts to set, each under its key and at most 10,000 characters long. */
export interface KvAction {
  readonly set: Readonly<Record<string, string>>;
}

/**
 * One line of the file, written at once. A line with a base is a commit: its texts and its marker,
 * or neither.
 */
type Line = Partial<{
  base: string;
  set: KvAction['set'];
  marker: MarkerText;
  forget: string;
  store: string;
}>;
type State = ReturnType<typeof replay>;

const ENTRY = { name: 'entry', columns: ['key', 'value'], key: ['key'], volatile: [] };
const REGISTRATION: Registration = { profile: 'net-state', values: 'plain', targets: [ENTRY] };
const SCHEMA = plainSchema(REGISTRATION);
const PROBE = 'effectmatch-probe:'; // begins the keys that admission tries, which no action can name
const SURVEY = {
  outlets: [
    { outlet: 'the file', disposition: 'observed', by: 'the texts to set and those beneath them' },
    ...deniedOutlets({ 'anything else': 'actions are data, so no code of an agent runs' }),
  ],
  executor: 'this process',
  configuration: '1',
  credentials: 'of the process',
  enforcement: 'none',
} as const;
const sha256 = (text: string): string => hash('sha256', text);

/**
 * What the lines say. Their order decides: a commit on an old base and a second marker never count.
 */
function replay(text: string) {
  const state = {
    store: '',
    head: '',
    entries: new Map<string, string>(),
    markers: new Map<string, MarkerText>(),
  };
  for (const line of text.split('\n')) {
    const [digest, content] = [line.slice(0, 64), line.slice(65)];
    if (digest !== sha256(content)) continue; // empty, or cut off when its writer died
    const { store = '', forget = '', marker, base, set = {} } = JSON.parse(content) as Line;
    if ((marker && state.markers.has(marker.occurrence)) || (base ?? state.head) !== state.head)
      continue;
    state.store ||= store; // of two processes that meet a new file at once, the first names it
    state.markers.delete(forget);
    if (marker) state.markers.set(marker.occurrence, marker);
    if (base !== undefined) state.head = digest;
    for (const [key, value] of Object.entries(set)) state.entries.set(key, value);
  }
  return state;
}

/** Checks everything. The copy is plain data that the caller cannot change afterwards. */
function parseAction(input: unknown): KvAction {
  const action = readFields(copyAction(input), 'the action');
  refuseUnknown(action, ['set'], 'the action');
  const set = readFields(action.set, 'set');
  if (Object.keys(set).length === 0) throw refuseAction('set must hold at least one text');
  for (const [key, text] of Object.entries(set)) {
    if (key.startsWith(PROBE)) throw refuseAction(`set: no key may start with "${PROBE}"`);
    if (typeof text !== 'string') throw refuseAction(`set: the value of "${key}" must be a text`);
  }
  return { set: set as KvAction['set'] };
}

function readEntries({ entries }: State, reads: readonly StateRead[]) {
  return normaliseReads(SCHEMA, reads).map(({ target, key, columns = ENTRY.columns }) => {
    const value = entries.get(String(key.key)) ?? null;
    const row = Object.entries({ ...key, value }).filter(([column]) => columns.includes(column));
    return { target, key, row: value === null ? null : Object.fromEntries(row) };
  });
}

/** One change held in memory, and the state it was made for. */
function candidateOn(store: KvStore, base: State): Candidate<KvAction> {
  const held = new Map<string, string>();
  const records = (): readonly ChangeRecord[] =>
    [...held].map(([key, value]) => {
      const target = key.startsWith(PROBE) ? 'probe' : ENTRY.name;
      const old = base.entries.get(key);
      const before = old === undefined ? null : { value: old };
      const op = before === null ? 'insert' : 'update';
      return { op, target, key: { key }, before, after: { value } };
    });
  const fingerprint = ({ head }: State) => sha256(canonical([head, records()]));
  return {
    id: randomUUID(),
    async apply({ set }) {
      for (const [key, text] of Object.entries(set)) held.set(key, text);
      const isTooLong = Object.values(set).some((text) => text.length > 10_000);
      if (isTooLong) return stageFailed('too-long', 'a text has at most 10,000 characters');
      return { kind: 'done' };
    },
    read: async (reads) => readEntries(base, reads),
    async observe() {
      const now = store.read();
      return {
        evidence: fingerprint(now),
        records: records(),
        channels: [
          { channel: 'texts', kind: 'records', count: held.size },
          { channel: 'head', kind: 'stable', before: base.head, after: now.head },
        ],
        unattributed: 0,
        assigned: [],
      };
    },
    recheck: async () => fingerprint(store.read()),
    async commit(marker) {
      store.reached('adapter:marker-written'); // into the line, which is not in the file yet
      store.append({ base: base.head, set: Object.fromEntries(held), marker }); // a throw is `unknown`
      store.reached('adapter:commit-returned');
      if (store.isFirst(marker)) return { kind: 'confirmed' };
      return refusedPromotion('too-late', 'another line came first; this one never counts');
    },
    end: async () => held.clear(), // nothing outside this object knew of it
  };
}

type KvStore = ReturnType<typeof openStore>;

/** The file, read whole every time, and the one way to write to it. */
function openStore(file: string, { clock, reached }: AdapterContext) {
  const replayFile = () => replay(readFileSync(file, 'utf8'));
  /** The commit point: one flushed write. The newline before it ends a line that was cut off. */
  const append = (line: Line): void => {
    const text = JSON.stringify(line);
    appendFileSync(file, `\n${sha256(text)} ${text}\n`, { flush: true });
  };
  if (replayFile().store === '') append({ store: randomUUID() });
  const id = replayFile().store;
  const read = (): State => {
    const state = replayFile();
    appendFileSync(file, '', { flush: true }); // nothing may rest on a line that a power failure could take back
    if (state.store === id) return state;
    throw new Error(`${file} is a different store now; open it again`);
  };
  /** Whether this marker, and not another one, stands under its occurrence. */
  const isFirst = ({ occurrence, text }: MarkerText): boolean =>
    read().markers.get(occurrence)?.text === text;
  return { id, append, read, isFirst, reached, now: () => clock.now() };
}

function markersIn({ read, append, isFirst, reached }: KvStore): Markers {
  return {
    find: async (occurrence) => read().markers.get(occurrence),
    async void(marker) {
      const found = read().markers.get(marker.occurrence);
      if (found) return { kind: 'conflict', marker: found };
      append({ marker });
      reached('adapter:void-committed');
      return isFirst(marker) ? { kind: 'inserted' } : this.void(marker);
    },
    forget: async (occurrence) => append({ forget: occurrence }),
  };
}

/**
 * Protects a file that exists, at first empty. Everything that writes to it must go through this
 * adapter.
 */
export function keyValue({ file }: { readonly file: string }): AdapterFactory<KvAction> {
  return {
    async open(context) {
      const store = openStore(file, context);
      const code = sha256(readFileSync(new URL(import.meta.url), 'utf8'));
      const backend: Backend<KvAction> = {
        identity: { kind: 'kv-example', backend: store.id, code },
        registration: REGISTRATION,
        profiles: ['net-state'],
        channels: ['texts', 'head'],
        markers: markersIn(store),
        probe: {
          target: 'probe',
          action: (token) => ({ set: { [PROBE + token]: 'tried' } }),
          durable: async (token) => store.read().entries.has(PROBE + token),
        },
        normalise: async (manifest) => normaliseManifest(SCHEMA, manifest),
        read: async (reads) => readEntries(store.read(), reads),
        parseAction,
        describeAction: ({ set }) => ({ set }),
        survey: async () => ({ backend: store.id, ...SURVEY }),
        async hold({ occurrence }) {
          const base = store.read();
          const candidate = candidateOn(store, base);
          return { kind: 'open', candidate, marker: base.markers.get(occurrence) };
        },
        close: async () => {},
      };
      return promotable(backend, context);
    },
  };
}
