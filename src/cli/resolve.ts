import type { ClaimEntry } from '../contract/ledgers.ts';
import { loadApproverKey } from '../crypto/approver.ts';
import { signResolution } from '../crypto/signed-decision.ts';
import { FINDINGS } from '../protocol/resolution.ts';
import { resolveOccurrence } from '../runtime/resolve.ts';
import { operatorKeys } from '../runtime/runtime.ts';
import { type Arguments, CONFIG_FLAG, type Verb } from './command.ts';
import { type DeploymentRecords, findOccurrence, openRecords, readPrefix } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { readTextFile } from './files.ts';

/** Records an operator's decision about an indeterminate verdict. It never opens a backend. */
export const verb: Verb = {
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
  examples: ['occ_1f3a --finding happened --evidence statement.txt --key operator.key.json'],
  async run(args, output) {
    const finding = args.choice('finding', FINDINGS);
    if (finding === undefined) throw args.wrong(`--finding is one of ${FINDINGS.join(', ')}`);
    const { occurrence, operator, made } = await decide(args, async (decision) => {
      const { signer, claim, evidence, parts } = decision;
      const { execution, license: lineage } = claim;
      const about = { occurrence: claim.occurrence, execution, lineage, finding, evidence };
      return await resolveOccurrence(parts, signResolution(signer, about), evidence);
    });
    output.document({ resolution: made });
    output.item('good', 'resolved', `${occurrence}  ${finding}, says ${operator}`);
    output.line('Nothing was sent and nothing is released; dependent work needs a new license.');
  },
};

/** What an operator decides with. */
interface Decision {
  readonly claim: ClaimEntry['claim']['record'];
  readonly evidence: string;
  readonly signer: { readonly operator: string; readonly privateKey: string };
  readonly parts: Pick<DeploymentRecords, 'ledgers' | 'sealer'> & {
    readonly operators: ReturnType<typeof operatorKeys>;
  };
}

/** Reads the evidence and the operator's key, and makes a decision about a claimed occurrence. */
export async function decide<T>(args: Arguments, make: (decision: Decision) => Promise<T>) {
  const prefix = readPrefix(args.first);
  const path = args.neededPath('evidence');
  const evidence = readTextFile(path, 'give --evidence the path of a text file');
  const keyFile = args.neededPath('key');
  await using records = await openRecords(args);
  const { config, ledgers, sealer } = records;
  const { issuer: operator, privateKey } = loadApproverKey(keyFile);
  const occurrence = await findOccurrence(ledgers, prefix);
  const claim = (await ledgers.holder(occurrence))?.claim.record;
  if (claim === undefined) {
    const message = `${occurrence} was never claimed`;
    throw new GuidedError('ERR_EM_NOT_FOUND', message, 'there is nothing to decide about it');
  }
  const parts = { ledgers, sealer, operators: operatorKeys(config) };
  const made = await make({ claim, evidence, signer: { operator, privateKey }, parts });
  return { occurrence, operator, made };
}
