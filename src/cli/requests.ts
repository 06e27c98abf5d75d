import { resolve } from 'node:path';
import { loadApproverKey } from '../crypto/approver.ts';
import type { Declined } from '../crypto/decision.ts';
import { parseProposal } from '../crypto/proposal.ts';
import { signDecline } from '../crypto/signed-decision.ts';
import type { Proposal } from '../protocol/license.ts';
import { diffOfTerminal } from '../protocol/terminal.ts';
import { type ApprovalRequest, isFinal, REQUEST_STATES } from '../requests/request.ts';
import { openRequests, type Requests } from '../requests/requests.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import { type Arguments, CONFIG_FLAG, EXIT, type ExitCode, type Verb } from './command.ts';
import { loadConfig, openRuntime } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { readTextFile, writePrivateFile } from './files.ts';
import { cut, type Output, printableLine, toneOf } from './output.ts';
import { printNote, printRendering } from './prompt.ts';

/** Requests, and the deployment behind them. */
interface OpenedRequests extends AsyncDisposable {
  readonly config: RuntimeConfig;
  readonly runtime: Runtime;
  readonly requests: Requests;
}

/** Opens the requests of the configuration that the arguments name. */
export async function openConfigured(args: Arguments): Promise<OpenedRequests> {
  return await openRequestsOf(await loadConfig(args));
}

/** Opens the requests of a loaded configuration. */
export async function openRequestsOf(config: RuntimeConfig): Promise<OpenedRequests> {
  if (config.requests === undefined) throw withoutRequests();
  const runtime = await openRuntime(config);
  const { operations, issuers } = config;
  const requests = await openRequests({
    ...config.requests,
    runtime,
    issuers,
    ...(operations && { operations }),
  });
  return {
    config,
    runtime,
    requests,
    async [Symbol.asyncDispose]() {
      await requests.close();
      await runtime.close();
    },
  };
}

/** The error for a configuration without `requests`. */
export function withoutRequests(): GuidedError<'ERR_EM_CONFIG_INVALID'> {
  return new GuidedError(
    'ERR_EM_CONFIG_INVALID',
    'the configuration has no `requests`; nothing was done',
    "add `requests: { store: 'effectmatch.requests.db' }` to it",
  );
}

/** Lists requests, or shows one. */
export const requests: Verb = {
  name: 'requests',
  summary: 'list what agents have asked for, or show one request',
  about: `Without a request it lists them, newest first: the state, who asks, how old it is, and
what it is for. With a request it shows what would change, who asks and why, and what became of
it. Answer with \`effectmatch approve --request\` or \`effectmatch decline\`.`,
  optional: ['request'],
  flags: {
    state: { value: 'WORD', about: `only requests in this state: ${REQUEST_STATES.join(', ')}` },
    by: { value: 'NAME', about: 'only requests of this agent' },
    adapter: { value: 'NAME', about: 'only requests for this adapter' },
    limit: { value: 'N', about: 'at most so many, up to 500 (default: 50)' },
    full: { about: 'with a request: show the whole of what the agent says' },
    ...CONFIG_FLAG,
  },
  examples: ['effectmatch requests --state pending', 'effectmatch requests req_1f3a'],
  async run(args, output) {
    await using opened = await openConfigured(args);
    if (args.first !== '') {
      const request = await opened.requests.recheck(await opened.requests.findId(args.first));
      output.document(request);
      printRequest(request, output, { full: args.has('full') });
      return EXIT.done;
    }
    const state = args.choice('state', REQUEST_STATES);
    const [by, adapter, limit] = [args.value('by'), args.value('adapter'), args.count('limit', 1)];
    const found = await opened.requests.list({
      ...(state && { state }),
      ...(by && { by }),
      ...(adapter && { adapter }),
      ...(limit && { limit }),
    });
    output.document({ requests: found });
    if (found.length === 0) output.line('no requests');
    for (const request of found) printLine(request, output);
    return EXIT.done;
  },
};

/** Declines a request. */
export const decline: Verb = {
  name: 'decline',
  summary: 'decline a request and tell the agent why',
  about: `Closes a pending request. The agent gets the reason. A declined request is never executed;
to ask again, the agent needs a new key. With --key and --out it signs the decline of a
proposal file and writes it, for the HTTP API; that needs your key and nothing else.`,
  positionals: ['request'],
  flags: {
    reason: { value: 'TEXT', about: 'why; the agent is told' },
    by: { value: 'NAME', about: 'who declines (default: your user name)', excludes: ['key'] },
    key: { value: 'FILE', about: 'sign the decline with your key file' },
    out: { value: 'FILE', about: 'with --key: write the decline of a proposal file here' },
    ...CONFIG_FLAG,
  },
  examples: [
    'effectmatch decline req_1f3a --reason "the invoice is disputed"',
    'effectmatch decline proposal.json --reason "disputed" --key alice.key.json --out decline.json',
  ],
  async run(args, output) {
    const reason = args.needed('reason');
    if (args.has('out')) return await writeDecline(args, reason, output);
    if (args.has('key')) return await declineSigned(args, reason, output);
    const by = args.value('by') ?? process.env.USER ?? 'operator';
    await using opened = await openConfigured(args);
    const id = await opened.requests.findId(args.first);
    const request = await opened.requests.decline(id, { by, reason });
    output.document(request);
    output.line(`declined  ${request.id}; the agent is told: ${printableLine(reason)}`);
    return EXIT.done;
  },
};

