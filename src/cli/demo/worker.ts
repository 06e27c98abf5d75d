/**
 * A process of its own for the acts that need one: it shares nothing with the demo but files.
 *
 * @module
 */
import type { Release } from '../../runtime/continuation.ts';
import { createRuntime, type Runtime } from '../../runtime/runtime.ts';
import type { Role } from './ask-worker.ts';
import { Desk } from './desk.ts';
import { PAYING } from './payment.ts';

const [role, folder = ''] = process.argv.slice(2);
const desk = new Desk(folder);
process.stdout.write(JSON.stringify(await play(role as Role)));

async function play(part: Role): Promise<unknown> {
  switch (part) {
    case 'pay-and-die': {
      await using runtime = await createRuntime(desk.config, {
        reached(step) {
          if (step === 'path:promoted') process.kill(process.pid, 'SIGKILL');
        },
      });
      return await runtime.execute(desk.license, PAYING);
    }
    case 'recover': {
      await using runtime = await createRuntime(desk.config);
      const before = await release(runtime);
      const recovered = await runtime.recover({ now: true });
      return { before, recovered, after: await release(runtime) };
    }
    case 'reconcile': {
      await using runtime = await createRuntime(desk.config);
      return await release(runtime);
    }
  }
}

/** Asks for the work that depends on the payment. The first row of the journal is the claim of that payment. */
async function release(runtime: Runtime): Promise<Release<void>> {
  const [claim] = await runtime.ledgers.journal({ limit: 1 });
  if (claim?.kind !== 'claim') return { kind: 'halted', why: 'no-terminal' };
  const { occurrence, license: lineage } = claim.record;
  return await runtime.continuation({ occurrence, lineage }, 'reconcile').release(() => desk.reconcile());
}
