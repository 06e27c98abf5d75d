import { CONFIG_FLAG, type Verb } from './command.ts';
import { printableLine } from './output.ts';
import { openConfigured } from './requests.ts';

/** Proposes a request again. */
export const verb: Verb = {
  summary: 'propose a request again from the current state',
  about: `For a request that is stale, has expired, or needs a second look: proposes it again from the
current state and configuration, and prints the lines that changed.
A license for the earlier proposal can no longer be used.`,
  positionals: ['request'],
  flags: CONFIG_FLAG,
  examples: ['req_1f3a'],
  async run(args, output) {
    await using opened = await openConfigured(args);
    const { requests } = opened;
    const { request, difference } = await requests.renew(await requests.findId(args.first));
    output.document({ request, difference });
    output.line(difference.length === 0 ? 'nothing is different' : 'what is different:');
    for (const line of difference) output.line(`  ${printableLine(line)}`);
    output.line(`next: effectmatch approve --request ${request.id} --key YOUR.key.json`);
  },
};
