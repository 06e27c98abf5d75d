// One phase of a bulk approval in a process of its own, which reports the most memory it ever had
// resident. Started by `peak.ts`; reads its task from standard input.
import { readFileSync, writeFileSync } from 'node:fs';
import { type PostgresOptions, postgres } from '../../../src/adapters/postgres/index.ts';
import { type ApproverKey, approver } from '../../../src/crypto/approver.ts';
import { postgresLedgers } from '../../../src/ledger/postgres/index.ts';
import { insert } from '../../../src/protocol/draft.ts';
import type { Proposal } from '../../../src/protocol/license.ts';
import type { Terminal } from '../../../src/protocol/terminal.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { BULK_TABLE } from './books.ts';

/** What a process does: one phase with files between them, or all three with nothing written. */
export type Phase = 'prepare' | 'sign' | 'execute' | 'whole';

/** The task of one process. */
export interface PeakTask {
  readonly phase: Phase;
  readonly rows: number;
  readonly options: PostgresOptions;
  /** A file, or where the ledger is in the database. */
  readonly store: string | { readonly url: string; readonly schema: string };
  readonly keyring: string;
  readonly key: ApproverKey;
  /** Files that hand over the proposal and the signed license as JSON. */
  readonly proposalFile: string;
  readonly licenseFile: string;
}

/** What a process found. */
export interface PeakReport {
  readonly peakBytes: number;
  readonly cpuMs: number;
}

const SQL = `insert into ${BULK_TABLE} select n, 100, 'line ' || n from generate_series(1, $1::integer) as n`;

const task: PeakTask = JSON.parse(readFileSync(0, 'utf8'));
await runPhase();
process.stdout.write(
  JSON.stringify({ peakBytes: peakBytes(), cpuMs: cpuMs() } satisfies PeakReport),
);

async function runPhase(): Promise<void> {
  switch (task.phase) {
    case 'prepare':
      return await withRuntime(async (runtime) => {
        writeFileSync(task.proposalFile, JSON.stringify(await propose(runtime)));
      });
    case 'sign':
      writeFileSync(
        task.licenseFile,
        JSON.stringify(sign(readFileSync(task.proposalFile, 'utf8'))),
      );
      return;
    case 'execute':
      return await withRuntime((runtime) =>
        commit(runtime, readFileSync(task.licenseFile, 'utf8')).then(demandCommitted),
      );
    default:
      return await withRuntime(async (runtime) =>
        demandCommitted(await commit(runtime, sign(await propose(runtime)))),
      );
  }
}

async function withRuntime(use: (runtime: Runtime) => Promise<void>): Promise<void> {
  const { options, store, keyring, key } = task;
  const runtime = await createRuntime({
    store: typeof store === 'string' ? store : postgresLedgers(store.url, store),
    keyring,
    issuers: { bench: { key: key.publicKey, may: ['books'] } },
    adapters: { books: postgres(options) },
  });
  await use(runtime);
  await runtime.close();
}

/** Not async, so that nothing but the runtime holds on to the effects. */
function propose(runtime: Runtime): Promise<Proposal> {
  const effects = Array.from({ length: task.rows }, (_, index) =>
    insert(BULK_TABLE, { id: index + 1, amount_cents: 100, text: `line ${index + 1}` }),
  );
  return runtime.prepare({ adapter: 'books', task: 'bulk', planRevision: 1, effects });
}

function sign(proposal: Proposal | string): unknown {
  return approver(task.key).sign(proposal as Proposal, { expiresIn: '1h' });
}

/** Not async either, so that nothing holds on to a license that is a text. */
function commit(runtime: Runtime, license: unknown): Promise<Terminal> {
  return runtime.execute(license, { sql: SQL, values: [task.rows] });
}

function demandCommitted(terminal: Terminal): void {
  if (terminal.kind !== 'committed')
    throw new Error(`not committed: ${JSON.stringify(terminal).slice(0, 2000)}`);
}

/** The kernel's own count of resident memory at its highest. */
function peakBytes(): number {
  const [, kilobytes] =
    /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
