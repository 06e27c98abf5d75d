import type { CastRow } from './catalog.ts';
import { typesBeneath } from './catalog-index.ts';
import { isVouchedFor, type SurveyContext } from './facts.ts';

/** Casts. One on the type of a registered column would decide what approvals and records say. */
export function surveyCasts(context: SurveyContext): void {
  const { catalog, facts, index, outlets, unclosed } = context;
  const open = ({ description, source, target }: CastRow, why: string) => {
    const object = `CAST (${source} AS ${target})`;
    const needs = 'the owner of either type, or a superuser';
    outlets.open({ object, needs }, description, why, `DROP ${object}`);
  };
  for (const cast of catalog.casts) {
    const danger = unclosed.get(cast.builtin ?? '');
    if (danger !== undefined) open(cast, `It calls ${cast.builtin}, which ${danger}`);
  }
  const columns = catalog.columns.filter(({ relation }) => index.registered.has(relation));
  const rowTypes = catalog.types.filter(({ relation }) => index.registered.has(relation));
  const oids = [...columns.map(({ typeOid }) => typeOid), ...rowTypes.map(({ oid }) => oid)];
  const types = typesBeneath(index, oids, ({ base, element }) => [base, element]);
  for (const cast of catalog.casts) {
    const called = index.function.get(cast.function);
    const isTrusted =
      isVouchedFor(cast, facts) && (called === undefined || isVouchedFor(called, facts));
    const touches = types.has(cast.sourceOid) || types.has(cast.targetOid);
    if (isTrusted || cast.function === 0 || !touches) continue;
    open(cast, 'It is application code that decides how values of a registered column read');
  }
}
