// Hands over every release that is left, and kills itself at one point of one of them.
import { setTimeout as sleep } from 'node:timers/promises';
import { fixtureAcknowledgement, fixtureContext } from '../../src/testing/ledger/fixtures.ts';
import { openLedgers } from './postgres-store.ts';

const [location = '', queue = '', point = '', nth = '0'] = process.argv.slice(2);
const context = fixtureContext();
const ledgers = await openLedgers(location, context);
const claims = (await ledgers.journal({ limit: 10_000 })).flatMap((entry) =>
  entry.kind === 'claim' ? [entry.record] : [],
);
let count = 0;
const die = (here: string): void => {
  if (here === point && count === Number(nth)) process.kill(process.pid, 'SIGKILL');
};
for (const claim of claims) {
  if ((await ledgers.acknowledgements(claim.occurrence)).length > 0) continue;
  count += 1;
  die('before');
  await ledgers.handOver?.(fixtureAcknowledgement(context, claim), async ({ query }) => {
    die('begun');
    await query(`insert into ${queue}.job values ($1)`, [claim.occurrence]);
    die('inserted');
    // Somewhere between here and the answer to COMMIT.
    if (point.startsWith('after ') && count === Number(nth))
      void sleep(Number(point.slice(6))).then(() => process.kill(process.pid, 'SIGKILL'));
  });
  die('handed over');
}
await ledgers.close();
