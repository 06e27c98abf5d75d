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
import { openRequestStore } from '../requests/requests.ts';
import type { RequestStore, StoredToken } from '../requests/store.ts';
import { type Arguments, CONFIG_FLAG, type Verb } from './command.ts';
import { loadConfig } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { agentsExample } from './init/config-text.ts';
import type { Output } from './output.ts';
import { withoutRequests } from './requests.ts';

const OVERLAP = '24h';

/** Creates, lists, rotates and revokes the tokens of agents and operators. */
export const verb: Verb = {
  summary: 'make, list, rotate or revoke tokens for agents and operators',
  about: `Tokens identify callers over HTTP: the API of \`effectmatch serve\` and \`effectmatch mcp
--http\`. They are kept as digests next to the requests. \`new NAME\` makes one for a configured
agent, or with --operator for a person or program that answers and operates. \`rotate ID\` makes a
replacement; the old one expires a day later. \`revoke ID\` ends one at once. No token can approve:
that takes a signature.`,
  positionals: ['new|list|rotate|revoke'],
  optional: ['NAME or ID'],
  flags: {
    operator: { about: 'new: for an operator instead of an agent' },
    scopes: { value: 'A,B', about: `new: of ${SCOPES.join(', ')}` },
    expires: { value: 'DURATION', about: 'new, rotate: how long it is valid (default: 90d)' },
    overlap: {
      value: 'DURATION',
      about: `rotate: how long both tokens stay valid (default: ${OVERLAP})`,
    },
    'digest-only': {
      about: 'new: store nothing; print a digest for `token` of an agent in the configuration',
      excludes: ['operator', 'scopes', 'expires', 'config'],
    },
    ...CONFIG_FLAG,
  },
  examples: [
    'new billing-agent',
    'new carol --operator --scopes read,answer --expires 30d',
    'rotate tok_1f3a8c20d4e5b697 --overlap 1h',
  ],
  blocks: [
    {
      title: 'Agents are named in the configuration, with what each may ask for:',
      text: `requests: { store: 'effectmatch.requests.db' },\n${agentsExample('billing-agent', 'books')}`,
    },
  ],
  async run(args, output) {
    const [action = '', name] = args.positionals;
    if (args.has('digest-only')) return printDigest(output);
    const act = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined;
    if (act === undefined || (action === 'list') !== (name === undefined))
      throw args.wrong('write `new NAME`, `list`, `rotate ID` or `revoke ID`');
    const { requests, agents = {}, adapters } = await loadConfig(args);
    if (requests === undefined) throw withoutRequests();
    const isForAgent = action === 'new' && !args.has('operator');
    if (isForAgent && name !== undefined && !Object.hasOwn(agents, name))
      throw new GuidedError(
        'ERR_EM_USAGE',
        `the configuration has no agent "${name}"; nothing was done`,
        `add it: ${agentsExample(name, Object.keys(adapters)[0] ?? 'books')} or pass --operator`,
      );
    const { store } = requests;
    const opened = typeof store === 'string' ? await openRequestStore(store) : store;
    try {
      await act({ store: opened, name: name ?? '', args, output });
    } finally {
      await opened.close();
    }
  },
};

interface Acting {
  readonly store: RequestStore;
  /** The holder or the id of a token. */
  readonly name: string;
  readonly args: Arguments;
  readonly output: Output;
}

const ACTIONS: Readonly<Record<string, (acting: Acting) => Promise<void>>> = {
  async new({ store, name: holder, args, output }) {
    const kind = args.has('operator') ? 'operator' : 'agent';
    const scopes = args.value('scopes')?.split(',');
    const wish = { kind, holder, ...(scopes && { scopes }), ...lifetimeOf(args) } as const;
    print(await issueToken(store, wish), output);
  },
  async list({ store, output }) {
    const tokens = await store.tokens();
    output.document({ tokens: tokens.map(describe) });
    if (tokens.length === 0) output.line('no tokens; `effectmatch token new NAME` makes one');
    for (const one of tokens) output.line(lineOf(one));
  },
  async rotate({ store, name, args, output }) {
    const overlapMs = parseDuration(args.value('overlap') ?? OVERLAP, MAX_TOKEN_MS);
    print(await rotateToken(store, name, { overlapMs, ...lifetimeOf(args) }), output);
  },
  async revoke({ store, name, output }) {
    await revokeToken(store, name);
    output.document({ revoked: name });
    output.line(`revoked  ${name}; it is refused from now on`);
  },
};

function lifetimeOf(args: Arguments): { readonly lifetimeMs?: number } {
  const text = args.value('expires');
  return text === undefined ? {} : { lifetimeMs: parseDuration(text, MAX_TOKEN_MS) };
}

function print({ token: secret, stored }: IssuedToken, output: Output): void {
  output.document({ token: secret, ...describe(stored) });
  output.line(`token   ${secret}`);
  output.line(lineOf(stored));
  output.line('The token is not shown again; only its digest is kept.');
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

function printDigest(output: Output): void {
  const { token: secret, digest } = newToken();
  output.document({ token: secret, digest });
  output.line(`token   ${secret}`);
  output.line(`digest  ${digest}`);
  output.line('Give the token to the agent; it is not shown again. The digest goes into `token`.');
}
