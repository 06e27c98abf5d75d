import { copyAction, copyChecked } from '../../backend/plain-action.ts';
import { refuseAction } from '../../contract/action-input.ts';
import type {
  AdapterContext,
  AdapterFactory,
  PromotableAdapter,
  PromotableProbe,
  Staged,
} from '../../contract/adapter.ts';
import type { Certificate, Claim } from '../../contract/proof.ts';
import { refused } from '../../http/errors.ts';
import type { Gateway } from '../../http/gateway.ts';
import { parseJson } from '../../http/json.ts';
import { describeService } from '../../http/remote.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import { DRAFT_CHANNELS, DraftStage } from './draft-stage.ts';
import { DRAFT_OPTIONS, type DraftOptions } from './options.ts';
import { Publications } from './publications.ts';
import { fieldAt, openService } from './service.ts';

/** What an agent wants drafted; its check has let it through. */
export interface DraftAction {
  readonly input: Value;
}

/**
 * A service with drafts: what an agent asks for is drafted, read, compared, and published only if
 * it is as approved.
 */
export function draftHttp(options: DraftOptions): AdapterFactory<DraftAction> {
  return { open: async (context) => new DraftAdapter(options, context) };
}

/** Reports; decides nothing. */
class DraftAdapter implements PromotableAdapter<DraftAction> {
  readonly capability = 'PROMOTABLE';
  readonly channels = DRAFT_CHANNELS;
  readonly profiles: PromotableAdapter['profiles'];
  readonly identity: PromotableAdapter['identity'];
  readonly registration: PromotableAdapter['registration'];
  readonly normalise: PromotableAdapter['normalise'];
  readonly read: PromotableAdapter['read'];
  readonly survey: PromotableAdapter['survey'];
  readonly markers: Publications;
  readonly probe: PromotableProbe<DraftAction>;
  readonly #options: DraftOptions;
  readonly #context: AdapterContext;
  readonly #gateway: Gateway;
  readonly #stages = new Set<DraftStage>();

  constructor(options: DraftOptions, context: AdapterContext) {
    const service = openService(options, DRAFT_OPTIONS, context);
    const { draft, publication, probe, targets } = options;
    if (Object.hasOwn(targets, probe.target))
      throw refused('the target of the probe must not be registered');
    const { identity, survey } = describeService({
      ...service,
      kind: 'http-drafts',
      capability: 'PROMOTABLE',
      operations: {
        draft: { method: 'POST', path: draft.create.path },
        publish: { method: 'PUT', path: publication.path },
      },
    });
    this.identity = identity;
    this.survey = survey;
    this.registration = service.registration;
    this.profiles = service.profiles;
    this.normalise = service.normalise;
    this.read = service.read;
    this.#options = options;
    this.#context = context;
    this.#gateway = service.gateway;
    this.markers = new Publications(this.#gateway, publication, context.reached);
    this.probe = {
      action: (token) => ({ input: probe.input(token) }),
      target: probe.target,
      durable: (token) => this.#isDurable(token),
      fingerprint: (digest) => this.#gateway.keyedFingerprint(digest),
    };
  }

  parseAction(untrusted: unknown): DraftAction {
    const copy = copyAction(untrusted);
    const { input, ...more } = isObject(copy) ? copy : {};
    if (input === undefined || Object.keys(more).length > 0)
      throw refuseAction('an action is { input } and nothing else');
    return {
      input: copyChecked('this cannot be drafted', () => this.#options.draft.input(input)),
    };
  }

  describeAction({ input }: DraftAction): Value {
    return { input };
  }

  async stage(claim: Claim, certificate: Certificate, { input }: DraftAction): Promise<Staged> {
    const { create } = this.#options.draft;
    const fixed = { operation: 'draft', method: 'POST', path: create.path, idempotency: null };
    const content = this.#gateway.compose(fixed, create.request(input));
    this.#context.reached('adapter:stage-opened');
    const exchanged = await this.#gateway.send(content, '', {
      warrant: { credentials: certificate.credentials },
    });
    if (exchanged.kind === 'not-sent')
      return { kind: 'failed', reason: 'not-sent', detail: exchanged.why };
    if (exchanged.kind === 'lost')
      return { kind: 'failed', reason: 'draft-unknown', detail: exchanged.why };
    const body = parseJson(exchanged.body);
    const id = exchanged.status < 300 && body !== undefined ? fieldAt(body, create.id) : undefined;
    if (typeof id !== 'string' && typeof id !== 'number') {
      return {
        kind: 'failed',
        reason: 'draft-refused',
        detail: `the service answered ${exchanged.status}`,
      };
    }
    const stage = new DraftStage(String(id), {
      under: { claim, certificate },
      gateway: this.#gateway,
      options: this.#options,
      publications: this.markers,
      context: this.#context,
      read: this.read,
      onEnd: (ended) => this.#stages.delete(ended),
    });
    this.#stages.add(stage);
    this.#context.reached('adapter:action-done');
    return { kind: 'held', stage };
  }

  async close(): Promise<void> {
    // A draft that cannot be deleted has no effect, and what else is open has to be closed.
    await Promise.allSettled([...this.#stages].map((stage) => stage.discard()));
  }

  async #isDurable(token: string): Promise<boolean> {
    const { path, durable } = this.#options.probe;
    const found = await this.#gateway.read('the control object of the probe', path);
    return found !== undefined && durable(found.body, token);
  }
}
