import { PermitCheck, type StagedUnder } from '../../backend/permit-check.ts';
import type {
  AdapterContext,
  CandidateFacts,
  Evidence,
  Promotion,
  Stage,
} from '../../contract/adapter.ts';
import type { ConsumedPermit } from '../../contract/proof.ts';
import { digestValueOf } from '../../crypto/digest.ts';
import { randomIds } from '../../crypto/random-ids.ts';
import { fillPath } from '../../http/content.ts';
import { unavailable } from '../../http/errors.ts';
import type { Gateway, Warrant } from '../../http/gateway.ts';
import { canonical } from '../../protocol/canon.ts';
import type { StateRead, StateReading } from '../../protocol/effect.ts';
import type { DraftContent, DraftOptions } from './options.ts';
import { contentOf, type Publications } from './publications.ts';
import { normaliseRecord } from './service.ts';

/**
 * What must answer before a draft counts as observed: its content, and that the state beneath it
 * has not moved.
 */
export const DRAFT_CHANNELS = ['draft', 'base'] as const;

const DISCARD_TRIES = 3;

export interface DraftTools {
  readonly under: StagedUnder;
  readonly gateway: Gateway;
  readonly options: DraftOptions;
  readonly publications: Publications;
  readonly context: AdapterContext;
  readonly read: (reads: readonly StateRead[]) => Promise<readonly StateReading[]>;
  readonly onEnd: (stage: DraftStage) => void;
}

/** A draft at the service: without effect until it is published. */
export class DraftStage implements Stage {
  readonly candidate: string;
  readonly #id: string;
  readonly #tools: DraftTools;
  readonly #fromMs: number;
  readonly #permit: PermitCheck;
  #over = false;

  constructor(id: string, tools: DraftTools) {
    // Random, so that what is stored of a permit cannot be tried out, and because any id of a
    // service may be too long.
    this.candidate = `draft ${randomIds.hex(16)}`;
    this.#id = id;
    this.#tools = tools;
    this.#permit = new PermitCheck(tools.under, this.candidate);
    this.#fromMs = tools.context.clock.now();
  }

  /** Not locked: that it still holds when it counts is the service's condition for publishing. */
  read(reads: readonly StateRead[]): Promise<readonly StateReading[]> {
    return this.#tools.read(reads);
  }

  async observe(): Promise<Evidence> {
    const content = await this.#content();
    const { records, base } = content;
    const evidence = fingerprint(content);
    this.#permit.observed(evidence);
    return {
      candidate: this.candidate,
      evidence,
      records,
      channels: [
        { channel: 'draft', kind: 'records', count: records.length },
        { channel: 'base', kind: 'stable', before: base.before, after: base.now },
      ],
      unattributed: 0,
      assigned: [],
      window: { fromMs: this.#fromMs, toMs: this.#tools.context.clock.now() },
    };
  }

  async recheck(): Promise<CandidateFacts> {
    const evidence = fingerprint(await this.#content());
    this.#permit.rechecked(evidence);
    return { candidate: this.candidate, evidence };
  }

  async promote(permit: ConsumedPermit): Promise<Promotion> {
    if (this.#over)
      return { kind: 'refused', reason: 'candidate-over', detail: 'the draft was discarded' };
    const mismatch = this.#permit.refusalOf(permit);
    if (mismatch !== undefined) {
      await this.discard();
      return mismatch;
    }
    const { context, publications } = this.#tools;
    const { marker } = permit;
    context.reached('adapter:marker-written');
    const standing = await publications.publish(this.#id, permit);
    context.reached('adapter:commit-returned');
    switch (standing.kind) {
      case 'stands': {
        const ours = standing.published && canonical(standing.marker ?? null) === canonical(marker);
        if (ours) this.#end();
        if (ours) return { kind: 'confirmed' };
        // It is somebody else's only if it stood there before and can be read. Made just now, or
        // unreadable, it is ours with a marker that the service did not keep.
        const others = !standing.published || (!standing.made && standing.marker !== undefined);
        if (!others)
          return {
            kind: 'unknown',
            cause: unavailable('it published, and did not keep the marker'),
          };
        return {
          kind: 'refused',
          reason: 'marker-conflict',
          detail: 'something else stands under this occurrence',
        };
      }
      case 'refused':
        return {
          kind: 'refused',
          reason: 'not-published',
          detail: `the service answered ${standing.status}`,
        };
      case 'not-sent':
        return { kind: 'refused', reason: 'not-sent', detail: standing.why };
      case 'lost':
        return { kind: 'unknown', cause: unavailable(standing.why) };
    }
  }

  /** Deleting a draft that is gone, or was published, does nothing, so it may be tried again. */
  async discard(): Promise<void> {
    if (this.#over) return;
    const { gateway, options } = this.#tools;
    // Left behind without effect: another credential may belong to a different account with
    // different drafts.
    if (gateway.fingerprint() !== this.#warrant.credentials) return this.#end();
    const path = fillPath(options.draft.path, { id: this.#id });
    let why = '';
    for (let tries = 0; tries < DISCARD_TRIES; tries += 1) {
      const content = contentOf('discard', 'DELETE', path, null);
      const exchanged = await gateway.send(content, this.#id, { warrant: this.#warrant });
      const gone =
        exchanged.kind === 'response' &&
        (exchanged.status < 300 || [404, 410].includes(exchanged.status));
      if (gone) return this.#end();
      why = exchanged.kind === 'response' ? `it answered ${exchanged.status}` : exchanged.why;
    }
    throw unavailable(`a draft could not be deleted, ${why}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.discard();
  }

  /** The same number under a different credential may name a different draft. */
  get #warrant(): Warrant {
    return { credentials: this.#tools.under.certificate.credentials };
  }

  #end(): void {
    this.#over = true;
    this.#tools.onEnd(this);
  }

  async #content(): Promise<DraftContent> {
    const { gateway, options } = this.#tools;
    const path = fillPath(options.draft.path, { id: this.#id });
    const found = await gateway.read('the draft', path, this.#warrant);
    if (found === undefined) throw unavailable('the draft is gone');
    const { records, base } = options.draft.content(found.body);
    return { records: records.map(normaliseRecord), base };
  }
}

function fingerprint({ records, base }: DraftContent): string {
  return digestValueOf('effectmatch/draft-evidence/v1', { records, base });
}
