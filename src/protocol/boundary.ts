import { defineRecord, digestSchema, occurrenceSchema } from './record.ts';
import { choice, closed, text } from './schema.ts';

/** One route through which an execution could persist or send something. */
export interface Outlet {
  readonly outlet: string;
  readonly disposition: 'observed' | 'denied' | 'unclassified';
  /**
   * What observes or denies the outlet. For an unclassified outlet: why it is reachable and how to
   * close it.
   */
  readonly by: string;
  /**
   * For an unclassified outlet: what an operation must reach first to get there. Absent if every
   * operation can get there, or if that is unknown.
   */
  readonly behind?: string;
}

/** What a survey found: the outlets and three fingerprints. A certificate has their digests. */
export interface Survey {
  readonly backend: string;
  /** The credential or connection that runs the agent's operation. */
  readonly executor: string;
  readonly outlets: readonly Outlet[];
  /**
   * Fingerprints of the live configuration, the provisioned credentials, and the declared host and
   * network restrictions.
   */
  readonly configuration: string;
  readonly credentials: string;
  readonly enforcement: string;
  /**
   * How to close the open outlets, if the adapter knows. Shown to people; not part of the
   * certificate.
   */
  readonly remedies?: readonly Remedy[];
  /**
   * Restrictions that the deployment declares and the backend cannot confirm. `enforcement` covers
   * their digest.
   */
  readonly declared?: readonly string[];
}

/** An open outlet with everything an administrator needs to close it. */
export interface Remedy {
  readonly outlet: string;
  /** The backend's name for the object. */
  readonly object: string;
  /** Why the execution can reach the object. */
  readonly why: string;
  /** How to close the outlet without changing the object, if possible. */
  readonly keep?: string;
  /** Statements that close the outlet, in order. After them, a survey no longer finds it. */
  readonly fix: readonly string[];
  /** The rights that the statements need. */
  readonly needs: string;
}

/** States that every outlet of a boundary is observed or denied, for one occurrence. */
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
/** What was certified about a backend: its outlets and its configuration at that time. */
export type CertificateRecord = ReturnType<typeof certificateRecord.parse>;

/** The outlets that prevent certification. If there are none, the boundary can be certified. */
export function unclassified(survey: Survey): readonly Outlet[] {
  return survey.outlets.filter((outlet) => outlet.disposition === 'unclassified');
}

/**
 * The outlets as they apply to one operation. An open outlet behind something that the operation
 * does not reach is denied. `reached` is everything the operation can reach. If it is undefined
 * (unknown), every open outlet stays open.
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
