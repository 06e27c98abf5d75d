import { existsSync } from 'node:fs';
import { parseSignedLicense } from '../crypto/signature.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import { occurrenceOf } from '../runtime/ensure.ts';
import {
  type Arguments,
  CONFIG_FLAG,
  EXIT,
  type ExitCode,
  exitCodeOf,
  type Verb,
} from './command.ts';
import { findOccurrence, loadConfig, openRuntime, readPrefix } from './deployment.ts';
import { withNext } from './fault.ts';
import { readTextFile } from './files.ts';
import { type Output, printable, toneOf } from './output.ts';
import { exitCodeOfRequest, openConfigured, printLine } from './requests.ts';

/** Waits for a verdict. */
export const verb: Verb = {
  summary: 'wait until an occurrence, a license or a request is decided',
  about: `Waits for the verdict about an occurrence, about the execution of a license (name its
file), or until nothing more happens to a request, and prints it. It executes nothing; an attempt
whose process died is recovered once its lease has run out. The exit code is that of the verdict;
${EXIT.rejected} also for a request that is declined, withdrawn, expired or stale, and
${EXIT.halted} if it timed out.`,
  positionals: ['what'],
  flags: {
    for: { value: 'SECONDS', about: 'how long to wait (default: 60)' },
    use: { value: 'N', about: 'which execution, from 1, if the license allows several' },
    ...CONFIG_FLAG,
  },
  examples: ['req_1f3a --for 600', 'license.json', 'occ_1f3a'],
  async run(args, output) {
    const waitMs = (args.count('for', 0) ?? 60) * 1000;
    return args.first.startsWith('req_')
      ? await waitForRequest(args, output, waitMs)
      : await waitForOccurrence(args, output, waitMs);
  },
};

async function waitForRequest(args: Arguments, output: Output, waitMs: number): Promise<ExitCode> {
  await using opened = await openConfigured(args);
  const id = await opened.requests.findId(args.first);
  const request = await opened.requests.wait(id, { waitMs });
  output.document(request);
  printLine(request, output);
  return exitCodeOfRequest(request);
}

async function waitForOccurrence(
  args: Arguments,
  output: Output,
  waitMs: number,
): Promise<ExitCode> {
  const licensed = existsSync(args.first) ? readLicensed(args) : undefined;
  const prefix = licensed ?? readPrefix(args.first);
  await using runtime = await openRuntime(await loadConfig(args));
  const occurrence = licensed ?? (await findOccurrence(runtime.ledgers, prefix));
  const terminal = await runtime.wait(occurrence, { waitMs });
  if (terminal === undefined) {
    output.document({ occurrence, terminal: null });
    output.line(`${occurrence} has no verdict yet`);
  } else {
    const text = renderTerminal(terminal);
    output.document({ occurrence, terminal, text });
    output.line(output.paint(toneOf(terminal.kind), printable(text)));
  }
  output.line(`next: effectmatch show ${occurrence}`);
  return exitCodeOf(terminal);
}

/** The occurrence of a license. */
function readLicensed(args: Arguments) {
  const text = readTextFile(args.first, 'name the file of a license');
  const next = 'name a license, an occurrence (occ_…) or a request (req_…)';
  const { license } = withNext('ERR_EM_RECORD_INVALID', next, () => parseSignedLicense(text));
  return occurrenceOf(license, args.count('use', 1));
}
