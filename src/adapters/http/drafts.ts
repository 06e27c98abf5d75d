import { copyAction, copyChecked } from '../../backend/action.ts';
import {
  type Applied,
  type Candidate,
  type CandidateEnd,
  type CandidateEvidence,
  type HoldRequest,
  refusedPromotion,
  stageFailed,
} from '../../backend/candidate.ts';
import { promotable } from '../../backend/promotable.ts';
import { unavailable } from '../../backend/setup.ts';
import { refuseAction } from '../../contract/action-input.ts';
import type {
  AdapterContext,
  AdapterFactory,
  PromotableAdapter,
  Promotion,
} from '../../contract/adapter.ts';
import type { ConsumedPermit, MarkerText } from '../../contract/proof.ts';
import { digestValueOf } from '../../crypto/digest.ts';
import { randomIds } from '../../crypto/random-ids.ts';
import { fillPath } from '../../http/content.ts';
import { refused } from '../../http/errors.ts';
import type { Gateway, Warrant } from '../../http/gateway.ts';
import { parseJson } from '../../http/json.ts';
import { normaliseRecord } from '../../http/registered.ts';
import { describeService } from '../../http/remote.ts';
import { canonical } from '../../protocol/canon.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import { DRAFT_OPTIONS, type DraftContent, type DraftOptions } from './options.ts';
import { contentOf, Publications } from './publications.ts';
import { fieldAt, openService } from './service.ts';

/** What an agent wants to draft. `draft.input` has accepted it. */
export interface DraftAction {
  readonly input: Value;
}

/**
 * A service with drafts. What an agent asks for is drafted, read and compared, and published only
 * if it is as approved.
 */
export function draftHttp(options: DraftOptions): AdapterFactory<DraftAction> {
  return { open: async (context) => openDrafts(options, context) };
}

function openDrafts(
  options: DraftOptions,
  context: AdapterContext,
): PromotableAdapter<DraftAction> {
  const service = openService(options, DRAFT_OPTIONS, context);
  const { gateway, registration, profiles, normalise, read } = service;
  const { draft, publication, probe, targets } = options;
  if (Object.hasOwn(targets, probe.target))
    throw refused('the target of the probe must not be registered');
  const markers = new Publications(gateway, publication, context.reached);
  const operations = {
    draft: { method: 'POST', path: draft.create.path },
    publish: { method: 'PUT', path: publication.path },
  };
  const capability = 'PROMOTABLE';
  return promotable<DraftAction>(
    {
      ...describeService({ ...service, kind: 'http-drafts', capability, operations }),
      registration,
      profiles,
      // The content of the draft, and whether the state it was made on is unchanged.
      channels: ['draft', 'base'],
      normalise,
      read,
      parseAction: (untrusted) => parseDraft(untrusted, options),
      describeAction: ({ input }) => ({ input }),
      async hold(under) {
        const candidate = new Draft(under, { gateway, options, markers, context, read });
        return { kind: 'open', candidate, marker: undefined };
      },
      markers,
      probe: {
        action: (token) => ({ input: probe.input(token) }),
        target: probe.target,
        async durable(token) {
          const found = await gateway.read('the control object of the probe', probe.path);
          return found !== undefined && probe.durable(found.body, token);
        },
        fingerprint: (digest) => gateway.keyedFingerprint(digest),
      },
      close: async () => {},
    },
    context,
  );
}

function parseDraft(untrusted: unknown, { draft }: DraftOptions): DraftAction {
  const copy = copyAction(untrusted);
  const { input, ...more } = isObject(copy) ? copy : {};
  if (input === undefined || Object.keys(more).length > 0)
    throw refuseAction('an action is { input } and nothing else');
  return { input: copyChecked('this cannot be drafted', () => draft.input(input)) };
}

const DISCARD_TRIES = 2;

interface DraftTools {
  readonly gateway: Gateway;
  readonly options: DraftOptions;
  readonly markers: Publications;
  readonly context: AdapterContext;
  readonly read: Candidate<DraftAction>['read'];
}

/** A draft at the service. It has no effect until it is published. */
class Draft implements Candidate<DraftAction> {
  /** A random id. The service's own id could be guessed from a stored permit, or be too long. */
  readonly id = `draft ${randomIds.hex(16)}`;
  /** Reads without a lock. The service publishes only if the state is unchanged. */
  readonly read: Candidate<DraftAction>['read'];
  readonly #tools: DraftTools;
  /** The same id under a different credential may name a different draft. */
  readonly #warrant: Warrant;
  #draft: string | undefined;

