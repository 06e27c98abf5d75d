import { normaliseManifest } from '../../backend/normalise.ts';
import { refuseRounded } from '../../contract/action-input.ts';
import type {
  AdapterContext,
  AdapterFactory,
  PromotableAdapter,
  PromotableProbe,
  Staged,
  Survey,
} from '../../contract/adapter.ts';
import { misnamedOption } from '../../contract/options.ts';
import type { Certificate, Claim } from '../../contract/proof.ts';
import { EffectMatchError } from '../../errors.ts';
import { buildContent } from '../../http/content.ts';
import { Gateway, refused } from '../../http/gateway.ts';
import { parseJson } from '../../http/json.ts';
import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { Manifest } from '../../protocol/manifest.ts';
import type { Registration } from '../../protocol/registration.ts';
import { isObject, type Value } from '../../protocol/value.ts';
import { DRAFT_OPTIONS, type DraftOptions } from './draft-options.ts';
import { DRAFT_CHANNELS, DraftStage } from './draft-stage.ts';
import { fieldAt, identifyOptions, targetsOf } from './layout.ts';
import { serviceSchema } from './numbers.ts';
import { Publications, unavailable } from './publications.ts';
import { adapterCode, readEntries } from './remote.ts';
import { surveyService } from './survey.ts';

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
  readonly profiles = ['row-event', 'net-state', 'relation-write'] as const;
  readonly channels = DRAFT_CHANNELS;
  readonly identity: PromotableAdapter['identity'];
  readonly registration: Registration;
  readonly markers: Publications;
  readonly probe: PromotableProbe<DraftAction>;
  readonly #options: DraftOptions;
  readonly #context: AdapterContext;
  readonly #gateway: Gateway;
  readonly #digest: string;
  readonly #stages = new Set<DraftStage>();

  constructor(options: DraftOptions, context: AdapterContext) {
    const misnamed = misnamedOption(options, DRAFT_OPTIONS);
    if (misnamed !== undefined) throw refused(misnamed);
    const {
      service,
      targets,
      profile = 'row-event',
      values = 'plain',
      publication,
      probe,
      draft,
    } = options;
    this.#options = options;
    this.#context = context;
    this.#gateway = new Gateway(service, context);
    this.registration = { profile, values, targets: targetsOf(targets) };
    if (Object.hasOwn(targets, probe.target))
      throw refused('the target of the probe must not be registered');
    this.#digest = identifyOptions({ url: service.url, draft, publication, probe, targets });
    this.identity = {
      kind: 'http-drafts',
      backend: service.backend,
      code: adapterCode(this.#digest),
    };
    this.markers = new Publications(this.#gateway, publication, context.reached);
    this.probe = {
      action: (token) => ({ input: probe.input(token) }),
      target: probe.target,
      durable: (token) => this.#isDurable(token),
      fingerprint: (digest) => this.#gateway.keyedFingerprint(digest),
    };
  }

  async normalise(manifest: Manifest): Promise<Manifest> {
    return normaliseManifest(serviceSchema(this.registration), manifest);
  }

  read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    return readEntries(this.#gateway, this.#options.targets, reads);
  }

  parseAction(input: unknown): DraftAction {
    const copy = copyOf(input);
    refuseRounded(copy, 'the action', 'write it as text, since JSON has no BigInt');
    const { input: said, ...more } = isObject(copy) ? copy : {};
    if (said === undefined || Object.keys(more).length > 0)
      throw invalid('an action is { input } and nothing else');
    try {
      return { input: copyOf(this.#options.draft.input(said)) };
    } catch (cause) {
      if (cause instanceof EffectMatchError) throw cause;
      throw invalid(
        `this cannot be drafted: ${cause instanceof Error ? cause.message : 'it was refused'}`,
        cause,
      );
    }
  }

  describeAction({ input }: DraftAction): Value {
    return { input };
  }

  async survey(): Promise<Survey> {
    const { draft, publication, service } = this.#options;
    return surveyService({
      gateway: this.#gateway,
      backend: service.backend,
      capability: 'PROMOTABLE',
      operations: {
        draft: { method: 'POST', path: draft.create.path },
        publish: { method: 'PUT', path: publication.path },
      },
      optionsDigest: this.#digest,
    });
  }

  async stage(claim: Claim, certificate: Certificate, { input }: DraftAction): Promise<Staged> {
    const { create } = this.#options.draft;
    const fixed = { method: 'POST', path: create.path, idempotency: null };
    const content = buildContent('draft', fixed, create.request(input), [
      this.#gateway.credentialHeader,
    ]);
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
      read: (reads) => this.read(reads),
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
    const answer = await this.#gateway.get(path);
    if (answer.kind === 'silent') throw unavailable(answer.why);
    return answer.kind === 'found' && durable(answer.body, token);
  }
}

function copyOf(input: unknown): Value {
  try {
    return JSON.parse(canonical(input)) as Value;
  } catch (cause) {
    throw invalid('the action is not plain data', cause);
  }
}

function invalid(what: string, cause?: unknown): EffectMatchError<'ERR_EM_ACTION_INVALID'> {
  return new EffectMatchError('ERR_EM_ACTION_INVALID', what, cause === undefined ? {} : { cause });
}
