import { readFileSync } from 'node:fs';
import { resolve as resolvePath } from 'node:path';
import { loadApproverKey } from '../crypto/approver.ts';
import { signResolution } from '../crypto/resolution.ts';
import { FINDINGS, type Finding } from '../protocol/resolution.ts';
import { resolveOccurrence } from '../runtime/resolve.ts';
import { operatorKeys } from '../runtime/runtime.ts';
import { CONFIG_FLAG } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { findOccurrence, readPrefix } from './find-occurrence.ts';
import { GuidedError, usageError } from './guided-error.ts';
import { loadConfig } from './load-config.ts';
import { openStore } from './open-store.ts';
import type { Verb } from './verb.ts';

/**
 * An operator's decision about what nothing could establish. It opens keyring and store only, never
 * a backend.
 */
export const resolve: Verb = {
  name: 'resolve',
  summary: 'record what an operator found out about an indeterminate occurrence',
  about: `An indeterminate effect may or may not have happened, and no evidence says which. This records your decision,
signed with your key, with the evidence that you rely on. It never sends anything again and releases nothing: what
has to be done next is a new effect under a new license. Run \`effectmatch recover\` first; evidence that arrives
later still counts. Whose keys may resolve is configured as \`operators\`.`,
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
    const prefix = readPrefix(args.positionals[0] ?? '', 'resolve');
    const finding = readFinding(args.value('finding'));
    const evidence = readEvidence(needed('evidence', args.value('evidence')));
    const keyFile = resolvePath(needed('key', args.value('key')));
    const config = await loadConfig(args);
    const { issuer: operator, privateKey } = loadApproverKey(keyFile);
    await using store = await openStore(config);
    const occurrence = await findOccurrence(store.ledgers, prefix);
    const holder = await store.ledgers.holder(occurrence);
    if (holder === undefined) {
      throw new GuidedError(
        'ERR_EM_NOT_FOUND',
        `${occurrence} was never claimed`,
        'there is nothing to resolve',
      );
    }
    const { execution, license: lineage } = holder.claim.record;
    const signed = signResolution(
      { operator, privateKey },
      { occurrence, execution, lineage, finding, evidence },
    );
    const parts = { ledgers: store.ledgers, sealer: store.sealer, operators: operatorKeys(config) };
    const resolution = await resolveOccurrence(parts, signed, evidence);
    output.document({ resolution });
    output.line(`${output.paint('good', 'resolved')}  ${occurrence}  ${finding}, says ${operator}`);
    output.line(
      'Nothing was sent and nothing is released by this; dependent work needs a new license.',
    );
    return EXIT.done;
  },
};

function needed(flag: string, value: string | undefined): string {
  if (value === undefined) throw usageError(`--${flag} is needed`, 'resolve');
  return value;
}

function readFinding(word: string | undefined): Finding {
  const found = FINDINGS.find((finding) => finding === word);
  if (found === undefined)
    throw usageError(`--finding is one of ${FINDINGS.join(', ')}`, 'resolve');
  return found;
}

function readEvidence(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const path = resolvePath(file);
    throw new GuidedError(
      'ERR_EM_NOT_FOUND',
      `${path} cannot be read`,
      'give --evidence the path of a text file',
      {
        cause,
      },
    );
  }
}
