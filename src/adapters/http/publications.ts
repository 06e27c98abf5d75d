import type { Markers, VoidResult } from '../../contract/adapter.ts';
import type { ConsumedPermit, MarkerText } from '../../contract/proof.ts';
import type { Reached } from '../../contract/steps.ts';
import { type Content, fillPath } from '../../http/content.ts';
import { unavailable } from '../../http/errors.ts';
import type { Exchanged } from '../../http/exchange.ts';
import type { Gateway, Warrant } from '../../http/gateway.ts';
import { parseJson } from '../../http/json.ts';
import { Recent } from '../../http/recent.ts';
import { canonical } from '../../protocol/canon.ts';
import type { Value } from '../../protocol/value.ts';
import type { DraftOptions } from './options.ts';

/** What a publication key holds, or why that is not known. */
export type PublicationState =
  | {
      readonly kind: 'stands';
      readonly marker: MarkerText | undefined;
      readonly published: boolean;
      readonly made: boolean;
    }
  | { readonly kind: 'refused'; readonly status: number }
  | { readonly kind: 'not-sent' | 'lost'; readonly why: string };

/**
 * The publication keys of a service as markers: whatever came first under an occurrence stands
 * there.
 */
export class Publications implements Markers {
  readonly #gateway: Gateway;
  readonly #options: DraftOptions['publication'];
  readonly #reached: Reached;
  /**
   * With which credentials something was published, or may have been: another account says nothing
   * about it.
   */
  readonly #published = new Recent<string>();

  constructor(gateway: Gateway, options: DraftOptions['publication'], reached: Reached) {
    this.#gateway = gateway;
    this.#options = options;
    this.#reached = reached;
  }

  async find(occurrence: string): Promise<MarkerText | undefined> {
    const found = await this.#gateway.read('the publication', this.#path(occurrence));
    return found && readMarker(this.#options.standing(found.body).metadata);
  }

  async void(marker: MarkerText): Promise<VoidResult> {
    this.#reached('adapter:void-written');
    const { occurrence } = marker;
    const credentials = this.#published.get(occurrence);
    const warrant = credentials === undefined ? undefined : { credentials };
    const standing = await this.#put(occurrence, this.#options.void(canonical(marker)), warrant);
    this.#reached('adapter:void-committed');
    if (standing.kind === 'refused')
      return { kind: 'busy', why: `the service answered ${standing.status}` };
    // A void whose answer is lost stands or does not; whoever asks again finds out.
    if (standing.kind !== 'stands') return { kind: 'busy', why: standing.why };
    if (standing.marker === undefined)
      throw unavailable('something that is not a marker stands under the key');
    const inserted =
      standing.made && !standing.published && canonical(standing.marker) === canonical(marker);
    return inserted ? { kind: 'inserted' } : { kind: 'conflict', marker: standing.marker };
  }

  async forget(occurrence: string): Promise<void> {
    await this.#gateway.send(
      contentOf('forget', 'DELETE', this.#path(occurrence), null),
      occurrence,
    );
  }

  /** Publishes a draft under the marker's occurrence, or finds what stands there already. */
  async publish(draft: string, permit: ConsumedPermit): Promise<PublicationState> {
    const { marker, credentials } = permit;
    this.#published.set(marker.occurrence, credentials);
    return await this.#put(
      marker.occurrence,
      this.#options.publish(draft, canonical(marker)),
      permit,
    );
  }

  async #put(
    occurrence: string,
    body: Value,
    warrant: Warrant | undefined,
  ): Promise<PublicationState> {
    const content = contentOf('publish', 'PUT', this.#path(occurrence), body);
    const exchanged = await this.#gateway.send(content, occurrence, { warrant });
    return this.#judge(exchanged);
  }

  #judge(exchanged: Exchanged): PublicationState {
    if (exchanged.kind !== 'response') return exchanged;
    const { status, body } = exchanged;
    if (this.#options.refusals.includes(status)) return { kind: 'refused', status };
    const value = status < 300 ? parseJson(body) : undefined;
    if (value === undefined) return { kind: 'lost', why: `the service answered ${status}` };
    const { disposition, metadata } = this.#options.standing(value);
    return {
      kind: 'stands',
      marker: readMarker(metadata),
      published: disposition === 'published',
      made: status === 201,
    };
  }

  #path(occurrence: string): string {
    return fillPath(this.#options.path, { key: occurrence });
  }
}

/** A request that the adapter makes for itself; nothing of an agent is in its path. */
export function contentOf(operation: string, method: string, path: string, body: Value): Content {
  return { operation, method, path, headers: {}, body, idempotency: null };
}

function readMarker(metadata: string): MarkerText | undefined {
  const marker = parseJson(Buffer.from(metadata)) as MarkerText | undefined;
  return typeof marker?.occurrence === 'string' && typeof marker.text === 'string'
    ? marker
    : undefined;
}
