import {
  type IssuedToken,
  issueToken,
  MAX_TOKEN_MS,
  revokeToken,
  rotateToken,
  SCOPES,
} from '../access/callers.ts';
import { newToken } from '../access/token.ts';
import { systemClock } from '../contract/clock.ts';
import { parseDuration } from '../crypto/duration.ts';
import { openStore } from '../requests/requests.ts';
import type { RequestStore, StoredToken } from '../requests/store.ts';
import { type Arguments, CONFIG_FLAG, EXIT, type ExitCode, type Verb } from './command.ts';
import { loadConfig } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { agentsExample } from './init/config-text.ts';
import type { Output } from './output.ts';
import { withoutRequests } from './requests.ts';

const OVERLAP = '24h';

/** Creates, lists, rotates and revokes the tokens of agents and operators. */
export const token: Verb = {
  name: 'token',
  summary: 'make, list, rotate or revoke tokens for agents and operators',
  about: `Tokens say who calls over HTTP: the API of \`effectmatch serve\` and \`effectmatch mcp --http\`.
They are kept as digests next to the requests. \`new NAME\` makes one for an agent of the
configuration, or with --operator for a person or program that answers and operates. \`rotate ID\`
makes a replacement; the old one expires a day later. \`revoke ID\` ends one at once. No token
can approve: that takes a signature.`,
  positionals: ['new|list|rotate|revoke'],
  optional: ['NAME or ID'],
  flags: {
    operator: { about: 'new: for an operator, not for an agent' },
    scopes: { value: 'A,B', about: `new: of ${SCOPES.join(', ')}` },
    expires: { value: 'DURATION', about: 'new, rotate: how long it is valid (default: 90d)' },
    overlap: { value: 'DURATION', about: `rotate: how long both are valid (default: ${OVERLAP})` },
    'digest-only': {
      about: 'new: keep nothing; print a digest for `token` of an agent in the configuration',
      excludes: ['operator', 'scopes', 'expires', 'config'],
    },
    ...CONFIG_FLAG,
  },
  examples: [
    'effectmatch token new billing-agent',
    'effectmatch token new carol --operator --scopes read,answer --expires 30d',
    'effectmatch token rotate tok_1f3a8c20d4e5b697 --overlap 1h',
  ],
  blocks: [
    {
      title: 'Agents are named in the configuration, with what each may ask for:',
      text: `requests: { store: 'effectmatch.requests.db' },\n${agentsExample('billing-agent', 'books')}`,
    },
  ],
  async run(args, output) {
    const [action, name] = args.positionals;
    if (args.has('digest-only')) return printDigest(output);
    const isNamed = name !== undefined;
    if (action === 'list' && !isNamed) return await withStore(args, (store) => list(store, output));
    if (action === 'new' && isNamed) return await withStore(args, (s) => make(s, args, output));
    if (action === 'rotate' && isNamed)
      return await withStore(args, (s) => rotate(s, args, output));
    if (action === 'revoke' && isNamed)
      return await withStore(args, async (store) => {
        await revokeToken(store, name);
        output.document({ revoked: name });
        output.line(`revoked  ${name}; it is refused from now on`);
        return EXIT.done;
      });
    throw args.wrong('write `new NAME`, `list`, `rotate ID` or `revoke ID`');
  },
};

async function withStore(
  args: Arguments,
  work: (store: RequestStore) => Promise<ExitCode>,
): Promise<ExitCode> {
  const { requests, agents = {}, adapters } = await loadConfig(args);
  if (requests === undefined) throw withoutRequests();
  const [action, name = ''] = args.positionals;
  if (action === 'new' && !args.has('operator') && !Object.hasOwn(agents, name))
    throw new GuidedError(
      'ERR_EM_USAGE',
      `the configuration has no agent "${name}"; nothing was done`,
      `add it: ${agentsExample(name, Object.keys(adapters)[0] ?? 'books')} or pass --operator`,
    );
  const { store } = requests;
  const opened = typeof store === 'string' ? await openStore(store) : store;
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}

async function make(store: RequestStore, args: Arguments, output: Output): Promise<ExitCode> {
  const scopes = args.value('scopes')?.split(',');
  const issued = await issueToken(store, {
    kind: args.has('operator') ? 'operator' : 'agent',
    holder: args.positionals[1] ?? '',
    ...(scopes && { scopes }),
    ...lifetimeOf(args),
  });
  return print(issued, output);
}

async function rotate(store: RequestStore, args: Arguments, output: Output): Promise<ExitCode> {
  const overlapMs = parseDuration(args.value('overlap') ?? OVERLAP, MAX_TOKEN_MS);
  const id = args.positionals[1] ?? '';
  return print(await rotateToken(store, id, { overlapMs, ...lifetimeOf(args) }), output);
}

function lifetimeOf(args: Arguments): { readonly lifetimeMs?: number } {
  const text = args.value('expires');
  return text === undefined ? {} : { lifetimeMs: parseDuration(text, MAX_TOKEN_MS) };
}

function print({ token: secret, stored }: IssuedToken, output: Output): ExitCode {
  output.document({ token: secret, ...describe(stored) });
  output.line(`token   ${secret}`);
  output.line(lineOf(stored));
  output.line('The token is not shown again; only its digest is kept.');
  return EXIT.done;
}

async function list(store: RequestStore, output: Output): Promise<ExitCode> {
  const tokens = await store.tokens();
  output.document({ tokens: tokens.map(describe) });
  if (tokens.length === 0) output.line('no tokens; `effectmatch token new NAME` makes one');
  for (const one of tokens) output.line(lineOf(one));
  return EXIT.done;
}

function describe({ id, kind, holder, scopes, createdMs, expiresMs }: StoredToken) {
  const [createdAt, expiresAt] = [createdMs, expiresMs].map((ms) => new Date(ms).toISOString());
  return { id, kind, holder, scopes, createdAt, expiresAt };
}

function lineOf(stored: StoredToken): string {
  const { id, kind, holder, scopes, expiresMs } = stored;
  const word = expiresMs <= systemClock.now() ? 'ended' : 'until';
  const when = new Date(expiresMs).toISOString();
  return `${id}  ${kind} ${holder}  ${scopes.join(',')}  ${word} ${when}`;
}

function printDigest(output: Output): ExitCode {
  const { token: secret, digest } = newToken();
  output.document({ token: secret, digest });
  output.line(`token   ${secret}`);
  output.line(`digest  ${digest}`);
  output.line('Give the token to the agent; it is not shown again. The digest goes into `token`.');
  return EXIT.done;
}
