import { defineRecord, digestSchema, occurrenceSchema } from './record.ts';
import { choice, closed, text } from './schema.ts';

/** One reachable route by which an execution could persist or send something. */
export interface Outlet {
  readonly outlet: string;
  readonly disposition: 'observed' | 'denied' | 'unclassified';
  /**
   * What observes or denies it; for an unclassified outlet why it is reachable and what would close
   * it.
   */
  readonly by: string;
  /**
   * Of an unclassified outlet: what an operation must reach before it gets there. Absent if every
   * operation gets there, or if that cannot be told.
   */
  readonly behind?: string;
}

/** What a survey found: the outlets and the three things a certificate binds by digest. */
export interface Survey {
  readonly backend: string;
  /** The credential or connection that runs the agent's operation. */
  readonly executor: string;
  readonly outlets: readonly Outlet[];
  /**
   * Fingerprints of live configuration, credential provisioning, and declared host and network
   * restrictions.
   */
  readonly configuration: string;
  readonly credentials: string;
  readonly enforcement: string;
  /**
   * What would close the outlets that are open, where the adapter knows. For people; not part of a
   * certificate.
   */
  readonly remedies?: readonly Remedy[];
  /**
   * Restrictions that the deployment declares and the backend cannot confirm; their digest is in
   * `enforcement`.
   */
  readonly declared?: readonly string[];
}

/** An open outlet with everything an administrator needs to close it. */
export interface Remedy {
  readonly outlet: string;
  /** The object as the backend names it. */
  readonly object: string;
  /** Why the execution gets there. */
  readonly why: string;
  /** What keeps the object as it is and still closes the outlet, if there is such a way. */
  readonly keep?: string;
  /** Statements that close it, in order; after them a survey no longer finds it. */
  readonly fix: readonly string[];
  /** Whose rights the statements need. */
  readonly needs: string;
}

/** A boundary whose every outlet is observed or denied, for one occurrence. */
export const certificateRecord = defineRecord(
  'certificate',
  1,
  64 * 1024,
  closed({
    version: choice(1),
    occurrence: occurrenceSchema,
    identity: digestSchema,
    backend: text(1, 256),
    executor: text(1, 256),
    outlets: digestSchema,
    configuration: digestSchema,
    credentials: digestSchema,
    enforcement: digestSchema,
  }),
);
/** What was certified about a backend: every outlet, and the configuration it was found in. */
export type CertificateRecord = ReturnType<typeof certificateRecord.parse>;

/** The outlets that prevent certification; empty means that the boundary can be certified. */
export function unclassified(survey: Survey): readonly Outlet[] {
  return survey.outlets.filter((outlet) => outlet.disposition === 'unclassified');
}

/**
 * The outlets as they are for one operation: an open one behind something that the operation does
 * not reach is denied to it. `reached` is everything that it can reach; undefined if that cannot be
 * told, and then every open outlet stays open.
 */
export function outletsFor(
  { outlets }: Pick<Survey, 'outlets'>,
  reached: ReadonlySet<string> | undefined,
): readonly Outlet[] {
  if (reached === undefined) return outlets;
  return outlets.map((outlet) => {
    const { behind, disposition } = outlet;
    if (disposition !== 'unclassified' || behind === undefined || reached.has(behind))
      return outlet;
    const by = `this operation does not reach ${behind}`;
    return { outlet: outlet.outlet, disposition: 'denied', by };
  });
}
