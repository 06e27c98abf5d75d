import { given } from '../contract/options.ts';
import { diffOfTerminal } from '../protocol/terminal.ts';
import { type ApprovalRequest, isFinal, REQUEST_STATES } from '../requests/request.ts';
import { openRequests, type Requests } from '../requests/requests.ts';
import type { Runtime, RuntimeConfig } from '../runtime/runtime.ts';
import {
  type Arguments,
  CONFIG_FLAG,
  EXIT,
  type ExitCode,
  exitCodeOf,
  type Verb,
} from './command.ts';
import { loadConfig, openRuntime } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { cut, type Output, printableLine, toneOf } from './output.ts';
import { printNote, printRendering } from './prompt.ts';

/** Requests, and the deployment behind them. */
interface OpenedRequests extends AsyncDisposable {
  readonly config: RuntimeConfig;
  readonly runtime: Runtime;
  readonly requests: Requests;
}

/** Opens the requests in the configuration that the arguments name. */
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
    ...given({ operations }),
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
export const verb: Verb = {
  summary: 'list what agents have asked for, or show one request',
  about: `Without a request it lists them, newest first: the state, who asks, how old it is, and
what it is for. With a request it shows what would change, who asks and why, and what became of
it. Answer with \`effectmatch approve --request\` or \`effectmatch decline\`.`,
  optional: ['request'],
  flags: {
    state: { value: 'WORD', about: `only requests in this state: ${REQUEST_STATES.join(', ')}` },
    by: { value: 'NAME', about: 'only requests of this agent' },
    adapter: { value: 'NAME', about: 'only requests for this adapter' },
    limit: { value: 'N', about: 'list at most this many, up to 500 (default: 50)' },
    full: { about: 'with a request: show everything that the agent says' },
    ...CONFIG_FLAG,
  },
  examples: ['--state pending', 'req_1f3a'],
  async run(args, output) {
    await using opened = await openConfigured(args);
    if (args.first !== '') {
      const request = await opened.requests.recheck(await opened.requests.findId(args.first));
      output.document(request);
      printRequest(request, output, { full: args.has('full') });
      return;
    }
    const state = args.choice('state', REQUEST_STATES);
    const [by, adapter, limit] = [args.value('by'), args.value('adapter'), args.count('limit', 1)];
    const found = await opened.requests.list(given({ state, by, adapter, limit }));
    output.document({ requests: found });
    if (found.length === 0) output.line('no requests');
    for (const request of found) printLine(request, output);
  },
};

/** The exit code for the state of a request. */
export function exitCodeOfRequest({ state, terminal }: ApprovalRequest): ExitCode {
  return terminal === undefined && isFinal(state) ? EXIT.rejected : exitCodeOf(terminal);
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
