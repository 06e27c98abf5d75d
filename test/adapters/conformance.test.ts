// Goal: every PROMOTABLE adapter holds what the port promises, and is admitted by the runtime.
// Method: one suite and the admission probes against every adapter, each on a backend of its own.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../src/contract/clock.ts';
import { unobserved } from '../../src/contract/steps.ts';
import { randomIds } from '../../src/crypto/approver.ts';
import { createSealer } from '../../src/crypto/seal.ts';
import { admit, tryService } from '../../src/runtime/admit.ts';
import { isTriedLater } from '../../src/runtime/deployment.ts';
import { type AdapterKit, adapterConformance } from '../../src/testing/index.ts';
import { testKeyring } from '../keyring.ts';
import { draftsKit } from './drafts-kit.ts';
import { filesKit } from './files-kit.ts';
import { memoryKit } from './memory-kit.ts';
import { snapshotKit } from './snapshot-kit.ts';
import { sqliteKit } from './sqlite-kit.ts';

const KITS: Readonly<Record<string, AdapterKit>> = {
  memory: memoryKit,
  sqlite: sqliteKit,
  files: filesKit,
  snapshot: snapshotKit,
  'http drafts': draftsKit,
};

for (const [name, kit] of Object.entries(KITS)) {
  adapterConformance(name, kit);

  describe(`${name}: admission`, () => {
    test('passes every probe and leaves nothing behind', async () => {
      const specimen = await kit.fresh();
      const before = await specimen.readDurable();
      const adapter = await specimen.factory.open({
        name,
        clock: systemClock,
        reached: unobserved,
      });
      const context = {
        name,
        sealer: createSealer(testKeyring()),
        ids: randomIds,
        clock: systemClock,
      };
      await admit(context, adapter);
      if (isTriedLater(adapter)) await tryService(context, adapter);
      await adapter.close();
      assert.deepEqual(await specimen.readDurable(), before);
      await specimen.close();
    });
  });
}
