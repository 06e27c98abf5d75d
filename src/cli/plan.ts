import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import { EffectMatchError } from '../errors.ts';
import type { Proposal } from '../protocol/license.ts';
import { renderLicense } from '../protocol/render-license.ts';
import { type Residue, renderResidue } from '../protocol/residue.ts';
import type { ProposeOptions } from '../runtime/propose.ts';
import type { PlanRequest } from '../runtime/rehearse.ts';
import type { RuntimeConfig } from '../runtime/runtime.ts';
import {
  ACTION_FLAGS,
  type Asked,
  chooseAdapterName,
  operationNamed,
  readAsked,
} from './action-argument.ts';
import { CONFIG_FLAG } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { GuidedError } from './guided-error.ts';
import { loadConfig } from './load-config.ts';
import { assertKeyring } from './open-store.ts';
import { printableLine } from './output.ts';
import { leafThrough, printRendering } from './print-rendering.ts';
import { writePrivateFile } from './private-file.ts';
import { showProgress } from './progress.ts';
import { openRuntime, sayUnchanged } from './unchanged.ts';
import type { Verb } from './verb.ts';

/** Rehearses an action and writes down what it would do, for somebody to approve. */
export const plan: Verb = {
  name: 'plan',
  summary: 'rehearse a statement, roll it back, and show what it would do',
  about: `Runs the action twice in a held transaction, rolls it back both times, and shows every change that it would leave
behind, those of triggers and cascades included: + added, ~ changed, - removed. Values that the database assigns are
shown as generated, times as now. With --out it writes the proposal that an approver signs. Large outcomes are summarised
by table and operation with samples; --full shows every line. The proposal holds all of it either way. An operation of the
configuration is not rehearsed: its contract computes the outcome from the input and the state it reads.`,
  positionals: [],
  flags: {
    adapter: { value: 'NAME', about: 'the adapter, where the configuration has several' },
    ...ACTION_FLAGS,
    continuations: {
      value: 'LIST',
      about: 'dependent work that a commit releases, separated by commas',
    },
    force: { about: 'replace the file that --out names' },
    full: { about: 'show every change and every value in full, on a terminal in your pager' },
    out: { value: 'FILE', about: 'write the proposal to this file' },
    revision: {
      value: 'N',
      about: 'plan revision; a higher one supersedes earlier plans of the task (default: 1)',
    },
    task: { value: 'TEXT', about: 'what this is for (default: a generated name)' },
    ...CONFIG_FLAG,
  },
  examples: [
    `effectmatch plan --sql "update invoice set status = 'paid' where id = 4711"`,
    `effectmatch plan --sql "update invoice set status = ? where id = ?" --values '["paid", 4711]' --out proposal.json`,
    'effectmatch plan --action action.json --task invoice-4711 --full',
    `effectmatch plan --operation payInvoice --input '{"invoice": 4711}' --out proposal.json`,
  ],
  async run(args, output) {
    const asked = readAsked(args, 'plan');
    const named = args.value('out');
    const out = named === undefined ? undefined : resolve(named);
    const config = await loadConfig(args);
    const terms = {
      task: args.value('task') ?? `plan-${randomBytes(6).toString('hex')}`,
      planRevision: args.count('revision', 0) ?? 1,
    };
    const { proposal, residue } = await propose(
      config,
      asked,
      (action) => ({
        ...terms,
        action,
        adapter: chooseAdapterName(config, args.value('adapter'), 'plan'),
        continuations: args.value('continuations')?.split(',') ?? [],
      }),
      terms,
    );
    if (out !== undefined)
      await writePrivateFile(out, [JSON.stringify(proposal)], { force: args.has('force') });
    const { draft, approved, rendering } = proposal;
    const shown = args.has('full') ? renderLicense(draft, approved, { full: true }) : rendering;
    output.document({ proposal, rendering: shown, file: out ?? null, residue });
    if (args.has('full')) await leafThrough(shown, output);
    else printRendering(shown, output);
    output.line();
    output.line(
      asked.kind === 'operation'
        ? 'Computed by the operation from its input and the state it read: nothing was run.'
        : 'Rehearsed twice and rolled back: no data was changed.',
    );
    if (approved.effects.length === 0) {
      output.line(
        output.paint('caution', 'It changed nothing: look at its conditions and its values.'),
      );
    }
    for (const line of renderResidue(residue))
      output.line(output.paint('caution', printableLine(line)));
    output.line(
      out === undefined
        ? 'next: write it to a file for the approver with --out proposal.json'
        : `next: effectmatch approve ${named} --key NAME.key.json --out license.json`,
    );
    return EXIT.done;
  },
};

/** An operation computes its outcome itself; everything else is rehearsed. */
async function propose(
  config: RuntimeConfig,
  asked: Asked,
  request: (action: unknown) => PlanRequest,
  terms: ProposeOptions,
): Promise<{ readonly proposal: Proposal; readonly residue: readonly Residue[] }> {
  if (asked.kind === 'operation') operationNamed(config, asked.name);
  assertKeyring(config);
  using _progress = showProgress('planning');
  await using runtime = await openRuntime(config);
  if (asked.kind === 'operation') {
    return {
      proposal: await sayUnchanged(() => runtime.propose(asked.name, asked.input, terms)),
      residue: [],
    };
  }
  let residue: readonly Residue[] = [];
  const onResidue = (moved: readonly Residue[]) => {
    residue = moved;
  };
  try {
    return { proposal: await runtime.plan(request(asked.action), { onResidue }), residue };
  } catch (cause) {
    if (!(cause instanceof EffectMatchError) || cause.code !== 'ERR_EM_REHEARSAL_REFUSED')
      throw cause;
    throw new GuidedError(cause.code, cause.message, adviseRehearsal(cause.message), { cause });
  }
}

/** What to do about a refused rehearsal, by what refused it. */
function adviseRehearsal(message: string): string {
  if (/boundary cannot be certified/.test(message)) {
    return 'run `effectmatch doctor`: it names what is open and the statements that close it';
  }
  if (/permission denied for view/.test(message)) {
    return 'add the view to `views` and the tables it writes to `relations`, then run `effectmatch provision`, or leave it out of the action';
  }
  if (/not registered|permission denied|\b42501\b/.test(message)) {
    return 'add the table to `relations` in the configuration (on PostgreSQL run `effectmatch provision` then), or leave it out of the action';
  }
  if (/outlet-denied/.test(message))
    return 'leave what the message names out of the action: no approval allows it';
  if (/action failed/.test(message)) return 'correct the statement and plan again';
  if (/could not be established/.test(message)) {
    return 'write only to registered tables, as the message says; `effectmatch doctor --all` lists the boundary';
  }
  return 'make the action repeatable at the cells named above, or approve a manifest instead';
}
