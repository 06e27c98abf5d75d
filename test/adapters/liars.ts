import type {
  AdapterFactory,
  Evidence,
  Markers,
  PromotableAdapter,
  Stage,
  Staged,
} from '../../src/contract/adapter.ts';
import type { StateReading } from '../../src/protocol/effect.ts';
import { type AdapterKit, adapterConformance } from '../../src/testing/index.ts';
import { type MemoryBackend, overlay, overlayAdapter, overlayStages } from '../world/world.ts';
import { freshMemory, note } from './memory-kit.ts';

type Change = (adapter: PromotableAdapter, backend: MemoryBackend) => Partial<PromotableAdapter>;

const stages =
  (change: (stage: Stage, backend: MemoryBackend) => Partial<Stage>): Change =>
  (adapter, backend) =>
    overlayStages(adapter, (stage) => change(stage, backend));
const staging =
  (change: (staged: Staged, backend: MemoryBackend) => Staged): Change =>
  (adapter, backend) => ({
    stage: async (...parameters) => change(await adapter.stage(...parameters), backend),
  });
const markers =
  (change: (markers: Markers, backend: MemoryBackend) => Partial<Markers>): Change =>
  (adapter, backend) => ({ markers: overlay(adapter.markers, change(adapter.markers, backend)) });
const evidence = (change: (evidence: Evidence) => Partial<Evidence>): Change =>
  stages((stage) => ({
    async observe() {
      const honest = await stage.observe();
      return { ...honest, ...change(honest) };
    },
  }));

/** The stage that was last held on a backend, whichever instance opened it. */
const HELD = new WeakMap<MemoryBackend, Stage>();

/** Adapters that break one promise of the port each. */
export const LIARS: Readonly<Record<string, Change>> = {
  'writes through while it holds': staging((staged, backend) => {
    backend.write(note);
    return staged;
  }),
  'reports no records': evidence(() => ({ records: [] })),
  'reports a record twice': evidence(({ records }) => ({ records: [...records, ...records] })),
  'leaves out a channel': evidence(({ channels }) => ({ channels: channels.slice(1) })),
  'commits what it discards': stages((stage, backend) => ({
    async discard() {
      backend.write(note);
      await stage.discard();
    },
  })),
  'keeps what is disposed': stages(() => ({ [Symbol.asyncDispose]: async () => {} })),
  'leaves a part of what failed': staging((staged, backend) => {
    if (staged.kind === 'failed') backend.write(note);
    return staged;
  }),
  'fails with a reason no terminal can carry': staging((staged) =>
    staged.kind === 'failed' ? { ...staged, reason: 'not a name!' } : staged,
  ),
  'commits without a marker': stages((stage, backend) => ({
    async promote(permit) {
      const promotion = await stage.promote(permit);
      backend.markers.delete(permit.marker.occurrence);
      return promotion;
    },
  })),
  'writes a marker without committing': stages((stage, backend) => ({
    async promote({ marker }) {
      await stage.discard();
      backend.markers.set(marker.occurrence, marker);
      return { kind: 'confirmed' };
    },
  })),
  'promotes over a marker': stages((stage, backend) => ({
    async promote(permit) {
      backend.markers.delete(permit.marker.occurrence);
      return stage.promote(permit);
    },
  })),
  'takes any permit': stages((stage, backend) => ({
    async promote({ marker }) {
      const isCommitted = backend.writer !== undefined && backend.commit(backend.writer, marker);
      await stage.discard();
      return isCommitted
        ? { kind: 'confirmed' }
        : { kind: 'refused', reason: 'stage-ended', detail: '' };
    },
  })),
  'promotes what is over': stages((stage, backend) => ({
    async promote(permit) {
      try {
        return await stage.promote(permit);
      } catch {
        backend.write(note);
        return { kind: 'confirmed' };
      }
    },
  })),
  'commits over a moved base': (adapter, backend) => ({
    async stage(...parameters) {
      const staged = await adapter.stage(...parameters);
      if (staged.kind === 'held') HELD.set(backend, staged.stage);
      const held = HELD.get(backend);
      if (staged.kind === 'held' || staged.reason !== 'busy' || held === undefined) return staged;
      const promote: Stage['promote'] = async ({ marker }) => {
        backend.markers.set(marker.occurrence, marker);
        return { kind: 'confirmed' };
      };
      return { kind: 'held', stage: overlay(held, { promote }) };
    },
  }),
  'voids what is committed': markers((_honest, backend) => ({
    async void(marker) {
      backend.markers.set(marker.occurrence, marker);
      return { kind: 'inserted' };
    },
  })),
  'stores a void marker and says busy': markers((honest, backend) => ({
    async void(marker) {
      const result = await honest.void(marker);
      if (result.kind === 'busy') backend.markers.set(marker.occurrence, marker);
      return result;
    },
  })),
  'finds no marker': markers(() => ({ find: async () => undefined })),
  'forgets no marker': markers(() => ({ forget: async () => {} })),
  'forgets all markers': markers((_honest, backend) => ({
    forget: async () => backend.markers.clear(),
  })),
  'does not look again': stages((stage) => {
    const seen = stage.observe();
    return { observe: () => seen, recheck: () => seen };
  }),
  'shows the candidate as the state': stages((_stage, backend) => ({
    read: async (reads) =>
      reads.map(({ target, key }) => ({ target, key, row: backend.writer?.log[0]?.after ?? null })),
  })),
  'reads only a part of a row': (adapter) => ({
    read: async (reads) =>
      (await adapter.read(reads)).map(({ row, ...read }) => ({
        ...read,
        row: row && Object.fromEntries(Object.entries(row).slice(1)),
      })),
  }),
  'reads what was there at first': (adapter) => {
    const kept = new Map<string, Promise<readonly StateReading[]>>();
    return {
      read(reads) {
        const asked = JSON.stringify(reads);
        const reading = kept.get(asked) ?? adapter.read(reads);
        kept.set(asked, reading);
        return reading;
      },
    };
  },
  'takes anything for an action': () => ({ parseAction: (input) => input }),
  "keeps the caller's own object": (adapter) => ({
    parseAction(input) {
      adapter.parseAction(input);
      return input;
    },
  }),
  'normalises differently every time': (adapter) => ({
    async normalise(manifest) {
      const { effects, ...rest } = await adapter.normalise(manifest);
      return {
        ...rest,
        effects: effects.map((effect) => ({ ...effect, count: effect.count + 1 })),
      };
    },
  }),
  'surveys differently every time': (adapter) => {
    let surveys = 0;
    return {
      async survey() {
        surveys += 1;
        return { ...(await adapter.survey()), configuration: `${surveys}` };
      },
    };
  },
  'has the identity of every backend': ({ identity }) => ({
    identity: { ...identity, backend: 'one' },
  }),
  'holds on when closed': () => ({ close: async () => {} }),
};

/** Run as a program, this is the suite against all of them; it fails, and says where. */
if (import.meta.main) {
  const kitOf = (change: Change): AdapterKit => ({
    async fresh() {
      const { backend, specimen } = freshMemory();
      const lie = (adapter: Parameters<Parameters<typeof overlayAdapter>[1]>[0]) =>
        change(adapter as PromotableAdapter, backend);
      return { ...specimen, factory: overlayAdapter(specimen.factory as AdapterFactory, lie) };
    },
  });
  adapterConformance(
    'honest',
    kitOf(() => ({})),
  );
  for (const [lie, change] of Object.entries(LIARS)) adapterConformance(lie, kitOf(change));
}
