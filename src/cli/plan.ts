import { randomBytes } from 'node:crypto';
import { given } from '../contract/options.ts';
import type { Proposal } from '../protocol/license.ts';
import { renderLicense } from '../protocol/render-license.ts';
import { type Residue, renderResidue } from '../protocol/residue.ts';
import { accepts } from '../protocol/schema.ts';
import { type SessionSettings, settingsSchema } from '../protocol/settings.ts';
import type { PlanRequest } from '../runtime/rehearse.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import { ACTION_FLAGS, type ActionArgument, operationNamed, readActionArgument } from './action.ts';
import { type Arguments, CONFIG_FLAG, type Verb } from './command.ts';
import { assertKeyring, chooseAdapterName, loadConfig, openRuntime } from './deployment.ts';
import { sayUnchanged } from './fault.ts';
import { writePrivateFile } from './files.ts';
import { type Output, printableLine } from './output.ts';
import { showProgress } from './progress.ts';
import { pageThrough, printNote, printRendering } from './prompt.ts';

/** Rehearses an action and writes a proposal for an approver to sign. */
export const verb: Verb = {
  summary: 'rehearse a statement, roll it back, and show what it would do',
  about: `Runs the action twice in a held transaction, rolls it back both times, and shows every
change that it would leave behind, including those of triggers and cascades: + added, ~ changed, -
removed. Values that the database assigns are shown as generated, times as now. With --out it writes
the proposal that an approver signs. Large outcomes are summarised; --full shows every line, and the
proposal holds all of them. A configured operation is not rehearsed: its contract computes the
outcome from the input and the state it reads.`,
  flags: {
    adapter: { value: 'NAME', about: 'the adapter, if the configuration has several' },
    ...ACTION_FLAGS,
    by: { value: 'NAME', about: 'who asks, for the approver to read; not verified, not signed' },
    continuations: {
      value: 'LIST',
      about: 'dependent work that a commit releases, separated by commas',
    },
    force: { about: 'replace the file that --out names' },
    full: { about: 'show every change and every value in full; on a terminal, in your pager' },
    out: { value: 'FILE', about: 'write the proposal to this file' },
    reason: { value: 'TEXT', about: 'why, for the approver to read; not verified, not signed' },
    revision: {
      value: 'N',
      about:
        'plan revision (default: 1); raise it when you plan a task again: licenses of lower revisions are then refused',
    },
    set: {
      value: 'NAME=VALUE',
      about:
        'a session setting that the action runs under, such as app.actor=alice; may be repeated',
      repeats: true,
    },
    task: { value: 'TEXT', about: 'what this is for (default: a generated name)' },
    ...CONFIG_FLAG,
  },
  examples: [
    `--sql "update invoice set status = 'paid' where id = 4711"`,
    `--sql "update invoice set status = ? where id = ?" --values '["paid", 4711]' --out proposal.json`,
    '--file pay-4711.sql --set app.actor=alice --out proposal.json',
    `--operation payInvoice --input '{"invoice": 4711}' --out proposal.json`,
  ],
  async run(args, output) {
    const argument = readActionArgument(args);
    const [named, file] = [args.value('out'), args.path('out')];
    const config = await loadConfig(args);
    const request = {
      task: args.value('task') ?? `plan-${randomBytes(6).toString('hex')}`,
      planRevision: args.count('revision', 0) ?? 1,
      ...given({ requestedBy: args.value('by'), reason: args.value('reason') }),
      set: readSettings(args),
    };
    const { proposal, residue } =
      argument.kind === 'operation'
        ? await propose(config, argument, request)
        : await rehearse(config, {
            ...request,
            action: argument.action,
            adapter: chooseAdapterName(config.adapters, args),
            continuations: args.value('continuations')?.split(',') ?? [],
          });
    const force = args.has('force');
    if (file !== undefined) await writePrivateFile(file, [JSON.stringify(proposal)], { force });
    const { draft, approved, rendering } = proposal;
    const full = args.has('full');
    const shown = full ? renderLicense(draft, approved, { full }) : rendering;
    output.document({ proposal, rendering: shown, file: file ?? null, residue });
    if (full) await pageThrough(shown, output);
    else printRendering(shown, output);
    printNote(proposal, { full }, output);
    output.line();
    explain(argument, { proposal, residue }, output);
    output.line(
      named === undefined
        ? 'next: write it to a file for the approver with --out proposal.json'
        : `next: effectmatch approve ${named} --key NAME.key.json --out license.json`,
    );
  },
};

/** Parses settings. The value is everything after the first equals sign. */
function readSettings(args: Arguments): SessionSettings {
  const settings = new Map<string, string>();
  for (const setting of args.values('set')) {
    const [name = '', ...value] = setting.split('=');
    if (name === '' || value.length === 0)
      throw args.wrong(`--set takes a name and a value, such as app.actor=alice, not "${setting}"`);
    if (settings.has(name)) throw args.wrong(`--set gives ${name} twice`);
    if (!accepts(settingsSchema, { [name]: value.join('=') }))
      throw args.wrong(
        `--set ${name} is not possible: a name has lowercase letters, digits, _ and a dot, as in app.actor, and a value at most 1024 characters`,
      );
    settings.set(name, value.join('='));
  }
  return Object.fromEntries(settings);
}

/** A proposal, and what its rehearsal left behind despite the rollback. */
interface Planned {
  readonly proposal: Proposal;
  readonly residue: readonly Residue[];
}

/** Prints how the proposal was made, and warnings about it. */
function explain(argument: ActionArgument, { proposal, residue }: Planned, output: Output): void {
  const warn = (text: string) => output.line(output.paint('caution', text));
  output.line(
    argument.kind === 'operation'
      ? 'Computed by the operation from its input and the state it read: nothing was run.'
      : 'Rehearsed twice and rolled back: no data was changed.',
  );
  if (proposal.approved.effects.length === 0)
    warn('It changed nothing: look at its conditions and its values.');
  for (const line of renderResidue(residue)) warn(printableLine(line));
}

/** Proposes an operation, which computes its outcome itself. */
async function propose(
  config: RuntimeConfig,
  { name, input }: ActionArgument & { readonly kind: 'operation' },
  request: Pick<PlanRequest, 'task' | 'planRevision' | 'requestedBy' | 'reason'> & {
    readonly set: SessionSettings;
  },
): Promise<Planned> {
  operationNamed(config, name);
  assertKeyring(config);
  using _progress = showProgress('planning');
  await using runtime = await openRuntime(config);
  const proposal = await sayUnchanged(() => runtime.propose(name, input, request));
  return { proposal, residue: [] };
}

async function rehearse(config: RuntimeConfig, request: PlanRequest): Promise<Planned> {
  using _progress = showProgress('planning');
  await using runtime = await openRuntime(config);
  let residue: readonly Residue[] = [];
  const onResidue = (moved: readonly Residue[]) => {
    residue = moved;
  };
  const proposal = await runtime.plan(request, { onResidue });
  return { proposal, residue };
}
