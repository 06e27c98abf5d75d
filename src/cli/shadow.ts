import { renderSeen, renderShadow, type Shadow } from '../protocol/shadow.ts';
import type { Shadowed } from '../runtime/shadow.ts';
import { ACTION_FLAGS, actionOf, readActionArgument } from './action.ts';
import { type Arguments, CONFIG_FLAG, EXIT, type Verb } from './command.ts';
import { assertKeyring, chooseAdapterName, loadConfig, openRuntime } from './deployment.ts';
import { readTextFile } from './files.ts';
import { type Output, printable, shortId, type Tone } from './output.ts';
import { showProgress } from './progress.ts';
import { printRendering } from './prompt.ts';

/**
 * Shows what `run` would decide, without deciding anything. It is a separate verb because a
 * forgotten or misspelt flag must not turn a trial into an execution.
 */
export const verb: Verb = {
  summary: 'say what `run` would decide, without changing anything',
  about: `Runs the action once in a held transaction, rolls it back, compares what it would leave
behind with a license or an unsigned proposal, and records what \`run\` would have decided. Without
a file it shows what it observed. No license is spent, nothing is released, and the record is not a
verdict. The exit code is ${EXIT.done} regardless of the decision.`,
  optional: ['license or proposal'],
  flags: {
    adapter: {
      value: 'NAME',
      about: 'without a file: the adapter, if the configuration has several',
    },
    ...ACTION_FLAGS,
    full: { about: 'show every difference and every change in full' },
    task: { value: 'TEXT', about: 'without a file: what this is for (default: shadow)' },
    ...CONFIG_FLAG,
  },
  examples: [
    `--sql "update invoice set status = 'paid' where id = 4711" --task invoice-4711`,
    'proposal.json --action action.json',
  ],
  async run(args, output) {
    const argument = readActionArgument(args);
    const file = readApproval(args);
    const config = await loadConfig(args);
    assertKeyring(config);
    const action = await actionOf(config, argument);
    const approval = file ?? {
      adapter: chooseAdapterName(config.adapters, args),
      task: args.value('task') ?? 'shadow',
      planRevision: 1,
    };
    using _progress = showProgress('shadowing');
    await using runtime = await openRuntime({ ...config, recoverAtStart: false });
    print(await runtime.shadow(approval, action), { full: args.has('full') }, output);
  },
};

function readApproval(args: Arguments): string | undefined {
  if (args.first === '') return undefined;
  const other = ['adapter', 'task'].find((flag) => args.has(flag));
  if (other !== undefined)
    throw args.wrong(`--${other} cannot be combined with a file, which already names it`);
  const next = 'name a file that `effectmatch plan --out` or `effectmatch approve --out` wrote';
  return readTextFile(args.first, next);
}

function print(
  { record, seen }: Shadowed,
  options: { readonly full: boolean },
  output: Output,
): void {
  const text = renderShadow(record, options);
  output.document({ shadow: record, text, seen: seen ?? null });
  output.line(output.paint(shadowTone(record), printable(text)));
  if (record.would === 'propose' && seen !== undefined && seen.length > 0)
    printRendering(renderSeen(seen, options), output);
  output.line('Rolled back, and no verdict: no license was spent and nothing is released.');
  const look = `effectmatch show ${shortId(record.occurrence)}`;
  output.line(`next: ${look}, or effectmatch journal --kind shadow`);
}

/** Green only if it would have committed. The text says so too. */
export function shadowTone({ would }: Shadow): Tone {
  if (would === 'commit') return 'good';
  return would === 'reject' ? 'bad' : 'caution';
}
