// Goal: `effectmatch doctor` has a live service tried, says what came of it, and sends it nothing
// that it was sent before. Method: the command as a real process, with a configuration for the
// payment service, which counts what arrives.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startPaymentService } from '../../examples/payment-service/server.ts';
import { openKeyring } from '../../src/crypto/keyring.ts';
import { generateApprover } from '../../src/index.ts';
import { runCommand } from './command.ts';

const at = (path: string) => JSON.stringify(new URL(`../../${path}`, import.meta.url).href);

async function openSite(
  options: Parameters<typeof startPaymentService>[0] = {},
  credential?: string,
) {
  const service = await startPaymentService(options);
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-doctor-'));
  openKeyring(join(folder, 'keys.json'));
  const place = JSON.stringify({
    origin: service.origin,
    token: credential ?? service.token,
    account: 'main',
  });
  writeFileSync(
    join(folder, 'effectmatch.config.mts'),
    `import { paymentOptions } from ${at('examples/payment-service/adapter.ts')};
     import { mediatedHttp } from ${at('src/adapters/http/index.ts')};
     export default {
       store: 'ledger.db', keyring: 'keys.json',
       issuers: { boss: { key: ${JSON.stringify(generateApprover('boss').publicKey)}, may: ['bank'] } },
       adapters: { bank: mediatedHttp(paymentOptions(${place})) },
     };`,
  );
  return {
    service,
    doctor: (...flags: readonly string[]) => runCommand(['doctor', ...flags], { cwd: folder }),
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

test('a service is tried by the first doctor, and by no later one', async () => {
  await using site = await openSite();
  const only = await site.doctor('--sql');
  assert.deepEqual([only.code, site.service.strangers], [0, 0], only.stderr);
  const first = await site.doctor();
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /proven {2}bank: the service was tried now, with its samples/);
  const tried = site.service.strangers;
  assert.equal(tried, 2);
  const second = await site.doctor();
  assert.match(second.stdout, /proven {2}bank: the service was tried earlier, .*nothing was sent/);
  assert.equal(site.service.strangers, tried);
  const told = JSON.parse((await site.doctor('--json')).stdout);
  assert.deepEqual(told.adapters[0].service, { kind: 'proven', tried: 'earlier' });
});

test('a service that does not do what was declared is named, and the exit code says that operations are refused', async () => {
  await using site = await openSite({ honoursKeys: false });
  const { code, stdout } = await site.doctor();
  assert.equal(code, 2);
  assert.match(
    stdout,
    /unproven {2}bank: every operation is refused; .*failed the admission probe idempotent-service/,
  );
});

test('a credential that the service refuses is named as the cause, not the idempotency key', async () => {
  await using site = await openSite({}, 'not-the-one');
  const { code, stdout } = await site.doctor();
  assert.equal(code, 2);
  assert.match(
    stdout,
    /unproven {2}bank: .*answered 401 to the sample of operation "\w+"; check the credential/,
  );
  assert.doesNotMatch(stdout, /OPAQUE/);
});
