import { quoteName } from '../../../postgres/identifier.ts';
import { tokenize } from './body.ts';
import type { RelationRow } from './catalog.ts';
import { isLive } from './expressions.ts';
import { at, type SurveyContext } from './facts.ts';

const INSTEAD_OF = 64;
/** Bits of each event in the type of a trigger and in the writes that a view supports. */
const EVENTS = {
  INSERT: { trigger: 4, write: 8 },
  UPDATE: { trigger: 16, write: 4 },
  DELETE: { trigger: 8, write: 16 },
} as const;
type Event = keyof typeof EVENTS;

/**
 * The registered views. Every write through one must end in a registered table, or in a trigger,
 * whose function is judged like any other. A view lends its owner's rights only on the tables it
 * names: functions and triggers run with the rights of the execution login. The owner is therefore
 * not one of the roles whose rights code runs with.
 */
export function surveyViews(context: SurveyContext): void {
  const { facts, index, outlets } = context;
  for (const oid of index.views) {
    const row = index.relation.get(oid);
    if (row === undefined) continue;
    const events = grantedEvents(context, row);
    const targets = new Set(events.flatMap((event) => unrecordedTarget(context, row, event) ?? []));
    const outlet = `view ${row.object}`;
    if (events.length === 0)
      outlets.denied(outlet, 'registered, but the execution login may not write through it');
    else if (targets.size === 0)
      outlets.observed(
        outlet,
        `${events.join(', ')} through it end in registered tables, or in triggers judged below`,
      );
    for (const target of targets) {
      outlets.open(
        at.relation(row),
        outlet,
        `Writes through it go to ${target}, which is not registered; name it in relations, or leave the view out`,
        `REVOKE INSERT, UPDATE, DELETE ON TABLE ${row.object} FROM PUBLIC, ${quoteName(facts.executor)}`,
      );
    }
  }
}

function grantedEvents(
  { catalog, facts }: SurveyContext,
  { object }: RelationRow,
): readonly Event[] {
  const held = catalog.grants.filter(
    (grant) =>
      ['', facts.executor].includes(grant.grantee) &&
      (grant.kind === 'TABLE' ? grant.object === object : grant.object.startsWith(`${object}(`)),
  );
  return (Object.keys(EVENTS) as Event[]).filter((event) =>
    held.some(({ privilege }) => privilege === event),
  );
}

/** The unrecorded relation that a write through the view goes to; undefined if there is none. */
function unrecordedTarget(
  context: SurveyContext,
  view: RelationRow,
  event: Event,
): string | undefined {
  const { catalog, index } = context;
  if (index.registered.has(view.oid)) return undefined;
  if (view.kind !== 'v') return view.object;
  if (!(view.writes & EVENTS[event].write)) return undefined;
  const isTriggered = index
    .triggersOf(view.oid)
    .filter(isLive)
    .some(({ type }) => type & INSTEAD_OF && type & EVENTS[event].trigger);
  if (isTriggered) return undefined;
  const query = index.rulesOf(view.oid).find((rule) => rule.event === '1');
  const named = query && sourceOf(query.definition);
  if (named === undefined) return view.object;
  const source = catalog.relations.find(
    ({ schema, name }) => schema === named.schema && name === named.name,
  );
  if (source === undefined) return `${named.schema}.${named.name}`;
  return unrecordedTarget(context, source, event);
}

/**
 * The relation after FROM, as the server prints the query of an automatically updatable view. There
 * is only one, and every other FROM is in parentheses. Names are printed with their schema, except
 * those of the server.
 */
function sourceOf(
  definition: string,
): { readonly schema: string; readonly name: string } | undefined {
  const tokens = tokenize(definition);
  let depth = 0;
  for (const [at, { kind, text }] of tokens.entries()) {
    if (kind === 'sign' && text === '(') depth += 1;
    if (kind === 'sign' && text === ')') depth -= 1;
    if (depth > 0 || kind !== 'word' || text !== 'from') continue;
    const first =
      tokens[at + 1]?.kind === 'word' && tokens[at + 1]?.text === 'only' ? at + 2 : at + 1;
    const [schema, dot, name] = tokens.slice(first, first + 3);
    if (schema === undefined || schema.kind === 'sign') return undefined;
    return dot?.text === '.' && name !== undefined
      ? { schema: schema.text, name: name.text }
      : { schema: 'pg_catalog', name: schema.text };
  }
  return undefined;
}
