import { given } from '../contract/options.ts';
import { messageOf } from '../errors.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { openRequests } from '../requests/requests.ts';
import type { Recovered, RecoverOptions } from '../runtime/recover.ts';
import { createRuntime, type RuntimeConfig } from '../runtime/runtime.ts';
import { startWatcher } from '../workflow/watch.ts';
import { openWorkflows } from '../workflow/workflows.ts';
import { CONFIG_FLAG, EXIT, type ExitCode, type Verb } from './command.ts';
import { assertPresent, loadConfig } from './deployment.ts';
import { type Output, printableLine } from './output.ts';
import { catchInterrupt, showProgress } from './progress.ts';
import { workflowsOptions } from './workflow.ts';

const NODES_SHOWN = 10;

/** Settles the attempts of interrupted processes. */
export const verb: Verb = {
  summary: 'settle attempts that ended without a verdict',
  about: `Finds every claimed occurrence without a conclusive verdict and asks the backend, which
keeps a marker of every commit. It never runs or sends anything again. Attempts that may still be
alive are left alone until their lease has run out. It is safe to run at any time and from several
processes at once. With --watch it runs until Ctrl-C: it also drives the configured workflows and
their schedules, takes over the runs of workers that went silent, lets overdue requests expire, and
prints what needs a person.`,
  flags: {
    watch: { about: 'keep running, and check every few seconds', excludes: ['now', 'json'] },
    every: {
      value: 'SECONDS',
      about: 'with --watch: the time between two checks (default: 5)',
      needs: 'watch',
    },
    now: {
      about: 'do not wait for leases; an attempt that is still alive then loses and is refused',
    },
    ...CONFIG_FLAG,
  },
  examples: ['', '--watch'],
  async run(args, output) {
    const every = args.count('every', 1) ?? 5;
    const config = await loadConfig(args);
    assertPresent(config);
    if (args.has('watch')) return await watch(config, every, output);
    const results = await recoverAll(config, { now: args.has('now') });
    output.document({ recovered: results });
    if (results.length === 0)
      output.line('nothing to recover: every claimed occurrence has its verdict');
    for (const result of results) output.line(describe(result, output));
    if (results.some(({ kind }) => kind === 'running'))
      output.line(
        'next: run `effectmatch recover` again later; --now does not wait, and a live attempt then loses',
      );
    return exitCodeOfAll(results);
  },
};

/** Checks repeatedly, and prints once each what it did and what needs a person. */
async function watch(config: RuntimeConfig, seconds: number, output: Output): Promise<void> {
  using interrupt = catchInterrupt();
  await using runtime = await createRuntime({ ...config, recoverAtStart: false });
  const { requests: asked, operations } = config;
  await using requests =
    asked && (await openRequests({ ...asked, runtime, ...(operations && { operations }) }));
  const printed = new Set<string>();
  const say = (line: string) => {
    if (!printed.has(line)) output.line(line);
    printed.add(line);
  };
  const sayFault = (error: unknown) =>
    say(`${output.paint('bad', 'failed')}  ${printableLine(messageOf(error))}`);
  await using workflows =
    config.workflows &&
    (await openWorkflows({
      ...workflowsOptions(config, runtime),
      onFault: (_run, error) => sayFault(error),
    }));
  output.line(`watching, every ${seconds} s; end it with Ctrl-C`);
  await using _watcher = startWatcher({
    runtime,
    everyMs: seconds * 1000,
    ...given({ requests, workflows, telemetry: config.telemetry }),
    onLook: (found) => {
      for (const result of found.recovered)
        if (result.kind !== 'running') say(describe(result, output));
      for (const run of found.takenOver) say(`took over  ${printableLine(run)}`);
      for (const { occurrence, continuation } of found.continuations)
        say(`released, not completed  ${occurrence}  ${printableLine(continuation)}`);
      for (const { run, unapproved, needsResolution } of found.runs) {
        if (unapproved.length > 0) say(`waits for a signature  ${run}  ${listed(unapproved)}`);
        if (needsResolution.length > 0) say(`to be resolved  ${run}  ${listed(needsResolution)}`);
      }
      if (found.waiting > 0) say(`${found.waiting} requests wait for an answer`);
    },
    onFault: sayFault,
  });
  await interrupt.interrupted;
}

function listed(nodes: readonly string[]): string {
  const shown = nodes.slice(0, NODES_SHOWN).join(', ');
  return nodes.length > NODES_SHOWN ? `${shown} and ${nodes.length - NODES_SHOWN} more` : shown;
}

async function recoverAll(
  config: RuntimeConfig,
  options: RecoverOptions,
): Promise<readonly Recovered[]> {
  using _progress = showProgress('recovering');
  await using runtime = await createRuntime({ ...config, recoverAtStart: false });
  return await runtime.recover(options);
}

function describe(result: Recovered, { paint }: Output): string {
  const about = `${result.occurrence}  ${printableLine(result.task)}`;
  switch (result.kind) {
    case 'settled':
      return `${paint('good', 'settled')}     ${about}\n  ${explain(result.terminal)}`;
    case 'running':
      return `${paint('caution', 'running')}     ${about}\n  ${printableLine(result.why)}`;
    case 'unresolved':
      return `${paint('bad', 'unresolved')}  ${about}\n  ${printableLine(result.why)}`;
  }
}

/**
 * Only the reason `interrupted` proves that nothing became durable. With any other reason, another
 * attempt may have made the change.
 */
function explain(terminal: Terminal): string {
  if (terminal.kind !== 'rejected') return terminal.kind;
  const { kind, reason, detail } = terminal;
  const what = reason === 'interrupted' ? 'nothing became durable' : printableLine(detail);
  return `${kind} (${reason}: ${what})`;
}

function exitCodeOfAll(results: readonly Recovered[]): ExitCode {
  if (results.some(({ kind }) => kind === 'unresolved')) return EXIT.indeterminate;
  return results.some(({ kind }) => kind === 'running') ? EXIT.halted : EXIT.done;
}
