// The approval of a live task, as effects: new cart lines get whatever ids the shop assigns, and
// the order of a cart's lines does not matter. Everything else is exact.
import { generated, insert, remove } from '../../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../../src/protocol/effect.ts';
import type { Json } from '../../data/patch.ts';
import type { Snapshot, StateRecord } from '../../data/state-bench.ts';
import { digestOf } from '../../facts.ts';
import { approvedEffects, KEY, type Schema } from '../public-outcomes/state-effects.ts';

const LINES = 'cart_items';
const CARTS = 'carts';
const REFERENCES = 'item_ids';

/** How the collections of a domain are registered with the runtime. */
export function collectionsOf(schema: Schema) {
  const entries = [...schema].map(([namespace, fields]) => {
    const common = { path: `/${namespace}`, key: KEY, map: true, fields };
    if (namespace === LINES) return [namespace, { ...common, generated: [KEY, 'cart_item_id'] }];
    if (namespace !== CARTS) return [namespace, common];
    return [namespace, { ...common, references: { [`/${REFERENCES}`]: {} } }];
  });
  return Object.fromEntries(entries);
}

/** The effects that lead from the initial state to the approved one. */
export function liveEffects(initial: Snapshot, target: Snapshot): readonly ApprovedEffect[] {
  if (initial[LINES] === undefined || target[LINES] === undefined)
    return approvedEffects(initial, target);
  const before = initial[LINES];
  const fresh = Object.keys(target[LINES]).filter((id) => before[id] === undefined);
  const isFresh = (id: Json) => typeof id === 'string' && fresh.includes(id);
  const known = Object.entries(target[LINES]).filter(([id]) => !fresh.includes(id));
  const without = (state: Snapshot): Snapshot => ({
    ...state,
    [CARTS]: emptyLists(state[CARTS] ?? {}),
  });
  const rest = { ...target, [LINES]: Object.fromEntries(known) };
  return [
    ...approvedEffects(without(initial), without(rest)),
    ...fresh.map((id) => insertLine(id, target[LINES]?.[id] ?? {})),
    ...Object.entries(target[CARTS] ?? {}).flatMap(([cart, { [REFERENCES]: after = [] }]) =>
      referenceEffects(cart, listOf(initial[CARTS]?.[cart]), after as readonly Json[], isFresh),
    ),
  ];
}

function emptyLists(carts: Snapshot[string]): Snapshot[string] {
  const entries = Object.entries(carts).map(([id, cart]) => [id, { ...cart, [REFERENCES]: [] }]);
  return Object.fromEntries(entries);
}

function listOf(cart: StateRecord | undefined): readonly Json[] {
  return (cart?.[REFERENCES] ?? []) as readonly Json[];
}

function insertLine(id: string, line: StateRecord): ApprovedEffect {
  const label = generated(id);
  return insert(LINES, { ...line, [KEY]: label, cart_item_id: label });
}

function referenceEffects(
  cart: string,
  before: readonly Json[],
  after: readonly Json[],
  isFresh: (id: Json) => boolean,
): readonly ApprovedEffect[] {
  const row = (value: Json) => ({ [`${CARTS}.${KEY}`]: cart, value });
  const gone = before.filter((id) => !after.includes(id));
  const come = after.filter((id) => !before.includes(id));
  const target = `${CARTS}/${REFERENCES}`;
  return [
    ...gone.map((id) => remove(target, null, row(id))),
    ...come.map((id) =>
      insert(target, isFresh(id) ? { ...row(id), value: generated(String(id)) } : row(id)),
    ),
  ];
}

/**
 * Whether two states mean the same business: new cart lines may have other ids if they map one to
 * one, and the order of a cart's lines does not matter.
 */
export function isSameBusiness(initial: Snapshot, state: Snapshot, target: Snapshot): boolean {
  return digestBusiness(initial, state) === digestBusiness(initial, target);
}

/** Equal for states that mean the same business. */
export function digestBusiness(initial: Snapshot, state: Snapshot): string {
  return digestOf(withoutIds(initial, state));
}

/** New lines stand in their cart as what they are, instead of by their id. */
function withoutIds(initial: Snapshot, state: Snapshot): unknown {
  const lines = state[LINES];
  const old = initial[LINES];
  if (lines === undefined || old === undefined) return state;
  const known = Object.entries(lines).filter(([id]) => old[id] !== undefined);
  const carts = Object.entries(state[CARTS] ?? {}).map(([id, cart]) => {
    const shown = listOf(cart).map((line) => describeLine(String(line), old, lines));
    return [id, { ...cart, [REFERENCES]: shown.sort() }];
  });
  const orphans = Object.keys(lines).filter(
    (id) =>
      old[id] === undefined &&
      !Object.values(state[CARTS] ?? {}).some((cart) => listOf(cart).includes(id)),
  );
  return {
    ...state,
    [LINES]: Object.fromEntries(known),
    [CARTS]: Object.fromEntries(carts),
    orphans: orphans.map((id) => describeLine(id, old, lines)).sort(),
  };
}

function describeLine(id: string, old: Snapshot[string], lines: Snapshot[string]): string {
  const line = lines[id];
  if (line === undefined || old[id] !== undefined) return id;
  const { cart_item_id: own, ...fields } = line;
  const entries = Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify({ fields: entries, isOwn: own === id });
}
