import { resolve as resolvePath } from 'node:path';
import { loadApproverKey } from '../crypto/approver.ts';
import { signReopening } from '../crypto/signed-decision.ts';
import { openContinuations, stateOf } from '../runtime/continuation.ts';
import { reopenContinuation } from '../runtime/reopen.ts';
import { operatorKeys } from '../runtime/runtime.ts';
import { type Arguments, CONFIG_FLAG, EXIT, type ExitCode, type Verb } from './command.ts';
import { findOccurrence, openRecords, readPrefix } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { readTextFile } from './files.ts';
import { type Output, printableLine } from './output.ts';

/** Lists work that was released but never completed. It never opens a backend. */
export const continuations: Verb = {
  name: 'continuations',
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
  examples: [
    'effectmatch continuations',
    'effectmatch continuations occ_1f3a --reopen reconcile --evidence why.txt --key operator.key.json',
  ],
  async run(args, output) {
    if (args.has('reopen') !== (args.first !== ''))
      throw args.wrong('name an occurrence together with --reopen');
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
    return EXIT.done;
  },
};

async function reopen(args: Arguments, output: Output): Promise<ExitCode> {
  const prefix = readPrefix(args.first);
  const continuation = args.needed('reopen');
  const evidence = readTextFile(args.needed('evidence'), 'give --evidence a text file');
  const keyFile = resolvePath(args.needed('key'));
  await using records = await openRecords(args);
  const { config, ledgers, sealer } = records;
  const { issuer: operator, privateKey } = loadApproverKey(keyFile);
  const occurrence = await findOccurrence(ledgers, prefix);
  const lineage = (await ledgers.holder(occurrence))?.claim.record.license;
  if (lineage === undefined)
    throw new GuidedError(
      'ERR_EM_NOT_FOUND',
      `${occurrence} was never claimed`,
      'list what is open with `effectmatch continuations`',
    );
  const { turn = 1 } = stateOf(await ledgers.acknowledgements(occurrence), continuation);
  const decision = { occurrence, continuation, lineage, turn: turn + 1, evidence };
  const signed = signReopening({ operator, privateKey }, decision);
  const parts = { ledgers, sealer, operators: operatorKeys(config) };
  const reopened = await reopenContinuation(parts, signed, evidence);
  output.document({ reopened });
  const name = printableLine(continuation);
  output.line(`${output.paint('good', 'reopened')}  ${occurrence}  ${name}, says ${operator}`);
  output.line('Nothing was run: the next worker that asks for it gets the release.');
  return EXIT.done;
}
