import { unavailable } from '../../backend/setup.ts';
import type { AdapterContext, Approval, RemoteAdapter } from '../../contract/adapter.ts';
import { misnamedOption, type OptionNames } from '../../contract/options.ts';
import type { Content } from '../../http/content.ts';
import { invalid, refused } from '../../http/errors.ts';
import type { Exchanged } from '../../http/exchange.ts';
import { Gateway } from '../../http/gateway.ts';
import { parseJson } from '../../http/json.ts';
import { parseEmptyAction, REQUESTS_KEPT, readEntries, remoteAdapter } from '../../http/remote.ts';
import { canonical } from '../../protocol/canon.ts';
import { RecentMap } from '../../protocol/recent-map.ts';
import type { Registration } from '../../protocol/registration.ts';
import { isObject, type Row } from '../../protocol/value.ts';
import { FIELDS, ISSUE, markBody, readIssue } from './issue.ts';
import { exactFields, issueNumberOf, isWhole, normaliseChange } from './normalise.ts';
import { CHANNELS, lookUpIssue } from './read-back.ts';

/** The repository whose issues may be changed. */
export interface GithubOptions {
  readonly owner: string;
  readonly repo: string;
  /** A token that may write issues. A function is called for every request. */
  readonly token: string | (() => string);
  /** Default: `https://api.github.com`. For GitHub Enterprise Server, `https://<host>/api/v3`. */
  readonly url?: string;
  readonly values?: Registration['values'];
  readonly timeoutMs?: number;
  /** Certificates to trust instead of those of Node.js, as PEM. */
  readonly ca?: string;
}

/** Always empty: an agent cannot add anything to what was approved. */
export type GithubAction = Readonly<Record<never, never>>;

/** A page of a hundred issues with long bodies can exceed a megabyte, and recovery must read it. */
const MAX_BYTES = 1 << 23;

const OPTIONS: OptionNames<GithubOptions> = {
  owner: true,
  repo: true,
  token: true,
  url: true,
  values: true,
  timeoutMs: true,
  ca: true,
};

const HEADERS = { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' };

/**
 * The issues of one repository. The adapter is OPAQUE, because GitHub does not accept an
 * idempotency key and others also write there.
 */
export async function openAdapter(
  options: GithubOptions,
  context: AdapterContext,
): Promise<RemoteAdapter<GithubAction>> {
  const gateway = openGateway(options, context);
  const { owner, repo, values = 'plain' } = options;
  const base = `/repos/${owner}/${repo}`;
  const issues = `${base}/issues`;
  const backend = `${gateway.host} ${owner}/${repo} ${await repositoryId(gateway, base)}`;
  const acknowledged = new RecentMap<string, number>(REQUESTS_KEPT);
  const capability = 'OPAQUE';
  const registration: Registration = {
    profile: 'registered-fields',
    values,
    targets: [ISSUE],
    capability,
  };
  return remoteAdapter({
    kind: 'github',
    backend,
    capability,
    gateway,
    context,
    registration,
    module: import.meta.url,
    configuration: FIELDS.join(' '),
    operations: {
      create: { method: 'POST', path: issues },
      change: { method: 'PATCH', path: `${issues}/{number}` },
    },
    profiles: ['registered-fields'],
    channels: CHANNELS,
    normalise: (manifest) =>
      normaliseChange(registration, manifest, (number) => readFields(gateway, issues, number)),
    read: (reads) =>
      readEntries(reads, { [ISSUE.name]: { read: issues } }, async (_, read) => {
        const number = issueNumberOf(read);
        const fields = await readFields(gateway, issues, number);
        return fields && { number, ...fields };
      }),
    parseAction: parseEmptyAction,
    describeAction: () => ({}),
    request: (approved) => buildRequest(gateway, issues, approved),
    async send(content, permit) {
      const { occurrence } = permit.record;
      const marked = markCreation(content, occurrence);
      const exchanged = await gateway.send(marked, occurrence, { warrant: permit });
      const number = acknowledgedNumber(exchanged);
      if (number !== undefined) acknowledged.set(occurrence, number);
      return exchanged;
    },
    lookUp: (occurrence, _operation, approved) =>
      lookUpIssue(gateway, issues, {
        occurrence,
        approved,
        acknowledged: acknowledged.get(occurrence),
      }),
  });
}

function openGateway(options: GithubOptions, context: AdapterContext): Gateway {
  const misnamed = misnamedOption(options, OPTIONS);
  if (misnamed !== undefined) throw refused(misnamed);
  const { owner, repo, token, url = 'https://api.github.com', timeoutMs, ca } = options;
  for (const name of [owner, repo]) {
    if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,100}$/.test(name) || /^\.\.?$/.test(name))
      throw refused('owner and repo are the two names of a repository');
  }
  const value = () => `Bearer ${typeof token === 'function' ? token() : token}`;
  const service = {
    url,
    backend: `${owner}/${repo}`,
    credential: { header: 'authorization', value },
    maxBytes: MAX_BYTES,
    timeoutMs,
    ca,
  };
  return new Gateway(service, context);
}

