// Goal: the PostgreSQL adapter holds what the port promises, in both isolation levels and on both
// versions. Method: the suite of all PROMOTABLE adapters and the admission probes, on real servers.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { randomIds } from '../../../src/crypto/approver.ts';
import { createSealer } from '../../../src/crypto/seal.ts';
import { admit } from '../../../src/runtime/admit.ts';
import { type AdapterKit, adapterConformance } from '../../../src/testing/index.ts';
import { testKeyring } from '../../keyring.ts';
import { isInstalled, VERSIONS } from '../../postgres/server.ts';
import { postgresKit } from '../postgres-kit.ts';

const installed = VERSIONS.filter(isInstalled);
const FIRST = installed[0] ?? 17;
const LAST = installed.at(-1) ?? 17;

const KITS: Readonly<Record<string, AdapterKit>> = {
  [`PostgreSQL ${FIRST}, read committed`]: postgresKit('read committed', FIRST),
  [`PostgreSQL ${LAST}, serializable`]: postgresKit('serializable', LAST),
};

const absent = LAST === VERSIONS.at(-1) ? false : 'PostgreSQL 15 is not installed here';
test('the oldest version is among them', { skip: absent }, () => {
  assert.ok(`PostgreSQL ${VERSIONS.at(-1)}, serializable` in KITS);
});

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
      await admit(
        { name, sealer: createSealer(testKeyring()), ids: randomIds, clock: systemClock },
        adapter,
      );
      await adapter.close();
      assert.deepEqual(await specimen.readDurable(), before);
      await specimen.close();
    });
  });
}
