import type { Terminal } from '../../src/protocol/terminal.ts';

/**
 * One attempt to get something past the boundary, as data. `{exec}`, `{app}`, `{control}`,
 * `{owner}`, `{db}` are quoted names; `{scratch}` is a folder that the server can write, `{port}`
 * is where it listens, `{dbname}` the plain name of the database.
 */
export interface EscapeCase {
  readonly name: string;
  /** Only from this server version on; before it the case is reported as not applicable. */
  readonly since?: number;
  /** Only up to this server version. */
  readonly until?: number;
  /** SQL as superuser, before the runtime opens the database. */
  readonly setup?: string;
  /** SQL as superuser, after the approval was signed and before it is executed. */
  readonly approvedThen?: string;
  /** SQL as superuser, while the candidate is held. */
  readonly whileHeld?: string;
  /** SQL as superuser after the case, for what other databases of the server would see. */
  readonly cleanup?: string;
  /** Views that are registered for this case. */
  readonly views?: readonly string[];
  /** Entry points other than those of the file. */
  readonly entryPoints?: readonly string[];
  /** What the agent submits. */
  readonly action: unknown;
  /** Effects that were approved. */
  readonly approved: readonly unknown[];
  /**
   * Sequences whose position may go forward beside those of registered columns: the application
   * draws from them.
   */
  readonly residue?: readonly string[];
  readonly expectation: Expectation;
  /**
   * Behind the managed boundary the approved effects commit, and nothing else: what the case leaves
   * open cannot be named there.
   */
  readonly managedCommits?: boolean;
}

/**
 * `committed` is for clean controls. `observed`: the operation ran, and the comparison said
 * DIVERGED or INDETERMINATE. `denied`: the server answered with this SQLSTATE, or the action was
 * not admitted (`ERR_EM_ACTION_INVALID`). `refused`: nothing was staged (`boundary`, or a code for
 * a database that cannot be opened) or the final gate stopped it (`final-gate`, with the gate's
 * `reason`). `because` must be in the explanation: a case that ends for another reason does not
 * count.
 */
export type Expectation =
  | { readonly kind: 'committed' }
  | {
      readonly kind: 'observed';
      readonly code: 'DIVERGED' | 'INDETERMINATE';
      readonly because?: string;
    }
  | { readonly kind: 'denied'; readonly code: string; readonly because?: string }
  | { readonly kind: 'refused'; readonly code: string; readonly because: string };

/** A file of cases with the database they run on. */
export interface EscapeFile {
  /** The boundary that the cases aim at; the server's unless told. */
  readonly boundary?: 'server' | 'managed';
  readonly schema: string;
  readonly relations: readonly (string | { readonly name: string; readonly bulk?: boolean })[];
  readonly entryPoints: readonly string[];
  readonly cases: readonly EscapeCase[];
}

/** What `found` has to be for this case on a server of this major version. */
export function expectedEnding(
  { expectation, since = 0, until = Number.POSITIVE_INFINITY }: EscapeCase,
  major: number,
) {
  if (since > major || until < major) return NOT_APPLICABLE;
  return expectation.kind === 'committed' ? 'committed' : `${expectation.kind} ${expectation.code}`;
}

/** How a case really ended. */
export interface EscapeResult {
  readonly name: string;
  readonly expected: string;
  readonly found: string;
  readonly detail: string;
  readonly ok: boolean;
  /** Something unapproved is durable, or was sent. There must be none. */
  readonly violation?: string;
  /** What the runtime said; absent if it refused before there could be a verdict. */
  readonly terminal?: Terminal;
}

/** What `found` says of a case that its server is too old for. */
export const NOT_APPLICABLE = 'not applicable';
