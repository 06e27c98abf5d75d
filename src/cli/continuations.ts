import { signReopening } from '../crypto/signed-decision.ts';
import { openContinuations, stateOf } from '../runtime/continuation.ts';
import { reopenContinuation } from '../runtime/resolve.ts';
import { type Arguments, CONFIG_FLAG, type Verb } from './command.ts';
import { openRecords } from './deployment.ts';
import { type Output, printableLine } from './output.ts';
import { decide } from './resolve.ts';

/** Lists work that was released but never completed. It never opens a backend. */
export const verb: Verb = {
  summary: 'list released work that has not completed, or release it again',
  about: `Dependent work is released once, before it runs, so that it never runs twice. If its
process dies or the work throws, the release has no completion. This lists those releases, oldest
first; some of them may still be running or waiting in a queue. Check what the work has done. If it
has done nothing, an operator can release it once more: name the occurrence, the work with --reopen,
your evidence with --evidence, and sign with --key. It runs when a worker next asks for it.`,
  optional: ['occurrence'],
  flags: {
    reopen: { value: 'NAME', about: 'let this work be released again', needs: 'evidence' },
    evidence: { value: 'FILE', about: 'why it was not done, as text; it is kept', needs: 'key' },
    key: { value: 'FILE', about: 'key file of an operator', needs: 'reopen' },
    ...CONFIG_FLAG,
  },
  examples: ['', 'occ_1f3a --reopen reconcile --evidence why.txt --key operator.key.json'],
  async run(args, output) {
    if (args.has('reopen') !== (args.first !== ''))
      throw args.wrong('--reopen needs an occurrence');
    if (args.has('reopen')) return await reopen(args, output);
    await using records = await openRecords(args);
    const open = await openContinuations(records.ledgers);
    output.document({ continuations: open });
    if (open.length === 0) output.line('nothing is open: all work that was released has completed');
    for (const { occurrence, continuation, task, releasedAt, turn } of open) {
      const since = output.paint('caution', `since ${releasedAt}`);
      const again = turn === undefined ? '' : `  (release ${turn})`;
      const about = printableLine(`${continuation}  ${task}`);
      output.line(`${since}  ${occurrence}  ${about}${again}`);
    }
  },
};

async function reopen(args: Arguments, output: Output): Promise<void> {
  const continuation = args.needed('reopen');
  const { occurrence, operator, made } = await decide(args, async (decision) => {
    const { signer, claim, evidence, parts } = decision;
    const { occurrence, license: lineage } = claim;
    const acknowledged = await parts.ledgers.acknowledgements(occurrence);
    const { turn = 1 } = stateOf(acknowledged, continuation);
    const about = { occurrence, continuation, lineage, turn: turn + 1, evidence };
    return await reopenContinuation(parts, signReopening(signer, about), evidence);
  });
  output.document({ reopened: made });
  const name = printableLine(continuation);
  output.item('good', 'reopened', `${occurrence}  ${name}, says ${operator}`);
  output.line('Nothing was run: the next worker that asks for it gets the release.');
}
