import { quoteName } from '../../../postgres/identifier.ts';
import { GUARD } from '../provision/tables.ts';
import type { Catalog, TriggerRow } from './catalog.ts';
import type { BoundaryFacts, Outlets } from './facts.ts';

/** The checks at COMMIT that everything else relies on, and how the server describes them. */
const GUARDS = [
  { table: 'stage', name: 'effectmatch_guard', calls: 'guard', when: undefined },
  { table: 'marker', name: 'effectmatch_settled', calls: 'settle', when: '(new.xid IS NOT NULL)' },
] as const;
const AFTER_ROW_INSERT = 1 + 4;

/** No transaction commits without its marker, or with a late write, only as long as both checks are in place. */
export function surveyGuards(catalog: Catalog, { owner }: BoundaryFacts, outlets: Outlets): void {
  for (const { table, name, calls, when } of GUARDS) {
    const relation = catalog.relations.find((row) => row.schema === 'effectmatch' && row.name === table);
    const found = catalog.triggers.find((row) => row.relation === relation?.oid && row.name === name);
    const isRight =
      found !== undefined &&
      found.functionSchema === 'effectmatch' &&
      found.functionName === calls &&
      found.type === AFTER_ROW_INSERT &&
      found.enabled === 'A' &&
      found.definition.includes(' DEFERRABLE INITIALLY DEFERRED ') &&
      conditionOf(found) === when;
    if (isRight) continue;
    outlets.open({
      outlet: `check ${name} on effectmatch.${table}`,
      object: `effectmatch.${table}`,
      why: found
        ? 'It is not as provisioning made it, or does not always fire'
        : 'It is missing, so a transaction could commit without its marker or with a late write',
      fix: GUARD,
      needs: `${quoteName(owner)} or a superuser`,
    });
  }
}

function conditionOf({ definition }: TriggerRow): string | undefined {
  return /\bWHEN \((.*)\) EXECUTE (?:FUNCTION|PROCEDURE)/s.exec(definition)?.[1];
}
