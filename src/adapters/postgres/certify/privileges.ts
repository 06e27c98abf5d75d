import { quoteName } from '../../../postgres/identifier.ts';
import type { Grant, RelationRow, SystemCatalog } from './catalog.ts';
import { at, type BoundaryFacts, behind, type Outlets, type SurveyContext } from './facts.ts';

const DML: ReadonlySet<string> = new Set(['SELECT', 'INSERT', 'UPDATE', 'DELETE']);
const WHY: Readonly<Record<string, string>> = {
  CREATE: 'may create objects',
  TEMPORARY:
    'may create temporary tables, which hide behind the names of others; a database made from a template has this by default',
  TRUNCATE: 'may empty it without a row being recorded',
  REFERENCES: 'may tie other tables to it',
  TRIGGER: 'may attach code to it',
  MAINTAIN: 'may rewrite or lock it',
  USAGE: 'may use it',
};

const KINDS = [
  ...['DATABASE', 'SCHEMA', 'TABLE', 'COLUMN', 'SEQUENCE', 'LANGUAGE', 'PARAMETER'],
  ...['FOREIGN SERVER', 'FOREIGN DATA WRAPPER', 'TABLESPACE'],
];

/** Privileges that the execution login has, directly or as part of PUBLIC. */
export function grantedTo(catalog: SystemCatalog, executor: string): readonly Grant[] {
  return catalog.grants.filter(({ grantee }) => grantee === '' || grantee === executor);
}

/** Compares every privilege of the execution login with what is registered. */
export function surveyPrivileges(context: SurveyContext): void {
  const { catalog, facts, outlets } = context;
  const relations = new Map(catalog.relations.map((row) => [row.object, row]));
  const sequences = ownedSequences(context);
  const harmless: string[] = [];
  for (const grant of grantedTo(catalog, facts.executor)) {
    const by = grant.grantable ? undefined : judgeGrant(context, grant, relations, sequences);
    if (by === undefined && isGated(grant, facts)) {
      const why = 'PUBLIC has it; statements that would use it are not admitted';
      outlets.denied(describe(grant), `${why}, and what code does with it is counted`, 'gate');
    } else if (by === undefined) report(grant, facts, outlets, relationOf(grant, relations));
    else if (by === '') harmless.push(grant.kind);
    else outlets.observed(describe(grant), by);
  }
  for (const kind of KINDS) {
    if (outlets.problems.some(({ outlet }) => outlet.includes(` ON ${kind} `))) continue;
    const count = harmless.filter((known) => known === kind).length;
    outlets.denied(
      `other privileges on ${kind.toLowerCase()}s`,
      `none granted to ${quoteName(facts.executor)} or PUBLIC beyond reading and connecting (${count} such)`,
    );
  }
  outlets.denied(
    'other databases of the server',
    'a session cannot change its database, and code that opens connections is refused',
  );
}

/**
 * Rights of PUBLIC that the managed boundary leaves in place. It admits no statements that define
 * or lock things and no writes to unregistered tables, and the counters show if code does any of
 * this.
 */
function isGated({ grantee, kind, object }: Grant, { tier }: BoundaryFacts): boolean {
  if (tier !== 'managed' || grantee !== '') return false;
  return !kind.startsWith('FOREIGN') && !object.startsWith('effectmatch.');
}

/**
 * What observes the use of a privilege; empty if its use leaves nothing behind; undefined if it is
 * an open outlet.
 */
function judgeGrant(
  { index }: SurveyContext,
  { kind, object, privilege }: Grant,
  relations: ReadonlyMap<string, RelationRow>,
  sequences: ReadonlySet<string>,
): string | undefined {
  switch (kind) {
    case 'DATABASE':
      return privilege === 'CONNECT' ? '' : undefined;
    case 'SCHEMA':
      return privilege === 'USAGE' ? '' : undefined;
    case 'TABLE':
    case 'COLUMN': {
      const row = relationOf({ kind, object }, relations);
      if (object === 'effectmatch.probe' && privilege === 'INSERT')
        return 'relation for admission probes, recorded like the others';
      if (row?.schema === 'effectmatch' || row?.kind === 'f') return undefined;
      if (privilege === 'SELECT') return '';
      const isRegistered = row && (index.registered.has(row.oid) || index.views.has(row.oid));
      return isRegistered && DML.has(privilege) ? '' : undefined;
    }
    case 'SEQUENCE':
      if (privilege === 'SELECT') return '';
      return privilege === 'USAGE' && sequences.has(object)
        ? 'its positions are read before and after; values it gave out are residue'
        : undefined;
    case 'FUNCTION':
      return '';
    default:
      return undefined;
  }
}

/** The relation that a grant is on. */
function relationOf(
  { kind, object }: Pick<Grant, 'kind' | 'object'>,
  relations: ReadonlyMap<string, RelationRow>,
): RelationRow | undefined {
  if (kind === 'TABLE') return relations.get(object);
  if (kind !== 'COLUMN') return undefined;
  return relations.get(object.replace(/\([^()]*\)$|\(".*"\)$/, ''));
}

function describe({ kind, object, privilege }: Grant): string {
  return `${privilege} ON ${kind} ${object}`;
}

function report(
  grant: Grant,
  facts: BoundaryFacts,
  outlets: Outlets,
  relation: RelationRow | undefined,
): void {
  const { kind, object, privilege, grantee, grantor, owner, grantable } = grant;
  const role = grantee === '' ? 'PUBLIC' : quoteName(grantee);
  const column = kind === 'COLUMN' ? /^(.*)(\((?:[^()]*|".*")\))$/s.exec(object) : null;
  const target = column
    ? `${privilege} ${column[2]} ON TABLE ${column[1]}`
    : `${privilege} ON ${kind} ${object}`;
  const revoke = `REVOKE ${target} FROM ${role}${grantable ? ' CASCADE' : ''}`;
  const isForeign = grantor !== owner && grantor !== '' && kind !== 'PARAMETER';
  const danger = WHY[privilege] ?? 'may write it, and it is not registered';
  // A function of the server takes the table for this right as a value, so no text has to name it.
  const isNamed = privilege !== 'MAINTAIN' && relation?.schema !== 'effectmatch';
  const what = grantable ? 'may hand on this right' : danger;
  outlets.open(
    { ...at.owned({ object, owner }), behind: isNamed ? behind.relation(relation) : undefined },
    describe(grant),
    `${quoteName(facts.executor)} ${what} (granted to ${role} by ${quoteName(grantor)})`,
    ...(isForeign ? [`SET ROLE ${quoteName(grantor)}`, revoke, 'RESET ROLE'] : [revoke]),
  );
}

/** Sequences that a registered column draws its default from. */
function ownedSequences({ catalog, index }: SurveyContext): ReadonlySet<string> {
  const defaults = catalog.columns
    .filter(({ relation }) => index.registered.has(relation))
    .map(({ defaultText }) => defaultText ?? '')
    .filter((text) => text.includes('nextval('));
  const sequences = catalog.relations.filter(({ kind, object }) => {
    const literal = `'${object.replaceAll("'", "''")}'::regclass`;
    return kind === 'S' && defaults.some((text) => text.includes(literal));
  });
  return new Set(sequences.map(({ object }) => object));
}
