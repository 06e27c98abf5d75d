import { digestRecord } from '../crypto/digest.ts';
import { parseSignedLicense } from '../crypto/signature.ts';
import { licenseRecord } from '../protocol/license.ts';
import type { Terminal } from '../protocol/terminal.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import { GuidedError } from './guided-error.ts';
import { catchInterrupt, showProgress } from './progress.ts';
import { openRuntime } from './unchanged.ts';

/**
 * Executes an action; Ctrl-C settles it as recovery settles an attempt whose process died, and its
 * verdict is recorded. An execution that reaches its own end first keeps its own verdict: whichever
 * is recorded first is the one.
 */
export async function executeInterruptibly(
  config: RuntimeConfig,
  license: string,
  action: unknown,
): Promise<Terminal> {
  using _progress = showProgress('running');
  const runtime = await openRuntime(config);
  using interrupt = catchInterrupt();
  const executing = runtime.execute(license, action);
  const first = await Promise.race([executing, interrupt.interrupted]).catch(
    async (error: unknown) => {
      await runtime.close();
      throw error;
    },
  );
  if (first !== 'interrupted') {
    await runtime.close();
    return first;
  }
  // Not closed: a session that still waits for the backend would keep us waiting. It ends with the
  // process.
  const ended = executing.catch(() => undefined);
  const terminal = await Promise.race([settleInterrupted(config, license), ended]);
  return terminal ?? (await ended) ?? (await reportUnsettled(runtime, license));
}

/**
 * Settles what this license claimed, over connections of its own; undefined where that is not
 * possible now.
 */
async function settleInterrupted(
  config: RuntimeConfig,
  license: string,
): Promise<Terminal | undefined> {
  try {
    await using other = await openRuntime({ ...config, recoverAtStart: false });
    const [settled] = await other.recover({ now: true, license: digestOf(license) });
    if (settled?.kind === 'settled') return settled.terminal;
  } catch {
    // The execution itself goes on, and says how it ended.
  }
  return undefined;
}

async function reportUnsettled({ ledgers }: Runtime, license: string): Promise<never> {
  const digest = digestOf(license);
  const left = (await ledgers.unsettled({ includeLeased: true })).find(
    ({ claim }) => claim.record.license === digest,
  );
  throw new GuidedError(
    'ERR_EM_ADAPTER_UNAVAILABLE',
    left === undefined
      ? 'interrupted before anything was claimed; nothing was changed'
      : `interrupted, and ${left.claim.record.occurrence} has no verdict yet`,
    'run `effectmatch recover`: it says what became of it, and never runs anything again',
  );
}

function digestOf(license: string) {
  return digestRecord(licenseRecord, parseSignedLicense(license).license);
}
