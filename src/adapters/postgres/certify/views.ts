import { quoteName } from '../../../postgres/identifier.ts';
import { tokenize } from './body.ts';
import type { Catalog, RelationRow } from './catalog.ts';
import type { BoundaryFacts, Outlets } from './facts.ts';
import { type Index, isLive } from './reach.ts';

const INSTEAD_OF = 64;
/** Bits of the events, as triggers have them and as views that can be written through have them. */
const EVENTS = {
  INSERT: { trigger: 4, write: 8 },
  UPDATE: { trigger: 16, write: 4 },
  DELETE: { trigger: 8, write: 16 },
} as const;
type Event = keyof typeof EVENTS;

/**
 * The registered views: every write through them must end in a registered table, or in a trigger,
 * whose function is judged like any other. A view lends its owner's right to the tables it names
 * and to nothing else: functions and triggers run with the rights of the execution login. So its
 * owner is not among those whose rights code runs with.
 */
export function surveyViews(
  catalog: Catalog,
  facts: BoundaryFacts,
  index: Index,
  outlets: Outlets,
): void {
  for (const oid of index.views) {
    const row = index.relation.get(oid);
    if (row === undefined) continue;
    const events = grantedEvents(catalog, facts, row);
    const strays = new Set(events.flatMap((event) => strayOf(catalog, index, row, event) ?? []));
    const outlet = `view ${row.object}`;
    if (events.length === 0)
      outlets.denied(outlet, 'registered, but the execution login may not write through it');
    else if (strays.size === 0)
      outlets.observed(
        outlet,
        `${events.join(', ')} through it end in registered tables, or in triggers judged below`,
      );
    for (const stray of strays) {
      outlets.open({
        outlet,
        object: row.object,
        why: `Writes through it go to ${stray}, which is not registered; name it in relations, or leave the view out`,
        fix: [
          `REVOKE INSERT, UPDATE, DELETE ON TABLE ${row.object} FROM PUBLIC, ${quoteName(facts.executor)}`,
        ],
        needs: `${quoteName(row.owner)} or a superuser`,
      });
    }
  }
}

function grantedEvents(
  catalog: Catalog,
  { executor }: BoundaryFacts,
  { object }: RelationRow,
): readonly Event[] {
  const held = catalog.grants.filter(
    (grant) =>
      (grant.grantee === '' || grant.grantee === executor) &&
      (grant.kind === 'TABLE' ? grant.object === object : grant.object.startsWith(`${object}(`)),
  );
  return (Object.keys(EVENTS) as Event[]).filter((event) =>
    held.some(({ privilege }) => privilege === event),
  );
}

/**
 * Where a write through the view goes that is recorded nowhere; undefined where there is no such
 * place.
 */
function strayOf(
  catalog: Catalog,
  index: Index,
  view: RelationRow,
  event: Event,
): string | undefined {
  if (index.registered.has(view.oid)) return undefined;
  if (view.kind !== 'v') return view.object;
  if (!(view.writes & EVENTS[event].write)) return undefined;
  const isTriggered = catalog.triggers.some(
    (trigger) =>
      trigger.relation === view.oid &&
      isLive(trigger) &&
      trigger.type & INSTEAD_OF &&
      trigger.type & EVENTS[event].trigger,
  );
  if (isTriggered) return undefined;
  const definition = catalog.rules.find(
    ({ relation, event: on }) => relation === view.oid && on === '1',
  )?.definition;
  const named = definition === undefined ? undefined : sourceOf(definition);
  if (named === undefined) return view.object;
  const source = catalog.relations.find(
    ({ schema, name }) => schema === named.schema && name === named.name,
  );
  if (source === undefined) return `${named.schema}.${named.name}`;
  return strayOf(catalog, index, source, event);
}

/**
 * The relation after FROM, as the server prints the query of a view that it can update by itself:
 * there is one, and every other FROM is in parentheses. Names are printed with their schema, those
 * of the server without.
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
