import { quoteName } from '../../../postgres/identifier.ts';
import type { Catalog, Grant, RelationRow } from './catalog.ts';
import type { BoundaryFacts, Outlets } from './facts.ts';
import type { Index } from './reach.ts';

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

/**
 * Every privilege that the execution login has, directly or as part of PUBLIC, against what was
 * registered.
 */
export function surveyPrivileges(
  catalog: Catalog,
  facts: BoundaryFacts,
  index: Index,
  outlets: Outlets,
): void {
  const relations = new Map(catalog.relations.map((row) => [row.object, row]));
  const sequences = ownedSequences(catalog, index);
  const counted = new Map<string, number>();
  for (const grant of catalog.grants) {
    if (grant.grantee !== '' && grant.grantee !== facts.executor) continue;
    const excuse = excuseFor(grant, { relations, index, sequences, catalog, facts });
    if (excuse === undefined) report(grant, facts, outlets);
    else if (excuse !== '') outlets.observed(`${describe(grant)}`, excuse);
    else counted.set(grant.kind, (counted.get(grant.kind) ?? 0) + 1);
  }
  for (const kind of [
    'DATABASE',
    'SCHEMA',
    'TABLE',
    'COLUMN',
    'SEQUENCE',
    'LANGUAGE',
    'PARAMETER',
    'FOREIGN SERVER',
    'FOREIGN DATA WRAPPER',
    'TABLESPACE',
  ]) {
    const isOpen = outlets.problems.some(({ outlet }) => outlet.includes(` ON ${kind} `));
    const harmless = counted.get(kind) ?? 0;
    if (!isOpen)
      outlets.denied(
        `other privileges on ${kind.toLowerCase()}s`,
        `none granted to ${quoteName(facts.executor)} or PUBLIC beyond reading and connecting (${harmless} such)`,
      );
  }
  outlets.denied(
    'other databases of the server',
    'a session cannot change its database, and code that opens connections is refused',
  );
}

interface Context {
  readonly relations: ReadonlyMap<string, RelationRow>;
  readonly index: Index;
  readonly sequences: ReadonlySet<string>;
  readonly catalog: Catalog;
  readonly facts: BoundaryFacts;
}

/**
 * Text of the observing mechanism, empty for rights that leave nothing, undefined for an open
 * outlet.
 */
function excuseFor(grant: Grant, context: Context): string | undefined {
  const { kind, object, privilege, grantable } = grant;
  if (grantable) return undefined;
  switch (kind) {
    case 'DATABASE':
      return privilege === 'CONNECT' ? '' : undefined;
    case 'SCHEMA':
      return privilege === 'USAGE' ? '' : undefined;
    case 'TABLE':
    case 'COLUMN': {
      const row = context.relations.get(
        kind === 'COLUMN' ? object.replace(/\([^()]*\)$|\(".*"\)$/, '') : object,
      );
      if (object === 'effectmatch.probe' && privilege === 'INSERT')
        return 'relation for admission probes, recorded like the others';
      if (row?.schema === 'effectmatch' || row?.kind === 'f') return undefined;
      if (privilege === 'SELECT') return '';
      const { registered, views } = context.index;
      return row && DML.has(privilege) && (registered.has(row.oid) || views.has(row.oid))
        ? ''
        : undefined;
    }
    case 'SEQUENCE':
      if (privilege === 'SELECT') return '';
      return privilege === 'USAGE' && context.sequences.has(object)
        ? 'its positions are read before and after; values it gave out are residue'
        : undefined;
    case 'FUNCTION':
      return '';
    case 'PARAMETER':
    case 'LANGUAGE':
    case 'FOREIGN DATA WRAPPER':
    case 'FOREIGN SERVER':
    case 'TABLESPACE':
      return undefined;
    default:
      return undefined;
  }
}

function describe({ kind, object, privilege }: Grant): string {
  return `${privilege} ON ${kind} ${object}`;
}

function report(grant: Grant, facts: BoundaryFacts, outlets: Outlets): void {
  const { kind, object, privilege, grantee, grantor, owner, grantable } = grant;
  const who = grantee === '' ? 'PUBLIC' : quoteName(grantee);
  const column = kind === 'COLUMN' ? /^(.*)(\((?:[^()]*|".*")\))$/s.exec(object) : null;
  const target = column
    ? `${privilege} ${column[2]} ON TABLE ${column[1]}`
    : `${privilege} ON ${kind} ${object}`;
  const revoke = `REVOKE ${target} FROM ${who}${grantable ? ' CASCADE' : ''}`;
  const isForeign = grantor !== owner && grantor !== '' && kind !== 'PARAMETER';
  outlets.open({
    outlet: describe(grant),
    object,
    why: `${quoteName(facts.executor)} ${grantable ? 'may hand on this right' : (WHY[privilege] ?? 'may write it, and it is not registered')} (granted to ${who} by ${quoteName(grantor)})`,
    fix: isForeign ? [`SET ROLE ${quoteName(grantor)}`, revoke, 'RESET ROLE'] : [revoke],
    needs: `${quoteName(owner)} or a superuser`,
  });
}

/** Sequences that a registered column draws its default from. */
function ownedSequences(catalog: Catalog, index: Index): ReadonlySet<string> {
  const texts = catalog.columns
    .filter(
      (column) => index.registered.has(column.relation) && column.defaultText?.includes('nextval('),
    )
    .map((column) => column.defaultText ?? '');
  const sequences = catalog.relations.filter(({ kind }) => kind === 'S');
  return new Set(
    sequences
      .filter(({ object }) =>
        texts.some((text) => text.includes(`'${object.replaceAll("'", "''")}'::regclass`)),
      )
      .map(({ object }) => object),
  );
}
