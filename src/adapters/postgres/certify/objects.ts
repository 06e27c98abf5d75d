import { quoteName } from '../../../postgres/identifier.ts';
import { describeUnseen } from './builtins.ts';
import type { CastRow } from './catalog.ts';
import { typesBeneath } from './catalog-index.ts';
import { isVouchedFor, type SurveyContext } from './facts.ts';

/** Large objects, and statements that agents may not run. */
export function surveyChannels({ catalog, facts, outlets }: SurveyContext): void {
  const { owned, writable } = catalog.largeObjects[0] ?? { owned: 0, writable: 0 };
  const mine = `${owned} owned and ${writable} writable by ${quoteName(facts.executor)}`;
  const isManaged = facts.tier === 'managed';
  const functions = isManaged
    ? 'no statement or code may name the writing functions'
    : 'none of the writing functions is executable';
  if (!outlets.problems.some(({ object }) => /^pg_catalog\.lo/.test(object)))
    outlets.denied('large objects', `${mine}; ${functions}`, 'gate');
  const notify = isManaged
    ? 'no statement or code may name pg_notify'
    : 'pg_notify is not executable';
  outlets.denied(
    'NOTIFY and LISTEN',
    `the statement is not admitted, ${notify}, and function bodies with them are refused`,
    'gate',
  );
  outlets.denied(
    'COPY, DO, LOCK, SET, DDL and transaction control by the agent',
    'the statement is not admitted; definitions changed by code show in the counters',
    'gate',
  );
}

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

/** Operators. The functions that they call are judged separately. */
export function surveyOperators({ catalog, outlets, unclosed }: SurveyContext): void {
  for (const { description, extension, builtin } of catalog.operators) {
    const observed = 'its function is judged above; our own statements name operators by schema';
    const danger = describeUnseen(builtin ?? '') ?? unclosed.get(builtin ?? '');
    if (danger !== undefined)
      outlets.open(
        { object: description, needs: 'the owner of the operator, or a superuser' },
        description,
        `It is a sign for ${builtin}, which ${danger}: neither recorders nor counters see that`,
        `DROP ${description.replace('operator', 'OPERATOR')}`,
      );
    else if (extension === null) outlets.observed(description, observed);
  }
}
