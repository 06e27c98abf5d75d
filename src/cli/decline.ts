import { loadApproverKey } from '../crypto/approver.ts';
import { parseProposal } from '../crypto/proposal.ts';
import { signDecline } from '../crypto/signed-decision.ts';
import type { SignedDecline } from '../protocol/decline.ts';
import type { Proposal } from '../protocol/license.ts';
import { type Arguments, CONFIG_FLAG, type Verb } from './command.ts';
import { readTextFile, writePrivateFile } from './files.ts';
import { printableLine } from './output.ts';
import { openConfigured } from './requests.ts';

/** Declines a request. */
export const verb: Verb = {
  summary: 'decline a request and tell the agent why',
  about: `Closes a pending request. The agent gets the reason. A declined request is never executed;
to ask again, the agent needs a new key. With --key and --out it signs the decline of a proposal
file and writes it, for the HTTP API; that needs only your key.`,
  positionals: ['request'],
  flags: {
    reason: { value: 'TEXT', about: 'why; the agent is told' },
    by: { value: 'NAME', about: 'who declines (default: your user name)', excludes: ['key'] },
    key: { value: 'FILE', about: 'sign the decline with your key file' },
    out: { value: 'FILE', about: 'with --key: write the decline of a proposal file here' },
    ...CONFIG_FLAG,
  },
  examples: [
    'req_1f3a --reason "the invoice is disputed"',
    'proposal.json --reason "disputed" --key alice.key.json --out decline.json',
  ],
  async run(args, output) {
    const reason = args.needed('reason');
    const toAgent = `the agent is told: ${printableLine(reason)}`;
    if (args.has('out')) {
      const text = readTextFile(args.first, 'name a proposal file');
      const signed = sign(args, parseProposal(text), reason);
      const out = args.neededPath('out');
      await writePrivateFile(out, [JSON.stringify(signed)], { force: false });
      output.document({ decline: signed });
      output.line(`signed  ${out}; send it to /v1/requests/${signed.request}/decline`);
      return;
    }
    await using opened = await openConfigured(args);
    const { requests } = opened;
    const id = await requests.findId(args.first);
    if (args.has('key')) {
      const signed = sign(args, (await requests.get(id)).proposal, reason);
      output.document(await requests.declineSigned(id, signed));
      output.line(`declined  ${id}, signed by ${signed.issuer}; ${toAgent}`);
      return;
    }
    const by = args.value('by') ?? process.env.USER ?? 'operator';
    output.document(await requests.decline(id, { by, reason }));
    output.line(`declined  ${id}; ${toAgent}`);
  },
};

/** Signs a decline. A request's id is the task of its proposal; its generation is the revision. */
function sign(args: Arguments, { draft }: Proposal, reason: string): SignedDecline {
  const { issuer, privateKey } = loadApproverKey(args.neededPath('key'));
  const { task: request, planRevision: generation, approved } = draft;
  return signDecline({ issuer, privateKey }, { request, generation, approved, reason });
}
