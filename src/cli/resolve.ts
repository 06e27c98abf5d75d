import { resolve as resolvePath } from 'node:path';
import { loadApproverKey } from '../crypto/approver.ts';
import { signResolution } from '../crypto/signed-decision.ts';
import { FINDINGS } from '../protocol/resolution.ts';
import { resolveOccurrence } from '../runtime/resolve.ts';
import { operatorKeys } from '../runtime/runtime.ts';
import { CONFIG_FLAG, EXIT, type Verb } from './command.ts';
import { findOccurrence, openRecords, readPrefix } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { readTextFile } from './files.ts';

/** Records an operator's decision about an indeterminate verdict. It never opens a backend. */
export const resolve: Verb = {
  name: 'resolve',
  summary: 'record what an operator found out about an indeterminate change',
  about: `An indeterminate effect may or may not have happened. This records your decision, signed
with your key, and the evidence for it. It sends nothing and releases nothing: any further change
needs a new license. Run \`effectmatch recover\` first; evidence that arrives
later still counts. The configuration lists the \`operators\` who may resolve.`,
  positionals: ['occurrence'],
  flags: {
    evidence: {
      value: 'FILE',
      about: 'what you rely on: an export, a letter, a query with its result; it is kept',
    },
    finding: { value: 'WORD', about: `what you found: ${FINDINGS.join(', ')}` },
    key: { value: 'FILE', about: 'your key file' },
    ...CONFIG_FLAG,
  },
  examples: [
    'effectmatch resolve occ_1f3a --finding happened --evidence statement.txt --key operator.key.json',
  ],
  async run(args, output) {
    const prefix = readPrefix(args.first);
    const finding = args.choice('finding', FINDINGS);
    if (finding === undefined) throw args.wrong(`--finding is one of ${FINDINGS.join(', ')}`);
    const path = args.needed('evidence');
    const evidence = readTextFile(path, 'give --evidence the path of a text file');
    const keyFile = resolvePath(args.needed('key'));
    await using records = await openRecords(args);
    const { config, ledgers, sealer } = records;
    const { issuer: operator, privateKey } = loadApproverKey(keyFile);
    const occurrence = await findOccurrence(ledgers, prefix);
    const holder = await ledgers.holder(occurrence);
    if (holder === undefined) {
      const message = `${occurrence} was never claimed`;
      throw new GuidedError('ERR_EM_NOT_FOUND', message, 'there is nothing to resolve');
    }
    const { execution, license: lineage } = holder.claim.record;
    const signed = signResolution(
      { operator, privateKey },
      { occurrence, execution, lineage, finding, evidence },
    );
    const parts = { ledgers, sealer, operators: operatorKeys(config) };
    const resolution = await resolveOccurrence(parts, signed, evidence);
    output.document({ resolution });
    output.line(`${output.paint('good', 'resolved')}  ${occurrence}  ${finding}, says ${operator}`);
    output.line('Nothing was sent and nothing is released; dependent work needs a new license.');
    return EXIT.done;
  },
};
