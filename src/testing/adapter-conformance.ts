import { describe } from 'node:test';
import { candidateTests } from './adapter/candidates.ts';
import { declarationTests } from './adapter/declarations.ts';
import type { AdapterKit } from './adapter/kit.ts';
import { permitTests } from './adapter/permits.ts';
import { promotionTests } from './adapter/promotion.ts';
import { taskTests } from './adapter/tasks.ts';

export type { AdapterKit, Specimen } from './adapter/kit.ts';

/**
 * What every PROMOTABLE adapter must do, as `node:test` suites. They test the port, without a
 * runtime. Call it from a test file of the adapter with a kit:
 *
 * ```ts
 * adapterConformance('key-value store', {
 *   async fresh() {
 *     const store = await startStore({ greeting: 'hello' });
 *     return {
 *       factory: keyValueAdapter(store.url),
 *       readDurable: () => store.dump(),
 *       effect: {
 *         action: { set: { greeting: 'good day' } },
 *         leaves: [update('entry', { key: 'greeting' }, { value: ['hello', 'good day'] })],
 *       },
 *       extra: { set: { greeting: 'good day', another: 'one' } },
 *       failing: { set: { greeting: 'too long '.repeat(1000) } },
 *       reads: [read('entry', { key: 'greeting' }), read('entry', { key: 'another' })],
 *       close: () => store.stop(),
 *     };
 *   },
 * });
 * ```
 *
 * Passing does not replace admission: a runtime still probes what an adapter declares whenever it
 * opens one.
 */
export function adapterConformance(name: string, kit: AdapterKit): void {
  describe(`${name}: declarations`, () => declarationTests(kit));
  describe(`${name}: candidates`, () => candidateTests(kit));
  describe(`${name}: permits`, () => permitTests(kit));
  describe(`${name}: tasks`, () => taskTests(kit));
  describe(`${name}: promotion and markers`, () => promotionTests(kit));
}
