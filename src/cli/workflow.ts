import { approver } from '../crypto/approver.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import { drawRun } from '../workflow/draw.ts';
import { IDLE } from '../workflow/engine.ts';
import { inProcess } from '../workflow/in-process.ts';
import { RunRecords } from '../workflow/records.ts';
import {
  type HandoffReport,
  nextCommand,
  type ReportedNode,
  reportOf,
} from '../workflow/report.ts';
import { findRun, type RunStatus } from '../workflow/run.ts';
import { isDone, isFailed, type NodeState } from '../workflow/state.ts';
import { openWorkflows, type Workflows } from '../workflow/workflows.ts';
import { isSigningConfirmed, loadKey, readExpiry } from './approve.ts';
import { type Arguments, CONFIG_FLAG, EXIT, type ExitCode, type Verb } from './command.ts';
import { loadConfig, openRecords, openRuntime } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { type Output, printableLine, type Tone } from './output.ts';
import { catchInterrupt, showProgress } from './progress.ts';
import { printRendering } from './prompt.ts';

const EXPIRES = '1h';

/** Starts, shows and ends workflow runs. */
export const verb: Verb = {
  summary: 'start, approve, show, report or cancel a run of a workflow',
  about: `The actions: \`start NAME --id ID\` checks every node before anything happens, and records
what has to be signed. \`approve ID\` shows all of it and signs it after one answer. \`resume ID\`
executes what is approved and continues what an interrupted process left; Ctrl-C ends it after the
nodes in progress. \`show ID\` draws the graph (without ID it lists the runs), and \`report ID\`
says what is durable, what is not, what is pending, and what has to be resolved; both read only the
ledger. \`cancel ID\` starts no further nodes; what is durable stays. \`revise ID\` continues with
the plan that is configured now; earlier approvals no longer count. The exit code is ${EXIT.done} if
the run is done, ${EXIT.rejected} if it failed or was cancelled, ${EXIT.indeterminate} if something
has to be resolved, and ${EXIT.halted} while it waits.`,
  positionals: ['action'],
  optional: ['run'],
  flags: {
    id: { value: 'ID', about: 'start: the name of the run' },
    input: { value: 'JSON', about: 'start, revise: the input of the run' },
    key: { value: 'FILE', about: 'approve: your key file' },
    expires: {
      value: 'DURATION',
      about: `approve: how long the signatures are valid (default: ${EXPIRES})`,
    },
    yes: { about: 'approve: sign without asking' },
    reason: { value: 'TEXT', about: 'cancel: why' },
    by: { value: 'NAME', about: 'cancel: who cancels it (default: your user name)' },
    ...CONFIG_FLAG,
  },
  examples: [
    `start month-end --id 2026-10 --input '{"month":"2026-10"}'`,
    'approve 2026-10 --key ap-team.key.json',
    'resume 2026-10',
  ],
  async run(args, output) {
    const [action = '', name = ''] = args.positionals;
    const reads = action === 'show' || action === 'report';
    const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
    if (!reads && act === undefined)
      throw args.wrong(`write one of show, report, ${Object.keys(ACTIONS).join(', ')}`);
    if (action === 'show' && name === '') return await list(args, output);
    if (name === '') throw args.wrong(`name the ${action === 'start' ? 'workflow' : 'run'}`);
    if (act === undefined) return await look(action, name, args, output);
    await using opened = await openConfiguredWorkflows(args);
    const report = await act({ workflows: opened.workflows, name, args, output });
    return report === undefined ? EXIT.rejected : printReport(report, output);
  },
};

interface Acting {
  readonly workflows: Workflows;
  readonly name: string;
  readonly args: Arguments;
  readonly output: Output;
}

/** The actions that change a run. The result is undefined if a person said no. */
const ACTIONS: Readonly<Record<string, (acting: Acting) => Promise<HandoffReport | undefined>>> = {
  start: ({ workflows, name, args }) =>
    workflows.start(name, { id: args.needed('id'), input: readInput(args) ?? null }),
  approve: approveAll,
  resume: ({ workflows, name }) => driveInterruptibly(workflows, name),
  revise({ workflows, name, args }) {
    const input = readInput(args);
    return workflows.revise(name, input === undefined ? {} : { input });
  },
  cancel({ workflows, name, args }) {
    const by = args.value('by') ?? process.env.USER ?? 'operator';
    return workflows.cancel(name, { by, reason: args.needed('reason') });
  },
};

/** On Ctrl-C, starts no more nodes and waits for those in progress, so no license is wasted. */
async function driveInterruptibly(workflows: Workflows, run: string): Promise<HandoffReport> {
  using _progress = showProgress('running');
  using interrupt = catchInterrupt();
  void interrupt.interrupted.then(() =>
    process.stderr.write('finishing the nodes in progress; press Ctrl-C again to stop at once\n'),
  );
  return await workflows.drive(run, interrupt.signal);
}

/** Opens the configured workflows without starting anything. */
async function openConfiguredWorkflows(args: Arguments) {
  const config = await loadConfig(args);
  const runtime = await openRuntime(config);
  const options = workflowsOptions(config, runtime);
  const workflows = await openWorkflows({ ...options, engine: IDLE, schedules: [] });
  return {
    workflows,
    async [Symbol.asyncDispose]() {
      await workflows.close();
      await runtime.close();
    },
  };
}

