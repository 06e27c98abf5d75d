// A third party's adapter, whole. Elsewhere the last three imports are 'effectmatch/backend',
// '…/contract', '…/protocol'.
import { hash, randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { normaliseManifest, PermitCheck, plainSchema } from '../../src/backend/index.ts';
import {
  type AdapterFactory,
  EffectMatchError,
  type MarkerText,
  type Stage,
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
const PROBE = 'effectmatch-probe:'; // begins the keys that admission tries, which no action can name
const OUTLETS = Object.freeze([
  {
    outlet: 'the file',
    disposition: 'observed' as const,
    by: 'the texts to set, beside the entries beneath them',
  },
  {
    outlet: 'anything else',
    disposition: 'denied' as const,
    by: 'actions are data, so no code of an agent runs',
  },
]);
const RIGHTS = {
  executor: 'this process',
  configuration: '1',
  credentials: 'of the process',
  enforcement: 'none',
};
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

/**
 * Checks everything and copies it. `canonical` refuses whatever is not plain data, and runs none of
 * it.
 */
function parseAction(input: unknown): KvAction {
  try {
    const { set, ...unknown } = JSON.parse(canonical(input));
    const entries = typeof set === 'object' && !Array.isArray(set) ? Object.entries(set) : [];
    const texts = entries.every(
      ([key, text]) => !key.startsWith(PROBE) && typeof text === 'string',
    );
    if (texts && entries.length > 0 && Object.keys(unknown).length === 0) return { set };
  } catch {} // refused below, like everything else that is no action
  throw new EffectMatchError('ERR_EM_ACTION_INVALID', 'an action is { set: { key: text, … } }');
}

function readEntries({ entries }: State, reads: readonly StateRead[]) {
  return reads.map(({ target, key, columns = ENTRY.columns }) => {
    const value = entries.get(String(key.key)) ?? null;
    const row = Object.entries({ ...key, value }).filter(([column]) => columns.includes(column));
    return { target, key, row: value === null ? null : Object.fromEntries(row) };
  });
}

/**
 * Protects a file that exists, at first empty. Everything that writes to it must go through this
 * adapter.
 */
export function keyValue({ file }: { readonly file: string }): AdapterFactory<KvAction> {
  /**
   * The commit point: one flushed write at the end. The newline before it ends a line that was cut
   * off.
   */
  const append = (line: Line): void => {
    const text = JSON.stringify(line);
    appendFileSync(file, `\n${sha256(text)} ${text}\n`, { flush: true });
  };
  return {
    async open({ clock, reached }) {
      if (replay(readFileSync(file, 'utf8')).store === '') append({ store: randomUUID() });
      const backend = replay(readFileSync(file, 'utf8')).store;
      const held = new Set<string>();
      const read = (): State => {
        const state = replay(readFileSync(file, 'utf8'));
        appendFileSync(file, '', { flush: true }); // nothing may rest on a line that a power failure could take back
        if (state.store === backend) return state;
        throw new EffectMatchError(
          'ERR_EM_ADAPTER_UNAVAILABLE',
          `${file} is another store now; open it again`,
        );
      };
      const isFirst = ({ occurrence, text }: MarkerText) =>
        read().markers.get(occurrence)?.text === text;
      return {
        capability: 'PROMOTABLE',
        identity: {
          kind: 'kv-example',
          backend,
          code: sha256(readFileSync(new URL(import.meta.url), 'utf8')),
        },
        registration: REGISTRATION,
        profiles: ['net-state'],
        channels: ['texts', 'head'],
        normalise: async (manifest) => normaliseManifest(plainSchema(REGISTRATION), manifest),
        read: async (reads) => readEntries(read(), reads),
        parseAction,
        describeAction: ({ set }) => ({ set }),
        survey: async () => ({ backend, outlets: OUTLETS, ...RIGHTS }),
        async stage(claim, certificate, { set }) {
          const [base, candidate, fromMs] = [read(), randomUUID(), clock.now()];
          reached('adapter:stage-opened');
          const tooLong = Object.values(set).some((text) => text.length > 10_000);
          if (tooLong)
            return {
              kind: 'failed',
              reason: 'too-long',
              detail: 'a text has at most 10,000 characters',
            };
          const records = Object.entries(set).map(([key, value]): ChangeRecord => {
            const target = key.startsWith(PROBE) ? 'probe' : ENTRY.name;
            const before = base.entries.has(key) ? { value: base.entries.get(key) ?? '' } : null;
            return {
              op: before === null ? 'insert' : 'update',
              target,
              key: { key },
              before,
              after: { value },
            };
          });
          const facts = ({ head }: State) => ({
            candidate,
            evidence: sha256(canonical([head, records])),
          });
          const end = async () => void held.delete(candidate);
          const check = new PermitCheck({ claim, certificate }, candidate);
          held.add(candidate);
          reached('adapter:action-done');
          const stage: Stage = {
            candidate,
            read: async (reads) => readEntries(base, reads),
            async observe() {
              const now = read();
              check.observed(facts(now).evidence);
              const texts = { channel: 'texts', kind: 'records', count: records.length } as const;
              const head = {
                channel: 'head',
                kind: 'stable',
                before: base.head,
                after: now.head,
              } as const;
              const rest = { unattributed: 0, assigned: [], window: { fromMs, toMs: clock.now() } };
              return { ...facts(now), records, channels: [texts, head], ...rest };
            },
            async recheck() {
              const now = facts(read());
              check.rechecked(now.evidence);
              return now;
            },
            async promote(permit) {
              if (!held.delete(candidate))
                return { kind: 'refused', reason: 'stage-ended', detail: 'nothing is held' };
              const mismatch = check.refusalOf(permit);
              if (mismatch) return mismatch;
              const { marker } = permit;
              reached('adapter:marker-written'); // into the line, which is not in the file yet
              append({ base: base.head, set, marker }); // if this throws, the core takes it as unknown
              reached('adapter:commit-returned');
              if (isFirst(marker)) return { kind: 'confirmed' };
              return {
                kind: 'refused',
                reason: 'too-late',
                detail: 'another line came first; this one never counts',
              };
            },
            discard: end,
            [Symbol.asyncDispose]: end,
          };
          return { kind: 'held', stage };
        },
        markers: {
          find: async (occurrence) => read().markers.get(occurrence),
          async void(marker) {
            const found = read().markers.get(marker.occurrence);
            if (found) return { kind: 'conflict', marker: found };
            append({ marker });
            reached('adapter:void-committed');
            return isFirst(marker) ? { kind: 'inserted' } : this.void(marker);
          },
          forget: async (occurrence) => append({ forget: occurrence }),
        },
        probe: {
          target: 'probe',
          action: (token) => ({ set: { [PROBE + token]: 'tried' } }),
          durable: async (token) => read().entries.has(PROBE + token),
        },
        close: async () => held.clear(),
      };
    },
  };
}
