import { renderSeen, renderShadow, type Shadow } from '../protocol/shadow.ts';
import type { Shadowed } from '../runtime/shadow.ts';
import { ACTION_FLAGS, actionOf, chooseAdapterName, readAsked } from './action-argument.ts';
import { type Arguments, CONFIG_FLAG } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { usageError } from './guided-error.ts';
import { loadConfig } from './load-config.ts';
import { assertKeyring } from './open-store.ts';
import { type Output, printable, type Tone } from './output.ts';
import { printRendering } from './print-rendering.ts';
import { showProgress } from './progress.ts';
import { readTextFile } from './text-file.ts';
import { openRuntime } from './unchanged.ts';
import type { Verb } from './verb.ts';

/**
 * Says what `run` would have decided, beside production and without deciding anything. A verb of
 * its own: a flag that is forgotten or misspelt must not turn a look into an execution.
 */
export const shadow: Verb = {
  name: 'shadow',
  summary: 'say what `run` would decide about an action, without deciding anything',
  about: `Runs the action once in a held transaction, always rolls it back, compares what it would leave behind with a license
or with an unsigned proposal, and records what would have been decided. Your application goes on writing by
its own path, whatever this says. Without a file there is nothing to compare with, and it shows what was seen. No license
is spent, nothing is released, and the record is no verdict. The exit code is ${EXIT.done} whatever would have been decided.`,
  positionals: [],
  optional: ['license or proposal'],
  flags: {
    adapter: {
      value: 'NAME',
      about: 'without a file: the adapter, where the configuration has several',
    },
    ...ACTION_FLAGS,
    full: { about: 'show every difference and every change in full' },
    task: { value: 'TEXT', about: 'without a file: what this is for (default: shadow)' },
    ...CONFIG_FLAG,
  },
  examples: [
    `effectmatch shadow --sql "update invoice set status = 'paid' where id = 4711" --task invoice-4711`,
    'effectmatch shadow proposal.json --action action.json',
    'effectmatch shadow license.json --action action.json --json',
  ],
  async run(args, output) {
    const asked = readAsked(args, 'shadow');
    const file = readApproval(args);
    const config = await loadConfig(args);
    assertKeyring(config);
    const action = await actionOf(config, asked);
    const approval =
      file ??
      ({
        adapter: chooseAdapterName(config, args.value('adapter'), 'shadow'),
        task: args.value('task') ?? 'shadow',
        planRevision: 1,
      } as const);
    using _progress = showProgress('shadowing');
    await using runtime = await openRuntime({ ...config, recoverAtStart: false });
    print(await runtime.shadow(approval, action), { full: args.has('full') }, output);
    return EXIT.done;
  },
};

function readApproval(args: Arguments): string | undefined {
  const [name] = args.positionals;
  if (name === undefined) return undefined;
  for (const flag of ['adapter', 'task']) {
    if (args.has(flag))
      throw usageError(
        `--${flag} does not go together with a file, which says it itself`,
        'shadow',
      );
  }
  return readTextFile(
    name,
    'name a file that `effectmatch plan --out` or `effectmatch approve --out` wrote',
  );
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
  output.line(
    `next: effectmatch show ${record.occurrence.slice(0, 16)}, or effectmatch journal --kind shadow`,
  );
}

/** Green only for what would have committed, and never the colour alone. */
export function shadowTone({ would }: Shadow): Tone {
  return would === 'commit' ? 'good' : would === 'reject' ? 'bad' : 'caution';
}