/** The repository's id. A repository that is deleted and created again has a different one. */
async function repositoryId(gateway: Gateway, base: string): Promise<number> {
  const found = await gateway.read(`the repository ${base}`, base);
  const id = found !== undefined && isObject(found.body) ? found.body.id : undefined;
  if (typeof id === 'number') return id;
  throw unavailable(`the repository ${base} does not exist, or the token may not see it`);
}

/** Reads the current registered fields of an issue; null if it does not exist. */
async function readFields(gateway: Gateway, issues: string, number: number): Promise<Row | null> {
  const found = await gateway.read(`issue ${number}`, `${issues}/${number}`);
  if (found === undefined) return null;
  const issue = readIssue(found.body);
  if (issue !== undefined) return issue.fields;
  throw unavailable(`issue ${number} could not be read: the answer is not an issue`);
}

/**
 * Creates an issue, or sends the fields in which the approved values differ from the required ones.
 */
function buildRequest(gateway: Gateway, issues: string, { effects, requires }: Approval): Content {
  const [effect] = effects;
  if (effect === undefined || effects.length > 1 || effect.count !== 1)
    throw invalid('one change is one request');
  const wanted = exactFields(effect.after);
  if (effect.op === 'insert') {
    const { state: _, ...body } = wanted;
    const fixed = {
      operation: 'create',
      method: 'POST',
      path: issues,
      idempotency: null,
    };
    return gateway.compose(fixed, { headers: HEADERS, body });
  }
  const cell = effect.key?.number;
  const number = cell !== undefined && 'is' in cell ? cell.is : null;
  const named = requires.filter(({ key }) => key.number === number);
  const current = named.map(({ row }) => row).find(isWhole);
  if (current === undefined)
    throw invalid('an approved change requires the fields that it starts from');
  const changed = FIELDS.filter((field) => canonical(wanted[field]) !== canonical(current[field]));
  const body = Object.fromEntries(changed.map((field) => [field, wanted[field] ?? null]));
  const path = `${issues}/{number}`;
  const fixed = {
    operation: 'change',
    method: 'PATCH',
    path,
    idempotency: null,
  };
  return gateway.compose(fixed, { parameters: { number }, headers: HEADERS, body });
}

/**
 * Puts the occurrence into the new issue. GitHub has no other place where it could be found again.
 */
function markCreation(content: Content, occurrence: string): Content {
  if (content.operation !== 'create' || !isObject(content.body)) return content;
  return { ...content, body: { ...content.body, body: markBody(content.body.body, occurrence) } };
}

/** The number of the issue that GitHub says it wrote. */
function acknowledgedNumber(exchanged: Exchanged): number | undefined {
  if (exchanged.kind !== 'response' || ![200, 201].includes(exchanged.status)) return undefined;
  const json = parseJson(exchanged.body);
  return json === undefined ? undefined : readIssue(json)?.number;
}
