import { unknownWord } from './arguments.ts';
import { ACTS } from './demo/acts.ts';
import { PAYMENT_ACTS } from './demo/payments/acts.ts';
import { type Act, type ActReport, playAct } from './demo/play.ts';
import { Sandbox } from './demo/sandbox.ts';
import { EXIT } from './exit-code.ts';
import { usageError } from './guided-error.ts';
import type { Output } from './output.ts';
import type { Verb } from './verb.ts';

/** Tells the story of one invoice with real executions, so that a newcomer sees what the verdicts mean. */
export const demo: Verb = {
  name: 'demo',
  summary: 'see five real executions, in a few seconds, with nothing to set up',
  about: `Pays invoice 4711 on a real SQLite database in a temporary folder, five times: cleanly, with a trigger that
writes more than was approved, with a stale approval, with an approval used twice, and with a process that is
killed at the worst moment. \`demo payments\` tells another story: a payment at a bank on loopback whose answer is
lost, first by a client that tries again, then by one that does not. Every verdict printed is one that was really
reached, in part by other processes. The demo checks itself and fails when anything comes out differently. It leaves
nothing behind.`,
  positionals: [],
  optional: ['story'],
  flags: {},
  examples: ['effectmatch demo', 'effectmatch demo payments', 'effectmatch demo --json'],
  async run(args, output) {
    const { line, paint } = output;
    const name = args.positionals[0] ?? 'invoice';
    const story = Object.hasOwn(STORIES, name) ? STORIES[name] : undefined;
    if (story === undefined) throw usageError(unknownWord('story', name, Object.keys(STORIES)), 'demo');
    const startedAt = performance.now();
    const [title = '', where = '', ...explanation] = story.opening;
    line(`${paint('strong', title)}, ${where}`);
    for (const sentence of explanation) line(sentence);
    const acts = await playAll(story.acts, output);
    const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
    output.document({ acts, seconds });
    line();
    line(`${acts.length} acts, all as they should be, in ${seconds} s. The temporary folder is removed.`);
    line(`${paint('strong', 'Next:')} README.md shows the twenty lines that put this into your own code;`);
    line('      `effectmatch help` lists what else this command can do.');
    return EXIT.done;
  },
};

interface Story {
  readonly acts: readonly Act[];
  /** Title, where it happens, and what it is about, one line each. */
  readonly opening: readonly string[];
}

const STORIES: Readonly<Record<string, Story>> = {
  invoice: {
    acts: ACTS,
    opening: [
      'EffectMatch: paying invoice 4711',
      'on a real SQLite database in a temporary folder',
      'A person approves an outcome. An agent runs SQL of its own. The change is held back and compared',
      'with what was approved. It becomes real only if the two are equal.',
    ],
  },
  payments: {
    acts: PAYMENT_ACTS,
    opening: [
      'EffectMatch: a payment whose answer is lost',
      'at a real HTTP server on loopback',
      'A bank cannot hold a payment back. So it is derived from what was approved, sent once, and judged by',
      'what the bank says about it afterwards. What is not known is not guessed, and never sent again.',
    ],
  },
};

async function playAll(story: readonly Act[], output: Output): Promise<readonly ActReport[]> {
  using sandbox = new Sandbox();
  const reports: ActReport[] = [];
  for (const [index, act] of story.entries()) reports.push(await playAct(sandbox, index + 1, act, output));
  return reports;
}
