import type { AdapterContext, Approval, RemoteAdapter, Survey } from '../../contract/adapter.ts';
import { misnamedOption, type OptionNames } from '../../contract/options.ts';
import { codeIdentity } from '../../crypto/code-identity.ts';
import { requestDigest } from '../../crypto/digest.ts';
import { EffectMatchError } from '../../errors.ts';
import { buildContent, type Content } from '../../http/content.ts';
import { Gateway, refused } from '../../http/gateway.ts';
import { parseJson } from '../../http/json.ts';
import { Recent } from '../../http/recent.ts';
import { canonical } from '../../protocol/canon.ts';
import type { Cell, StateRead, StateReading } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import { isObject, type Row, type Value } from '../../protocol/value.ts';
import { FIELDS, ISSUE, invalid, markBody, readIssue } from './issue.ts';
import { isWhole, normaliseManifest, numberOf } from './normalise.ts';
import type { GithubOptions } from './options.ts';
import { type Acknowledged, CHANNELS, readBackIssue } from './read-back.ts';

/** The agent says nothing about the request: it follows from what was approved. */
export type GithubAction = Readonly<Record<never, never>>;

/**
 * A page of a hundred issues with long bodies is more than a megabyte, and recovery has to read it.
 */
const MAX_BYTES = 1 << 23;

const OPTIONS: OptionNames<GithubOptions> = {
  ...{ owner: true, repo: true, token: true, url: true, values: true, timeoutMs: true, ca: true },
};

const HEADERS = { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' };

/**
 * Opens the repository and learns which one it is: one that was deleted and made anew has another
 * id.
 */
export async function openAdapter(
  options: GithubOptions,
  context: AdapterContext,
): Promise<GithubAdapter> {
  const misnamed = misnamedOption(options, OPTIONS);
  if (misnamed !== undefined) throw refused(misnamed);
  const { owner, repo, token, url = 'https://api.github.com', timeoutMs, ca } = options;
  for (const name of [owner, repo]) {
    if (typeof name !== 'string' || !/^[A-Za-z0-9._-]{1,100}$/.test(name) || /^\.\.?$/.test(name)) {
      throw refused('owner and repo are the two names of a repository');
    }
  }
  const value = () => `Bearer ${typeof token === 'function' ? token() : token}`;
  const gateway = new Gateway(
    {
      url,
      backend: `${owner}/${repo}`,
      credential: { header: 'authorization', value },
      maxBytes: MAX_BYTES,
      ...(timeoutMs !== undefined && { timeoutMs }),
      ...(ca !== undefined && { ca }),
    },
    context,
  );
  const base = `/repos/${owner}/${repo}`;
  const answer = await gateway.get(base);
  const id = answer.kind === 'found' && isObject(answer.body) ? answer.body.id : undefined;
  if (typeof id !== 'number') {
    const why =
      answer.kind === 'silent' ? answer.why : 'it does not exist, or the token may not see it';
    throw new EffectMatchError(
      'ERR_EM_ADAPTER_UNAVAILABLE',
      `${owner}/${repo} cannot be opened: ${why}`,
    );
  }
  return new GithubAdapter({
    gateway,
    base,
    backend: `${gateway.host} ${owner}/${repo} ${id}`,
    context,
    options,
  });
}

interface Opened {
  readonly gateway: Gateway;
  readonly base: string;
  readonly backend: string;
  readonly context: AdapterContext;
  readonly options: GithubOptions;
}

/**
 * The issues of one repository. OPAQUE: GitHub takes no idempotency key, and others write there
 * too.
 */
export class GithubAdapter implements RemoteAdapter<GithubAction> {
  readonly capability = 'OPAQUE';
  readonly profiles = ['registered-fields'] as const;
  readonly channels = CHANNELS;
  readonly identity: RemoteAdapter['identity'];
  readonly registration: Registration;
  readonly probe: RemoteAdapter['probe'] = {
    samples: () => [],
    exclusiveCredential: async () => false,
    idempotent: async () => false,
    fingerprint: (digest) => this.#opened.gateway.keyedFingerprint(digest),
  };
  readonly #opened: Opened;
  readonly #acknowledged = new Recent<Acknowledged>();

  constructor(opened: Opened) {
    this.#opened = opened;
    const folders = [new URL('.', import.meta.url), new URL('../../http/', import.meta.url)];
    this.identity = {
      kind: 'github',
      backend: opened.backend,
      code: folders.map(codeIdentity).join('+'),
    };
    const { values = 'plain' } = opened.options;
    this.registration = {
      profile: 'registered-fields',
      values,
      targets: [ISSUE],
      capability: 'OPAQUE',
    };
  }

  async normalise(manifest: Parameters<RemoteAdapter['normalise']>[0]) {
    return await normaliseManifest(manifest, (number) => this.#read(number));
  }

  async read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    const readings: StateReading[] = [];
    for (const { target, key, columns } of reads) {
      const number = numberOf(target, key.number);
      const fields = await this.#read(number);
      const row = fields && { number, ...fields };
      const wanted = columns ?? Object.keys(row ?? {});
      readings.push({ target, key, row: row && pick(row, wanted) });
    }
    return readings;
  }

  parseAction(input: unknown): GithubAction {
    if (input === undefined || (typeof input === 'object' && input !== null && isEmpty(input)))
      return Object.freeze({});
    throw new EffectMatchError(
      'ERR_EM_ACTION_INVALID',
      'the request is derived from what was approved, and nothing can be added to it: pass {} as the action',
    );
  }

  describeAction(): Value {
    return {};
  }

  async survey(): Promise<Survey> {
    const { gateway, backend } = this.#opened;
    return {
      backend,
      executor: `gateway to ${gateway.host}`,
      outlets: OUTLETS,
      configuration: canonical(ISSUE),
      credentials: gateway.fingerprint(),
      enforcement: 'the agent holds no token of this repository',
    };
  }

  /** Creates, or sends the fields in which what is approved differs from what is required. */
  buildRequest({ effects, requires }: Approval): { readonly content: Value } {
    const { base, gateway } = this.#opened;
    const [effect] = effects;
    if (effect === undefined || effects.length > 1 || effect.count !== 1)
      throw invalid('one change is one request');
    const wanted = exactFields(effect.after);
    const number = effect.key?.number;
    const creates = effect.op === 'insert';
    const { state: _, ...fields } = wanted;
    const body = creates ? fields : changedFields(wanted, stateRequired(requires, number));
    const path = creates
      ? `${base}/issues`
      : `${base}/issues/${number !== undefined && 'is' in number ? number.is : ''}`;
    const fixed = { method: creates ? 'POST' : 'PATCH', path, idempotency: null };
    const parts = { headers: HEADERS, body };
    const content = buildContent(creates ? 'create' : 'change', fixed, parts, [
      gateway.credentialHeader,
    ]);
    return { content: content as unknown as Value };
  }

  async dispatch(
    permit: Parameters<RemoteAdapter['dispatch']>[0],
    request: Parameters<RemoteAdapter['dispatch']>[1],
  ) {
    const { occurrence, bound } = permit.record;
    if (!('request' in bound) || bound.request !== requestDigest(request)) {
      return {
        mayHaveSent: false as const,
        why: 'the request is not the one that the permit is for',
      };
    }
    const exchanged = await this.#opened.gateway.send(
      marked(request.content as unknown as Content, occurrence),
      occurrence,
      { warrant: permit },
    );
    if (exchanged.kind === 'not-sent') return { mayHaveSent: false as const, why: exchanged.why };
    if (exchanged.kind === 'response' && (exchanged.status === 200 || exchanged.status === 201)) {
      const json = parseJson(exchanged.body);
      const issue = json === undefined ? undefined : readIssue(json);
      if (issue !== undefined) this.#acknowledged.set(occurrence, { number: issue.number });
    }
    return { mayHaveSent: true as const };
  }

  async readBack(occurrence: string, _request: unknown, approved: Approval) {
    const { gateway, base, context } = this.#opened;
    const acknowledged = this.#acknowledged.get(occurrence);
    return await readBackIssue(
      { gateway, base, nowMs: context.clock.now() },
      { occurrence, approved, acknowledged },
    );
  }

  async close(): Promise<void> {}

  async #read(number: number): Promise<Row | null> {
    const answer = await this.#opened.gateway.get(`${this.#opened.base}/issues/${number}`);
    if (answer.kind === 'absent') return null;
    const issue = answer.kind === 'found' ? readIssue(answer.body) : undefined;
    if (issue !== undefined) return issue.fields;
    const why = answer.kind === 'silent' ? answer.why : 'the answer is not an issue';
    throw new EffectMatchError(
      'ERR_EM_ADAPTER_UNAVAILABLE',
      `issue ${number} could not be read: ${why}`,
    );
  }
}

