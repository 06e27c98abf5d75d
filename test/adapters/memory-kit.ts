import { randomUUID } from 'node:crypto';
import { read, update } from '../../src/protocol/draft.ts';
import type { AdapterKit } from '../../src/testing/index.ts';
import { MemoryBackend, memoryAdapter, PROBE_TARGET, WORLD_TARGETS, type Write } from '../../src/testing/world.ts';

const pay: Write = { op: 'update', target: 'invoice', key: { id: 1 }, set: { status: 'paid' } };
const note: Write = { op: 'update', target: 'invoice', key: { id: 2 }, set: { status: 'late' } };

/** The adapter in memory, which the suite itself is tried on. */
export const memoryKit: AdapterKit = {
  async fresh() {
    const backend = new MemoryBackend(randomUUID(), [...WORLD_TARGETS, PROBE_TARGET], {
      invoice: [
        { id: 1, status: 'pending', amount: 35 },
        { id: 2, status: 'pending', amount: 70 },
      ],
    });
    return {
      factory: memoryAdapter(backend),
      readDurable: async () => structuredClone(backend.rows()),
      effect: {
        action: { writes: [pay] },
        leaves: [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })],
      },
      extra: { writes: [pay, note] },
      failing: { writes: [pay, { op: 'delete', target: 'invoice', key: { id: 99 } }] },
      reads: [read('invoice', { id: 1 }), read('invoice', { id: 2 }, ['amount']), read('invoice', { id: 99 })],
      writeInto: async () => backend.writer?.write(note),
      close: async () => {},
    };
  },
};
