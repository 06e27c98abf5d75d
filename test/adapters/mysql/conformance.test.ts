// Goal: the MariaDB adapter holds what the port promises, and is admitted by the runtime.
// Method: the suite of all adapters and the admission probes, under both levels of isolation.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { randomIds } from '../../../src/crypto/approver.ts';
import { createSealer } from '../../../src/crypto/seal.ts';
import { admit } from '../../../src/runtime/admit.ts';
import { adapterConformance } from '../../../src/testing/index.ts';
import { testKeyring } from '../../keyring.ts';
import { skipWithoutMariadb } from '../../mysql/binaries.ts';
import { mysqlKit } from '../mysql-kit.ts';

const skip = skipWithoutMariadb();
describe('MariaDB', { skip }, () => {
  for (const isolation of ['repeatable read', 'serializable'] as const) {
    const kit = mysqlKit({ isolation });
    adapterConformance(isolation, kit);

    test(`${isolation}: admission passes every probe and leaves nothing behind`, async () => {
      const specimen = await kit.fresh();
      const before = await specimen.readDurable();
      const context = { name: 'mariadb', clock: systemClock };
      const adapter = await specimen.factory.open({ ...context, reached: unobserved });
      await admit({ ...context, sealer: createSealer(testKeyring()), ids: randomIds }, adapter);
      await adapter.close();
      assert.deepEqual(await specimen.readDurable(), before);
      await specimen.close();
    });
  }
});
