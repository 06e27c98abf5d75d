import { RUN_PROVISION } from '../../../backend/failure.ts';
import { quoteName } from '../../../postgres/identifier.ts';
import type { Outlet, Survey } from '../../../protocol/boundary.ts';
import type { BoundaryTier } from '../options.ts';
import type { PostgresRelation } from '../relation.ts';
import { TRUSTED_EXTENSIONS } from './builtins.ts';
import type { FunctionRow, RelationRow, SystemCatalog, TextReader } from './catalog.ts';
import type { CatalogIndex } from './catalog-index.ts';
import type { Reach } from './reach.ts';

/** A registered table, and how its writes are recorded. */
export interface RegisteredRelation extends PostgresRelation {
  /** Recorded per statement with transition tables instead of per row. */
  readonly bulk: boolean;
  readonly volatile: readonly string[];
}

/**
 * A function or procedure that agents may call. The object id identifies it; the name is for
 * display.
 */
interface EntryPoint {
  readonly oid: number;
  readonly name: string;
}

/**
 * A function whose text the certification cannot judge (dynamic SQL, another language) and that a
 * person has read. The digest is the one that the report prints, so a changed function needs a new
 * review.
 */
export interface Review {
  readonly function: string;
  readonly digest: string;
  readonly by: string;
}

/** What a survey starts from: the roles, what is registered, and what the deployment declares. */
export interface BoundaryFacts {
  readonly backend: string;
  /** What closes outlets. Default: the server's rights. */
  readonly tier?: BoundaryTier;
  /** The schemas that execution sessions search. Used with the managed boundary. */
  readonly path?: readonly string[];
  /** The login that runs agent SQL. */
  readonly executor: string;
  /** The role that owns schema `effectmatch`; no session logs in as it. */
  readonly owner: string;
  /** The trusted login that surveys. */
  readonly control: string;
  readonly relations: readonly RegisteredRelation[];
  /** Views that operations may write through. */
  readonly views?: readonly { readonly oid: number }[];
  readonly entryPoints: readonly EntryPoint[];
  /** Host and network restrictions that the database cannot see, in words; bound by digest. */
  readonly restrictions: readonly string[];
  readonly reviews?: readonly Review[];
  /**
   * Extensions and preloaded libraries with native code that the deployment vouches for, besides
   * the built-in list.
   */
  readonly trustedCode?: readonly string[];
}

/**
 * Whether an extension's code is known to only compute values, or the deployment vouches for it.
 * The owner of an extension may add functions to it, but no native ones, so a function with a text
 * is judged by its text.
 */
export function isVouchedFor(
  { extension, language }: { readonly extension: string | null; readonly language?: string },
  { trustedCode = [] }: Pick<BoundaryFacts, 'trustedCode'>,
): boolean {
  if (extension === null) return false;
  const isText = language === 'sql' || language === 'plpgsql';
  return trustedCode.includes(extension) || (TRUSTED_EXTENSIONS.has(extension) && !isText);
}

/** An open outlet with everything a database administrator needs to close it. */
export interface Problem {
  readonly outlet: string;
  /** The object as SQL would name it. */
  readonly object: string;
  /** Why the execution login can use it. */
  readonly why: string;
  /** A way to close the outlet and keep the object as it is, if there is one. */
  readonly keep?: string;
  /** Statements that close it, in order. After them, a survey no longer finds it. */
  readonly fix: readonly string[];
  /** Whose rights the statements need. */
  readonly needs: string;
  /**
   * What an operation must reach to use it, as {@link behind} writes it; absent if every operation
   * can.
   */
  readonly behind?: string | undefined;
}

/** Why an outlet is open and what to do: what provisioning makes, provisioning restores. */
export function describeProblem({ why, keep, fix, needs }: Problem): string {
  if (keep === RUN_PROVISION) return `${why}; ${keep}`;
  const first = keep === undefined ? '' : ` Keep it: ${keep}.`;
  return `${why}.${first} Close it (${needs}): ${fix.join('; ')}`;
}