/** The options for opening a configuration's workflows. */
export function workflowsOptions(config: RuntimeConfig, runtime: Runtime) {
  const { workflows: configured, operations } = config;
  if (configured === undefined)
    throw new GuidedError(
      'ERR_EM_CONFIG_INVALID',
      'the configuration has no `workflows`; nothing was done',
      "add `workflows: { plans: { 'month-end': monthEnd } }` to it",
    );
  const { plans, engine = inProcess(), schedules = [] } = configured;
  return { runtime, plans, engine, schedules, ...(operations && { operations }) };
}

function readInput(args: Arguments): unknown {
  const text = args.value('input');
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw args.wrong('--input takes JSON');
  }
}

/** Shows everything that waits for a signature, and signs it with one answer. */
async function approveAll({ workflows, name, args, output }: Acting) {
  const waiting = await workflows.unapproved(name);
  const key = loadKey(args.neededPath('key'));
  const expiresIn = readExpiry(args, EXPIRES);
  const own = waiting.filter(({ issuers }) => issuers.includes(key.issuer));
  if (own.length === 0)
    throw new GuidedError(
      'ERR_EM_NOT_FOUND',
      `nothing of run "${name}" waits for a signature by ${key.issuer}`,
      `look at it with \`effectmatch workflow report ${name}\``,
    );
  for (const { instance, proposal } of own) {
    output.line(output.paint('strong', printableLine(instance)));
    printRendering(proposal.rendering, output);
    output.line();
  }
  const question = `Sign all ${own.length} of these as ${key.issuer}, valid for ${expiresIn}?`;
  if (!(await isSigningConfirmed(args, question, output))) return undefined;
  const signer = approver(key);
  const licenses = own.map(({ proposal }) => signer.sign(proposal, { expiresIn }));
  return await workflows.approve(name, licenses);
}

async function list(args: Arguments, output: Output): Promise<void> {
  await using records = await openRecords(args);
  const found = await new RunRecords(records.ledgers).list();
  const views = await Promise.all(found.map((run) => findRun(records.ledgers, run)));
  const reports = views.map(reportOf);
  output.document({ runs: reports });
  if (reports.length === 0) output.line('no run has started');
  for (const { run, workflow: name, status } of reports)
    output.line(`${output.paint(toneOfStatus(status), status.padEnd(9))}  ${run}  ${name}`);
}

async function look(what: string, run: string, args: Arguments, output: Output): Promise<ExitCode> {
  await using records = await openRecords(args);
  const view = await findRun(records.ledgers, run);
  const report = reportOf(view);
  if (what === 'report') return printReport(report, output);
  output.document({ ...report, nodes: view.record.nodes });
  printHead(report, output);
  for (const { text, state } of drawRun(view))
    output.line(`  ${output.paint(toneOfState(state), printableLine(text))}`);
  return exitCodeOf(report);
}

function printHead(report: HandoffReport, { line, paint }: Output): void {
  const { workflow: name, run, revision, status, stop } = report;
  line(`${paint(toneOfStatus(status), status)}  ${name} ${run}, revision ${revision}`);
  if (stop !== undefined) line(`  stopped before anything began: ${printableLine(stop)}`);
}

const TITLES = {
  durable: 'durable',
  notDone: 'not done',
  waiting: 'waiting',
  needsResolution: 'needs resolution',
} as const;

function printReport(report: HandoffReport, output: Output): ExitCode {
  output.document(report);
  printHead(report, output);
  for (const list of Object.keys(TITLES) as (keyof typeof TITLES)[]) {
    const nodes: readonly (ReportedNode & { readonly for?: string })[] = report[list];
    if (nodes.length > 0) output.line(`${TITLES[list]} (${nodes.length})`);
    for (const node of nodes.slice(0, 50)) output.line(`  ${describeNode(node)}`);
    if (nodes.length > 50) output.line(`  … ${nodes.length - 50} more; --json shows all`);
  }
  const next = adviceAbout(report);
  if (next !== undefined) output.line(`next: ${next}`);
  return exitCodeOf(report);
}

function describeNode(node: ReportedNode & { readonly for?: string }): string {
  const { instance, state, detail, occurrence, for: whom } = node;
  const why = whom === undefined ? (detail ?? '') : `for ${whom}`;
  return printableLine(`${instance}  ${state}  ${why}  ${occurrence ?? ''}`.trimEnd());
}

function adviceAbout(report: HandoffReport): string | undefined {
  if (report.needsResolution.length > 0)
    return '`effectmatch show` the occurrences above; see the runbook about stuck workflows';
  return nextCommand(report);
}

function exitCodeOf({ status, needsResolution }: HandoffReport): ExitCode {
  if (status === 'done') return EXIT.done;
  if (needsResolution.length > 0) return EXIT.indeterminate;
  return status === 'failed' || status === 'cancelled' ? EXIT.rejected : EXIT.halted;
}

function toneOfStatus(status: RunStatus): Tone {
  if (status === 'done') return 'good';
  return status === 'failed' || status === 'cancelled' ? 'bad' : 'caution';
}

function toneOfState(state: NodeState): Tone {
  if (isDone(state)) return 'good';
  return isFailed(state) ? 'bad' : 'caution';
}