  constructor({ certificate }: HoldRequest, tools: DraftTools) {
    this.read = tools.read;
    this.#tools = tools;
    this.#warrant = { credentials: certificate.credentials };
  }

  async apply({ input }: DraftAction): Promise<Applied> {
    if (this.#draft !== undefined) return stageFailed('drafted', 'a draft holds one action');
    const { gateway, options } = this.#tools;
    const { create } = options.draft;
    const fixed = {
      operation: 'draft',
      method: 'POST',
      path: create.path,
      idempotency: null,
    };
    const content = gateway.compose(fixed, create.request(input));
    const exchanged = await gateway.send(content, '', { warrant: this.#warrant });
    if (exchanged.kind === 'not-sent') return stageFailed('not-sent', exchanged.why);
    if (exchanged.kind === 'lost') return stageFailed('draft-unknown', exchanged.why);
    const body = exchanged.status < 300 ? parseJson(exchanged.body) : undefined;
    const id = body === undefined ? undefined : fieldAt(body, create.id);
    if (typeof id !== 'string' && typeof id !== 'number')
      return stageFailed('draft-refused', `the service answered ${exchanged.status}`);
    this.#draft = String(id);
    return { kind: 'done' };
  }

  async observe(): Promise<CandidateEvidence> {
    const content = await this.#content();
    const { records, base } = content;
    return {
      evidence: fingerprint(content),
      records,
      channels: [
        {
          channel: 'draft',
          kind: 'records',
          count: records.length,
        },
        {
          channel: 'base',
          kind: 'stable',
          before: base.before,
          after: base.now,
        },
      ],
      unattributed: 0,
      assigned: [],
    };
  }

  async recheck(): Promise<string> {
    return fingerprint(await this.#content());
  }

  async commit(marker: MarkerText, permit: ConsumedPermit): Promise<Promotion> {
    const { context, markers } = this.#tools;
    context.reached('adapter:marker-written');
    const state = await markers.publish(this.#draft ?? '', marker, permit);
    context.reached('adapter:commit-returned');
    if (state.kind === 'not-sent') return refusedPromotion('not-sent', state.why);
    if (state.kind === 'refused') return refusedPromotion('not-published', state.why);
    if (state.kind !== 'stands') return { kind: 'unknown', cause: unavailable(state.why) };
    if (state.published && canonical(state.marker ?? null) === canonical(marker))
      return { kind: 'confirmed' };
    // It belongs to another attempt only if it was there before and is readable. If it was made
    // just now or is unreadable, it is ours, but the service did not keep the marker.
    if (state.published && (state.made || state.marker === undefined)) {
      const cause = unavailable('the service published the draft but did not keep the marker');
      return { kind: 'unknown', cause };
    }
    return refusedPromotion('marker-conflict', 'something else stands under this occurrence');
  }

  /** Deletes the draft. This does nothing if the draft is gone or was published. */
  async end(how: CandidateEnd): Promise<void> {
    if (how === 'committed' || this.#draft === undefined) return;
    const { gateway } = this.#tools;
    // Leave the draft behind: it has no effect, and a different credential may belong to an account
    // with different drafts.
    if (gateway.fingerprint() !== this.#warrant.credentials) return;
    const content = contentOf('discard', 'DELETE', this.#path(), null);
    let why = '';
    for (let tries = 0; tries < DISCARD_TRIES; tries += 1) {
      const exchanged = await gateway.send(content, this.#draft, { warrant: this.#warrant });
      const status = exchanged.kind === 'response' ? exchanged.status : undefined;
      if (status !== undefined && (status < 300 || status === 404 || status === 410)) return;
      why = exchanged.kind === 'response' ? `the service answered ${status}` : exchanged.why;
    }
    throw unavailable(`a draft could not be deleted: ${why}`);
  }

  async #content(): Promise<DraftContent> {
    const { gateway, options } = this.#tools;
    const found = await gateway.read('the draft', this.#path(), this.#warrant);
    if (found === undefined) throw unavailable('the draft is gone');
    const { records, base } = options.draft.content(found.body);
    return { records: records.map(normaliseRecord), base };
  }

  #path(): string {
    return fillPath(this.#tools.options.draft.path, { id: this.#draft ?? '' });
  }
}

function fingerprint({ records, base }: DraftContent): string {
  return digestValueOf('effectmatch/draft-evidence/v1', { records, base });
}
