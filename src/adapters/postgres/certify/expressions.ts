import { quoteName } from '../../../postgres/identifier.ts';
import { findUnseenAct } from './body.ts';
import type { Catalog, TriggerRow } from './catalog.ts';
import type { Outlets } from './facts.ts';
import { type Index, isLive, type Reach } from './reach.ts';

/**
 * Expressions with effects that are not observed: those of reached relations, and of every domain.
 */
export function surveyExpressions(
  catalog: Catalog,
  index: Index,
  reach: Reach,
  outlets: Outlets,
): void {
  const expressions = [
    ...catalog.columns.map((row) => ({
      relation: row.relation,
      what: `default of ${quoteName(row.name)}`,
      text: row.defaultText ?? '',
      close: (table: string) =>
        `ALTER TABLE ${table} ALTER COLUMN ${quoteName(row.name)} DROP DEFAULT`,
    })),
    ...catalog.constraints.map((row) => ({
      relation: row.relation,
      what: `constraint ${row.object}`,
      text: row.definition,
      close: (table: string) =>
        `ALTER ${row.domain === null ? `TABLE ${table}` : `DOMAIN ${row.domain}`} DROP CONSTRAINT ${row.object}`,
    })),
    ...catalog.types.map((row) => ({
      relation: 0,
      what: `default of domain ${row.name}`,
      text: row.defaultText ?? '',
      close: () => `ALTER DOMAIN ${row.name} DROP DEFAULT`,
    })),
    ...catalog.triggers.filter(isLive).map((row) => ({
      relation: row.relation,
      what: `trigger ${row.object}`,
      text: conditionOf(row) ?? '',
      close: (table: string) => `DROP TRIGGER ${row.object} ON ${table}`,
    })),
    ...catalog.rules.map((row) => ({
      relation: row.relation,
      what: `rule ${row.object}`,
      text: row.definition,
      close: (table: string) =>
        row.event === '1' ? `DROP VIEW ${table}` : `DROP RULE ${row.object} ON ${table}`,
    })),
    ...catalog.policies.map((row) => ({
      relation: row.relation,
      what: `policy ${row.object}`,
      text: `${row.using ?? ''} ${row.checking ?? ''}`,
      close: (table: string) => `DROP POLICY ${row.object} ON ${table}`,
    })),
  ];
  for (const { relation, what, text, close } of expressions) {
    const row = index.relation.get(relation);
    const isReached = relation === 0 || (row !== undefined && reach.relations.has(row));
    const act = isReached ? findUnseenAct(text) : undefined;
    if (act === undefined) continue;
    outlets.open({
      outlet: row === undefined ? what : `${what} of ${row.object}`,
      object: row?.object ?? what,
      why: `It ${act}`,
      fix: [close(row?.object ?? '')],
      needs: `${row === undefined ? 'the owner of the domain' : quoteName(row.owner)} or a superuser`,
    });
  }
}

/** The condition of a trigger, which is evaluated with the rights of the writing role. */
export function conditionOf({ definition }: TriggerRow): string | undefined {
  return /\bWHEN \((.*)\) EXECUTE (?:FUNCTION|PROCEDURE)/s.exec(definition)?.[1];
}
