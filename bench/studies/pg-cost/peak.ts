import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { generateApprover } from '../../../src/crypto/approver.ts';
import { atMost, type Cell, figure } from '../../study.ts';
import { LEDGERS } from './paths.ts';
import type { PeakReport, PeakTask, Phase } from './peak-worker.ts';
import type { Site } from './site.ts';

const WORKER = new URL('./peak-worker.ts', import.meta.url).pathname;
const LIMIT = 2 ** 30;

/**
 * Left to itself, the engine lets garbage pile up as long as the machine has memory. Told how much
 * it may use, it collects in time, as it does in a container.
 */
const HEAP_MB = 540;
const YOUNG_MB = 4;

const STAGE_TIMEOUT_MS = 600_000;

/**
 * The most memory that a process ever has resident while it approves, signs and executes one insert
 * of many rows: all in one process, and each phase in a process of its own.
 */
export async function measurePeak(
  site: Site,
  rows: number,
  progress: (line: string) => void,
): Promise<Cell[]> {
  const cells: Cell[] = [];
  for (const ledger of LEDGERS) {
    const name = join(site.folder, `peak-${ledger}`);
    const base = {
      rows,
      options: { ...site.options, stageTimeoutMs: STAGE_TIMEOUT_MS },
      store: ledger === 'SQLite' ? `${name}.db` : await site.createLedgerPlace(),
      keyring: `${name}.keys.json`,
      key: generateApprover('bench'),
      proposalFile: `${name}.proposal.json`,
      licenseFile: `${name}.license.json`,
    };
    for (const phase of ['whole', 'prepare', 'sign', 'execute'] as const) {
      progress(`${rows} inserted rows, ${ledger} ledger: ${phase}`);
      const { peakBytes } = await runPhase({ ...base, phase });
      const what = `${rows} inserted rows, ${ledger} ledger: peak memory`;
      cells.push(
        phase === 'whole'
          ? atMost(`${what} of all in one process`, peakBytes, 'bytes', LIMIT)
          : figure(`${what}, ${phase} alone`, peakBytes, 'bytes'),
      );
      await site.emptyBulk();
    }
  }
  return cells;
}

/** Runs a phase in a process of its own. Only a run that was complete has a peak. */
export async function runPhase(
  task: PeakTask & { readonly phase: Phase },
  heapMb = HEAP_MB,
): Promise<PeakReport> {
  const heap = [`--max-old-space-size=${heapMb}`, `--max-semi-space-size=${YOUNG_MB}`];
  const child = spawn(process.execPath, ['--no-warnings', ...heap, WORKER], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(JSON.stringify(task));
  const [out, errors] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    child.exitCode ?? once(child, 'exit'),
  ]);
  if (child.exitCode !== 0)
    throw new Error(`${task.phase} of ${task.rows} rows failed: ${errors.slice(-2000)}`);
  return JSON.parse(out);
}
