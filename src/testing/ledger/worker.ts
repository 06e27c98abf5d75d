import type { LedgerContext, Ledgers } from '../../contract/ledgers.ts';
import { digestRecord, occurrenceId } from '../../crypto/digest.ts';
import type { ClaimRecord } from '../../protocol/binding.ts';
import { licenseRecord } from '../../protocol/license.ts';
import {
  claimFixture,
  fixtureAcknowledgement,
  fixtureContext,
  fixtureExecution,
  fixtureLicense,
  fixturePermit,
  fixtureRequest,
  fixtureTerminal,
} from './fixtures.ts';

/** What a worker process should do with the license of that name. */
export interface Order {
  readonly do: 'claim' | 'consume' | 'void' | 'commit' | 'acknowledge' | 'stream';
  readonly name: string;
  /** Names the execution that claims. */
  readonly by: string;
}

export interface WorkerAnswer {
  readonly name: string;
  readonly answer: string;
}

/** Runs in a separate process: opens a store and follows orders one after the other. */
async function work(module: string, location: string): Promise<void> {
  const { openLedgers } = (await import(module)) as {
    openLedgers(location: string, context: LedgerContext): Promise<Ledgers>;
  };
  const context = fixtureContext();
  const ledgers = await openLedgers(location, context);
  let orders = Promise.resolve();
  process.on('message', (order: Order) => {
    orders = orders
      .then(() => follow(ledgers, context, order))
      .catch((error: unknown) => reply(order.name, String(error)));
  });
  reply('', 'ready');
}

async function follow(ledgers: Ledgers, context: LedgerContext, order: Order): Promise<void> {
  const license = fixtureLicense(order.name);
  switch (order.do) {
    case 'claim': {
      const result = await ledgers.claim(
        fixtureRequest(context, license, fixtureExecution(order.by)),
      );
      return reply(order.name, result.kind === 'claimed' ? 'claimed' : result.reason);
    }
    case 'consume': {
      const permit = fixturePermit(context, await claimOf(ledgers, order.name));
      return reply(order.name, (await ledgers.consumePermit(permit)).kind);
    }
    case 'void': {
      const { occurrence, execution } = await claimOf(ledgers, order.name);
      return reply(order.name, `found ${(await ledgers.voidPermit(occurrence, execution)).kind}`);
    }
    case 'commit': {
      const terminal = fixtureTerminal(context, await claimOf(ledgers, order.name), 'committed');
      return reply(order.name, (await ledgers.record(terminal, 'relaxed')).kind);
    }
    case 'acknowledge': {
      const acknowledgement = fixtureAcknowledgement(context, await claimOf(ledgers, order.name));
      return reply(
        order.name,
        (await ledgers.acknowledge(acknowledgement)) ? 'released' : 'not released',
      );
    }
    case 'stream':
      for (let index = 0; ; index += 1) {
        const name = `${order.name} ${index}`;
        await claimFixture(ledgers, context, name);
        reply(name, 'claimed');
      }
  }
}

async function claimOf(ledgers: Ledgers, name: string): Promise<ClaimRecord> {
  const license = fixtureLicense(name);
  const occurrence = occurrenceId({
    ...license,
    license: digestRecord(licenseRecord, license),
    index: 0,
  });
  const holder = await ledgers.holder(occurrence);
  if (holder === undefined) throw new Error(`${name} is not claimed`);
  return holder.claim.record;
}

function reply(name: string, answer: string): void {
  process.send?.({ name, answer } satisfies WorkerAnswer);
}

const [module, location] = process.argv.slice(2);
if (module !== undefined && location !== undefined) await work(module, location);
