import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { snapshot } from '../../src/adapters/snapshot/index.ts';
import { systemClock } from '../../src/contract/clock.ts';
import { unobserved } from '../../src/contract/steps.ts';
import { insert, read, update } from '../../src/protocol/draft.ts';
import type { AdapterKit } from '../../src/testing/index.ts';
import type { Shop } from './snapshot-kit-tools.ts';

const INITIAL: Shop = {
  orders: [
    { id: 1, status: 'open' },
    { id: 2, status: 'open' },
  ],
  audit: {},
  revision: 7,
};

/**
 * A shop whose tools leave more than their arguments say: an audit entry and a revision outside the
 * collections.
 */
export const snapshotKit: AdapterKit = {
  async fresh() {
    const folder = mkdtempSync(join(tmpdir(), 'effectmatch-kit-'));
    const file = join(folder, 'shop.db');
    const factory = snapshot({
      file,
      initial: INITIAL,
      collections: {
        orders: { path: '/orders', key: 'id' },
        audit: { path: '/audit', key: 'order', map: true, fields: ['text'] },
      },
      tools: new URL('./snapshot-kit-tools.ts', import.meta.url),
      busyTimeoutMs: 0,
    });
    await (await factory.open({ name: 'shop', clock: systemClock, reached: unobserved })).close();
    const ship = { tool: 'setStatus', args: { id: 1, status: 'shipped' } };
    return {
      factory,
      async readDurable() {
        using db = new DatabaseSync(file, { readOnly: true });
        const row = db.prepare('select text from effectmatch_state').get();
        return JSON.parse(String(row?.text)) as unknown;
      },
      effect: {
        action: { calls: [ship] },
        leaves: [
          update('orders', { id: 1 }, { status: ['open', 'shipped'] }),
          insert('audit', { order: '1', text: 'shipped' }),
          update('/', { path: '/revision' }, { value: [7, 8] }),
        ],
      },
      extra: { calls: [ship, { tool: 'setStatus', args: { id: 2, status: 'lost' } }] },
      failing: { calls: [ship, { tool: 'setStatus', args: { id: 99, status: 'lost' } }] },
      reads: [
        read('orders', { id: 1 }),
        read('orders', { id: 2 }, ['status']),
        read('orders', { id: 99 }),
        read('/', { path: '/revision' }),
      ],
      close: async () => rmSync(folder, { recursive: true }),
    };
  },
};
