import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type ApproverKey, generateApprover, saveApproverKey } from '../crypto/approver.ts';
import { EffectMatchError } from '../errors.ts';
import type { Arguments, Verb } from './command.ts';
import { GuidedError } from './fault.ts';

/** Creates a key for an approver. Runs on the approver's machine, without a configuration. */
export const verb: Verb = {
  summary: 'make a key for an approver',
  about: `Makes an Ed25519 key pair for an approver or an operator, writes it to a new file that
only its owner can read, and prints the public key with the line for the configuration. The
private key stays in that file: run this where the approver works, and send only what is printed.
An existing file is never overwritten.`,
  positionals: ['name'],
  flags: { out: { value: 'FILE', about: 'where to write the key (default: NAME.key.json)' } },
  examples: ['ap-team', 'ap-team --out ~/.ap-team.key.json'],
  async run(args, output) {
    const issuer = args.first;
    const file = resolve(args.value('out') ?? keyFileOf(issuer));
    const key = newApprover(issuer, args);
    if (existsSync(file)) {
      const next = 'use that one, or write another one with --out FILE; nothing was written';
      const message = `${file} exists already and is never overwritten`;
      throw new GuidedError('ERR_EM_USAGE', message, next);
    }
    saveApproverKey(file, key);
    const { publicKey } = key;
    output.document({ issuer, publicKey, file });
    output.item('good', 'written', `${file}: the private key of ${issuer}, for ${issuer} alone`);
    output.line();
    output.line('Add this to `issuers` in effectmatch.config.ts, with the name of your adapter:');
    output.line(
      `  '${issuer}': { key: '${publicKey}', may: ['…'], sources: ['manifest', 'contract', 'rehearsed'] },`,
    );
  },
};

/** Creates a key for a name from the command line. */
export function newApprover(issuer: string, args: Arguments): ApproverKey {
  try {
    return generateApprover(issuer);
  } catch (cause) {
    if (cause instanceof EffectMatchError) throw args.wrong(cause.message);
    throw cause;
  }
}

/** The default name of an approver's key file. */
export function keyFileOf(issuer: string): string {
  return `${issuer.replace(/[^\w.-]/g, '-')}.key.json`;
}