/** Signs the decline of a proposal in a file. */
async function writeDecline(args: Arguments, reason: string, output: Output): Promise<ExitCode> {
  const { issuer, privateKey } = loadApproverKey(resolve(args.needed('key')));
  const text = readTextFile(args.first, 'name a proposal file');
  const signed = signDecline({ issuer, privateKey }, declinedBy(parseProposal(text), reason));
  const out = resolve(args.needed('out'));
  await writePrivateFile(out, [JSON.stringify(signed)], { force: false });
  output.document({ decline: signed });
  output.line(`signed  ${out}; send it to /v1/requests/${signed.request}/decline`);
  return EXIT.done;
}

/** Signs the decline of a request and sends it. */
async function declineSigned(args: Arguments, reason: string, output: Output): Promise<ExitCode> {
  const { issuer, privateKey } = loadApproverKey(resolve(args.needed('key')));
  await using opened = await openConfigured(args);
  const { requests } = opened;
  const { id, proposal } = await requests.get(await requests.findId(args.first));
  const signed = signDecline({ issuer, privateKey }, declinedBy(proposal, reason));
  output.document(await requests.declineSigned(id, signed));
  output.line(`declined  ${id}, signed by ${issuer}; the agent is told: ${printableLine(reason)}`);
  return EXIT.done;
}

/** A request's id is the task of its proposal, and its generation is the plan revision. */
function declinedBy({ draft }: Proposal, reason: string): Declined {
  const { task, planRevision, approved } = draft;
  return { request: task, generation: planRevision, approved, reason };
}

/** Proposes a request again. */
export const renew: Verb = {
  name: 'renew',
  summary: 'propose a request again from the current state',
  about: `For a request that is stale, has expired, or needs a second look: proposes it again from the
current state and configuration, and prints the lines that changed.
A license for the earlier proposal can no longer be used.`,
  positionals: ['request'],
  flags: CONFIG_FLAG,
  examples: ['effectmatch renew req_1f3a'],
  async run(args, output) {
    await using opened = await openConfigured(args);
    const { requests } = opened;
    const { request, difference } = await requests.renew(await requests.findId(args.first));
    output.document({ request, difference });
    output.line(difference.length === 0 ? 'nothing is different' : 'what is different:');
    for (const line of difference) output.line(`  ${printableLine(line)}`);
    output.line(`next: effectmatch approve --request ${request.id} --key YOUR.key.json`);
    return EXIT.done;
  },
};

/** The exit code for the state of a request. */
export function exitCodeOfRequest({ state, terminal }: ApprovalRequest): ExitCode {
  if (terminal !== undefined)
    return terminal.kind === 'committed' ? EXIT.done : EXIT[terminal.kind];
  return isFinal(state) ? EXIT.rejected : EXIT.halted;
}

/** Prints the state of a request on two lines. */
export function printLine(request: ApprovalRequest, { line, paint, width }: Output): void {
  const { id, state, by, askedAt, operation, adapter, reason = '', detail = '' } = request;
  const tone = state === 'pending' ? 'caution' : toneOf(request.terminal?.kind ?? 'rejected');
  const words = `${askedAt.slice(0, 16)}Z  ${by}  ${operation ?? adapter}  ${detail || (reason && `says: ${reason}`)}`;
  const text = cut(printableLine(words), Math.max(20, (width ?? 80) - state.length - 2));
  line(`${paint(tone, state)}  ${text}`);
  line(`  ${id}`);
}

/** Prints everything about one request. The agent's words are marked as such. */
function printRequest(
  request: ApprovalRequest,
  output: Output,
  options: { readonly full: boolean },
): void {
  printLine(request, output);
  output.line();
  printRendering(request.rendering, output);
  printNote(request.proposal, options, output);
  const { answeredBy, occurrence, expiresAt, state, terminal } = request;
  if (answeredBy !== undefined) output.line(`answered by ${answeredBy}`);
  if (occurrence !== undefined) {
    const hasDiff = terminal !== undefined && diffOfTerminal(terminal) !== undefined;
    const word = hasDiff ? 'differences' : 'next';
    output.line(`${word}: effectmatch show ${occurrence}`);
  }
  if (state === 'stale' || state === 'expired')
    output.line(`next: effectmatch renew ${request.id}`);
  if (state !== 'pending') return;
  if (request.first !== undefined)
    output.line(`signed by ${request.first.license.issuer}; waits for a second signature`);
  output.line(`waits until ${expiresAt}`);
  output.line(`next: effectmatch approve --request ${request.id} --key YOUR.key.json`);
}
