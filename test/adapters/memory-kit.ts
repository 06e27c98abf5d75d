import { randomUUID } from 'node:crypto';
import { read, update } from '../../src/protocol/draft.ts';
import type { AdapterKit, Specimen } from '../../src/testing/index.ts';
import {
  MemoryBackend,
  memoryAdapter,
  PROBE_TARGET,
  WORLD_TARGETS,
  type Write,
} from '../world/world.ts';

const pay: Write = { op: 'update', target: 'invoice', key: { id: 1 }, set: { status: 'paid' } };
export const note: Write = {
  op: 'update',
  target: 'invoice',
  key: { id: 2 },
  set: { status: 'late' },
};

/** A backend in memory of its own, and what the suite needs to know about it. */
export function freshMemory(): { readonly backend: MemoryBackend; readonly specimen: Specimen } {
  const backend = new MemoryBackend(randomUUID(), [...WORLD_TARGETS, PROBE_TARGET], {
    invoice: [
      { id: 1, status: 'pending', amount: 35 },
      { id: 2, status: 'pending', amount: 70 },
    ],
  });
  const specimen: Specimen = {
    factory: memoryAdapter(backend),
    readDurable: async () => structuredClone(backend.rows()),
    effect: {
      action: { writes: [pay] },
      leaves: [update('invoice', { id: 1 }, { status: ['pending', 'paid'] })],
    },
    extra: { writes: [pay, note] },
    failing: { writes: [pay, { op: 'delete', target: 'invoice', key: { id: 99 } }] },
    reads: [
      read('invoice', { id: 1 }),
      read('invoice', { id: 2 }, ['amount']),
      read('invoice', { id: 99 }),
    ],
    writeInto: async () => backend.writer?.write(note),
    close: async () => {},
  };
  return { backend, specimen };
}

/** The adapter in memory, which the suite itself is tried on. */
export const memoryKit: AdapterKit = { fresh: async () => freshMemory().specimen };
