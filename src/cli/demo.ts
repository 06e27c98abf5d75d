import { ACTS } from './demo/acts.ts';
import { type ActReport, playAct } from './demo/play.ts';
import { Sandbox } from './demo/sandbox.ts';
import { EXIT } from './exit-code.ts';
import type { Output } from './output.ts';
import type { Verb } from './verb.ts';

/** Tells the story of one invoice with real executions, so that a newcomer sees what the verdicts mean. */
export const demo: Verb = {
  name: 'demo',
  summary: 'see five real executions, in a few seconds, with nothing to set up',
  about: `Pays invoice 4711 on a real SQLite database in a temporary folder, five times: cleanly, with a trigger that
writes more than was approved, with a stale approval, with an approval used twice, and with a process that is
killed at the worst moment. Every verdict printed is one that was really reached, in part by other processes. The
demo checks itself and fails when anything comes out differently. It leaves nothing behind.`,
  positionals: [],
  flags: {},
  examples: ['effectmatch demo', 'effectmatch demo --json'],
  async run(_args, output) {
    const { line, paint } = output;
    const startedAt = performance.now();
    line(`${paint('strong', 'EffectMatch: paying invoice 4711')}, on a real SQLite database in a temporary folder`);
    line('A person approves an outcome. An agent runs SQL of its own. The change is held back and compared');
    line('with what was approved. It becomes real only if the two are equal.');
    const acts = await playAll(output);
    const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1));
    output.document({ acts, seconds });
    line();
    line(`${acts.length} acts, all as they should be, in ${seconds} s. The temporary folder is removed.`);
    line(`${paint('strong', 'Next:')} README.md shows the twenty lines that put this into your own code;`);
    line('      `effectmatch help` lists what else this command can do.');
    return EXIT.done;
  },
};

async function playAll(output: Output): Promise<readonly ActReport[]> {
  using sandbox = new Sandbox();
  const reports: ActReport[] = [];
  for (const [index, act] of ACTS.entries()) reports.push(await playAct(sandbox, index + 1, act, output));
  return reports;
}
