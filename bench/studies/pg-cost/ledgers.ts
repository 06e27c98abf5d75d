import { join } from 'node:path';
import type { LedgerContext, Ledgers } from '../../../src/contract/ledgers.ts';
import { sqliteLedgers } from '../../../src/ledger/sqlite/index.ts';
import type { OccurrenceId } from '../../../src/protocol/record.ts';
import {
  claimFixture,
  fixtureContext,
  fixtureTerminal,
} from '../../../src/testing/ledger/fixtures.ts';
import { type Cell, figure, medianCell } from '../../study.ts';
import { LEDGERS, type LedgerKind } from './paths.ts';
import type { Site } from './site.ts';

export interface LedgersSize {
  /** Claims of one measurement. */
  readonly claims: number;
  /** Sizes of the journal at which occurrences are looked up. */
  readonly occurrences: readonly number[];
  readonly lookups: number;
}

const WORKERS = [1, 8, 32];

/** Workers that fill a journal as fast as it takes decisions. */
const FILLERS = 256;

/** A ledger of the study, and the occurrences that were claimed in it. */
interface Filled {
  readonly ledgers: Ledgers;
  readonly context: LedgerContext;
  readonly claimed: OccurrenceId[];
}

/** What each ledger decides per second, and how long a look-up takes in a long journal. */
export async function measureLedgers(
  site: Site,
  size: LedgersSize,
  progress: (line: string) => void,
): Promise<Cell[]> {
  const cells: Cell[] = [];
  for (const kind of LEDGERS) {
    const context = fixtureContext();
    const factory =
      kind === 'SQLite' ? sqliteLedgers(join(site.folder, 'rates.db')) : await site.createLedger();
    const filled: Filled = { context, ledgers: await factory.open(context), claimed: [] };
    try {
      for (const workers of WORKERS) {
        progress(`${kind} ledger, ${workers} workers`);
        cells.push(...(await measureRates(kind, filled, workers, size.claims)));
      }
      for (const occurrences of size.occurrences) {
        progress(`${kind} ledger, ${occurrences} occurrences`);
        await together(FILLERS, occurrences - filled.claimed.length, () => claim(filled));
        cells.push(await measureLookups(kind, filled, size.lookups));
      }
    } finally {
      await filled.ledgers.close();
    }
  }
  return cells;
}

async function measureRates(
  kind: LedgerKind,
  filled: Filled,
  workers: number,
  count: number,
): Promise<readonly Cell[]> {
  const { ledgers, context } = filled;
  const claims: Awaited<ReturnType<typeof claim>>[] = [];
  const claimMs = await together(workers, count, async () => {
    claims.push(await claim(filled));
  });
  const terminals = claims.map(({ record }) => fixtureTerminal(context, record, 'committed'));
  let next = 0;
  const terminalMs = await together(workers, count, async () => {
    const terminal = terminals[next];
    next += 1;
    if (terminal !== undefined) await ledgers.record(terminal, 'relaxed');
  });
  const name = `${kind} ledger, ${workers} workers`;
  return [
    figure(`${name}: claims`, (count * 1000) / claimMs, '/s'),
    figure(`${name}: terminals`, (count * 1000) / terminalMs, '/s'),
  ];
}

async function claim({ ledgers, context, claimed }: Filled) {
  const sealed = await claimFixture(ledgers, context, crypto.randomUUID());
  claimed.push(sealed.record.occurrence);
  return sealed;
}

/** One look-up after the other, over the whole journal. */
async function measureLookups(
  kind: LedgerKind,
  { ledgers, claimed }: Filled,
  count: number,
): Promise<Cell> {
  const times: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const occurrence = claimed[Math.floor((index / count) * claimed.length)] as OccurrenceId;
    const started = performance.now();
    const holder = await ledgers.holder(occurrence);
    times.push(performance.now() - started);
    if (holder === undefined) throw new Error('a claim is missing');
  }
  const name = `${kind} ledger, ${claimed.length} occurrences: look-up`;
  return medianCell(name, times, 'us', 1000);
}

/** Has workers do a number of jobs between them, and returns how long that took. */
async function together(
  workers: number,
  count: number,
  job: () => Promise<unknown>,
): Promise<number> {
  let left = count;
  const started = performance.now();
  const work = async () => {
    while (left > 0) {
      left -= 1;
      await job();
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  return performance.now() - started;
}