const OUTLETS = Object.freeze([
  Object.freeze({
    outlet: 'issues of the repository',
    disposition: 'observed' as const,
    by: 'a fresh GET after the write',
  }),
  Object.freeze({
    outlet: 'everything else',
    disposition: 'denied' as const,
    by: 'the gateway alone has the token',
  }),
]);

/**
 * The occurrence goes into what is created, because GitHub has no other place where it could be
 * found again.
 */
function marked(content: Content, occurrence: string): Content {
  if (content.operation !== 'create' || !isObject(content.body)) return content;
  return { ...content, body: { ...content.body, body: markBody(content.body.body, occurrence) } };
}

function exactFields(cells: Approval['effects'][number]['after']): Row {
  return Object.fromEntries(
    FIELDS.map((field) => {
      const cell = cells?.[field];
      if (cell === undefined || !('is' in cell))
        throw invalid(`"${field}" is not approved with an exact value`);
      return [field, cell.is];
    }),
  );
}

/**
 * The fields that the approval requires of the issue as it is: what is sent is the difference to
 * them.
 */
function stateRequired(requires: Approval['requires'], number: Cell | undefined): Row {
  const named = requires.filter(
    ({ key }) => number !== undefined && 'is' in number && key.number === number.is,
  );
  const row = named.find((requirement) => isWhole(requirement.row))?.row;
  if (row === undefined || row === null)
    throw invalid('an approved change requires the fields that it starts from');
  return row;
}

function changedFields(wanted: Row, current: Row): Row {
  return Object.fromEntries(
    Object.entries(wanted).filter(
      ([field, value]) => canonical(value) !== canonical(current[field] ?? null),
    ),
  );
}

function pick(row: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.map((column) => [column, row[column] ?? null]));
}

function isEmpty(input: object): boolean {
  return Reflect.ownKeys(input).length === 0 && !Array.isArray(input);
}