/** Names what operations may reach: a relation, a function, or a role that lends rights. */
export const behind = {
  relation: (row: Pick<RelationRow, 'object'> | undefined) => row && `relation ${row.object}`,
  function: ({ object }: Pick<FunctionRow, 'object'>) => `function ${object}`,
  role: (name: string) => `role ${quoteName(name)}`,
};

/** Where a route is open: everything about a {@link Problem} but the route itself. */
type Place = Omit<Problem, 'outlet' | 'why' | 'fix'>;

/** An object as SQL names it, and its owner. */
interface OwnedObject {
  readonly object: string;
  readonly owner: string;
}

/** Places of open routes, by who can close them and what an operation must reach to use them. */
export const at = {
  owned: ({ object, owner }: OwnedObject) => ({
    object,
    needs: `${quoteName(owner)} or a superuser`,
  }),
  relation: (row: OwnedObject) => ({ ...at.owned(row), behind: behind.relation(row) }),
  function: (row: OwnedObject) => ({ ...at.owned(row), behind: behind.function(row) }),
  server: (object: string) => ({ object, needs: 'superuser' }),
};

/** A survey of a PostgreSQL database, with remedies for what it could not classify. */
export interface PostgresSurvey extends Survey {
  readonly problems: readonly Problem[];
  /**
   * Declared restrictions and reviews, shown in the report because the server cannot confirm them.
   */
  readonly declared: readonly string[];
  /**
   * Roles whose rights affect an execution, and all roles they are members of. The fingerprint
   * covers these.
   */
  readonly roles: readonly string[];
}

/** Collects outlets in the order in which the parts of a survey find them. */
export class Outlets {
  readonly listed: Outlet[] = [];
  readonly problems: Problem[] = [];
  readonly #tier: BoundaryTier;

  constructor(tier: BoundaryTier = 'server') {
    this.#tier = tier;
  }

  /** A route whose effects are part of the evidence. */
  observed(outlet: string, by: string): void {
    this.listed.push({ outlet, disposition: 'observed', by });
  }

  /**
   * A closed route. With the managed boundary, the entry also says what closes it: the server's
   * rights and configuration, unless `closer` says otherwise.
   */
  denied(outlet: string, by: string, closer: Closer = 'rights'): void {
    const named = this.#tier === 'managed' ? `${closer}: ${by}` : by;
    this.listed.push({ outlet, disposition: 'denied', by: named });
  }

  /**
   * An open route at a place ({@link at}), which prevents certification until the statements in
   * `fix` are applied. A finding with the same outlet, reason and scope is dropped.
   */
  open(place: Place, outlet: string, why: string, ...fix: readonly string[]): void {
    const scope = place.behind;
    const isKnown = this.problems.some(
      (known) => known.outlet === outlet && known.why === why && known.behind === scope,
    );
    if (isKnown) return;
    const problem = { ...place, outlet, why, fix };
    this.problems.push(problem);
    const by = describeProblem(problem);
    this.listed.push({
      outlet,
      disposition: 'unclassified',
      by,
      ...(scope !== undefined && { behind: scope }),
    });
  }
}

/**
 * What closes an outlet with the managed boundary: the server's rights and configuration, the gate
 * that reads statements and code, or the provider, whose configuration no login of ours can see.
 */
export type Closer = 'rights' | 'gate' | 'provider';

/** What every part of a survey works with. */
export interface SurveyContext {
  /** The trusted session, for questions that the catalogue does not answer. */
  readonly control: TextReader;
  readonly catalog: SystemCatalog;
  readonly facts: BoundaryFacts;
  readonly index: CatalogIndex;
  readonly reach: Reach;
  readonly outlets: Outlets;
  /** The parameter of the statements that list outlets, as JSON. */
  readonly given: string;
  /**
   * Names that rights leave open to every role, with the reason why application code must not use
   * them. Empty unless the boundary is managed.
   */
  readonly unclosed: ReadonlyMap<string, string>;
}
