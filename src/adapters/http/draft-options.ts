import type { OptionNames } from '../../contract/options.ts';
import type { RequestParts } from '../../http/content.ts';
import type { ServiceOptions } from '../../http/options.ts';
import type { ChangeRecord, Profile } from '../../protocol/effect.ts';
import type { Registration } from '../../protocol/registration.ts';
import type { Value } from '../../protocol/value.ts';
import type { TargetOptions } from './options.ts';

/** What a draft would leave if it were published now, and the version of what it was made on. */
export interface DraftContent {
  readonly records: readonly ChangeRecord[];
  /**
   * Version of the state when the draft was made, and now. Where they differ, nothing may be
   * published any more.
   */
  readonly base: { readonly before: string; readonly now: string };
}

/**
 * A service that keeps drafts. It is PROMOTABLE as far as it keeps three promises: a draft has no
 * effect until it is published; what stands under a publication key stands there for good,
 * published or void, whichever came first; and it publishes only while the state is the one that
 * the draft was made on.
 */
export interface DraftOptions {
  readonly service: ServiceOptions;
  readonly targets: Readonly<Record<string, TargetOptions>>;
  readonly profile?: Exclude<Profile, 'registered-fields'>;
  readonly values?: Registration['values'];
  readonly draft: {
    /** Checks what an agent asks for, completely; throws where it may not be drafted. */
    readonly input: (untrusted: Value) => Value;
    /** Makes a draft. `id` is where the response names it, as a path of fields. */
    readonly create: {
      readonly path: string;
      readonly request: (input: Value) => RequestParts;
      readonly id: readonly string[];
    };
    /** Reads and deletes it; `{id}` stands for the draft. */
    readonly path: string;
    readonly content: (body: Value) => DraftContent;
  };
  readonly publication: {
    /**
     * `{key}` stands for the occurrence. PUT publishes or voids, answering 201 where it did and 200
     * with what stood there before; GET reads, DELETE forgets.
     */
    readonly path: string;
    /** `metadata` is to be stored unread and given back. */
    readonly publish: (draft: string, metadata: string) => Value;
    readonly void: (metadata: string) => Value;
    /** What stands under the key, from the response to PUT and GET. */
    readonly standing: (body: Value) => {
      readonly disposition: 'published' | 'void';
      readonly metadata: string;
    };
    /**
     * Statuses by which the service says that it did not publish and never will: of this draft,
     * under this key.
     */
    readonly refusals: readonly number[];
  };
  /** A control object for admission, which no agent can name. */
  readonly probe: {
    readonly input: (token: string) => Value;
    /** The target that `content` reports for it; it is not registered. */
    readonly target: string;
    readonly path: string;
    /** Whether that control object was published, from a GET of `path`. */
    readonly durable: (body: Value, token: string) => boolean;
  };
}

export const DRAFT_OPTIONS: OptionNames<DraftOptions> = {
  ...{
    service: true,
    targets: true,
    profile: true,
    values: true,
    draft: true,
    publication: true,
    probe: true,
  },
};
