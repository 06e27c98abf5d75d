import { unavailable } from '../../backend/setup.ts';
import type { Markers, VoidResult } from '../../contract/adapter.ts';
import type { MarkerText } from '../../contract/proof.ts';
import type { Reached } from '../../contract/steps.ts';
import { type Content, fillPath } from '../../http/content.ts';
import type { Gateway, Warrant } from '../../http/gateway.ts';
import { parseJson } from '../../http/json.ts';
import { REQUESTS_KEPT } from '../../http/remote.ts';
import { canonical } from '../../protocol/canon.ts';
import { RecentMap } from '../../protocol/recent-map.ts';
import type { Value } from '../../protocol/value.ts';
import type { DraftOptions } from './options.ts';

/** The entry under a publication key after a PUT, or why it is not known. */
type PublicationState =
  | {
      readonly kind: 'stands';
      /** Undefined if the entry is not a marker. */
      readonly marker: MarkerText | undefined;
      readonly published: boolean;
      /** Whether this PUT made the entry. */
      readonly made: boolean;
    }
  | { readonly kind: 'refused' | 'not-sent' | 'lost'; readonly why: string };

/**
 * Uses the publication keys of a service as markers. The first entry under an occurrence is final.
 */
export class Publications implements Markers {
  readonly #gateway: Gateway;
  readonly #options: DraftOptions['publication'];
  readonly #reached: Reached;
  /**
   * The credential with which each occurrence was published, or may have been. An answer to a
   * different account proves nothing about it.
   */
  readonly #credentials = new RecentMap<string, string>(REQUESTS_KEPT);

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
    const credentials = this.#credentials.get(marker.occurrence);
    const warrant = credentials === undefined ? undefined : { credentials };
    const text = canonical(marker);
    const state = await this.#put(marker, this.#options.void(text), warrant);
    this.#reached('adapter:void-committed');
    // If the answer is lost, the void may or may not have been stored; a retry finds out.
    if (state.kind !== 'stands') return { kind: 'busy', why: state.why };
    if (state.marker === undefined)
      throw unavailable('something that is not a marker stands under the publication key');
    const isOurs = state.made && !state.published && canonical(state.marker) === text;
    return isOurs ? { kind: 'inserted' } : { kind: 'conflict', marker: state.marker };
  }

  async forget(occurrence: string): Promise<void> {
    const content = contentOf('forget', 'DELETE', this.#path(occurrence), null);
    await this.#gateway.send(content, occurrence);
  }

  /** Publishes a draft under the marker's occurrence, or returns the existing entry. */
  async publish(draft: string, marker: MarkerText, warrant: Warrant): Promise<PublicationState> {
    this.#credentials.set(marker.occurrence, warrant.credentials);
    return await this.#put(marker, this.#options.publish(draft, canonical(marker)), warrant);
  }

  async #put(
    { occurrence }: MarkerText,
    body: Value,
    warrant: Warrant | undefined,
  ): Promise<PublicationState> {
    const content = contentOf('publish', 'PUT', this.#path(occurrence), body);
    const exchanged = await this.#gateway.send(content, occurrence, { warrant });
    if (exchanged.kind !== 'response') return exchanged;
    const { status } = exchanged;
    const why = `the service answered ${status}`;
    if (this.#options.refusals.includes(status)) return { kind: 'refused', why };
    const value = status < 300 ? parseJson(exchanged.body) : undefined;
    if (value === undefined) return { kind: 'lost', why };
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

/** A request that the adapter itself makes. Its path contains nothing from an agent. */
export function contentOf(operation: string, method: string, path: string, body: Value): Content {
  return {
    operation,
    method,
    path,
    headers: {},
    body,
    idempotency: null,
  };
}

function readMarker(metadata: string): MarkerText | undefined {
  const marker = parseJson(Buffer.from(metadata)) as MarkerText | undefined;
  const isMarker = typeof marker?.occurrence === 'string' && typeof marker.text === 'string';
  return isMarker ? marker : undefined;
}
