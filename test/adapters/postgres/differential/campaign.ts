import assert from 'node:assert/strict';
import pg from 'pg';
import type { PostgresStatement } from '../../../../src/adapters/postgres/index.ts';
import type { Evidence, PromotableAdapter } from '../../../../src/contract/adapter.ts';
import { systemClock } from '../../../../src/contract/clock.ts';
import { establish, type Observation } from '../../../../src/protocol/observation.ts';
import { mintProofs } from '../../../../src/testing/proofs.ts';
import { protectedDatabase } from '../../../postgres/protected.ts';
import type { Version } from '../../../postgres/server.ts';
import { type Random, randomOf } from '../../../random.ts';
import {
  type Dump,
  dump,
  netEffects,
  type Positions,
  prepareOracle,
  readPositions,
  readWritten,
  surplus,
  textOf,
  unusedNumbers,
  type Written,
} from './oracle.ts';
import { randomRoutines, STRAY } from './routines.ts';
import { randomTables, type TableSpec } from './schema.ts';
import { randomStatement } from './statements.ts';

/** What a campaign did. `incomplete` counts by reason; all of these were allowed for. */
export interface Tally {
  schemas: number;
  operations: number;
  held: number;
  promoted: number;
  discarded: number;
  effects: number;
  records: number;
  undone: number;
  /**
   * Numbers drawn from sequences, and operations times sequences that left numbers without a row.
   */
  drawn: number;
  unused: number;
  readonly failed: Map<string, number>;
  readonly incomplete: Map<string, number>;
}

export function emptyTally(): Tally {
  const played = { schemas: 0, operations: 0, held: 0, promoted: 0, discarded: 0 };
  const numbers = { effects: 0, records: 0, undone: 0, drawn: 0, unused: 0 };
  return { ...played, ...numbers, failed: new Map(), incomplete: new Map() };
}

const OPS = ['insert', 'update', 'delete'] as const;
const PROMOTED_SHARE = 0.9;
const ROWS_MAX = 500;
const STAGE_TIMEOUT_MS = 10_000;

/**
 * Plays operations on one random schema and compares every observation with the dumps around it.
 */
export async function playSchema(
  label: string,
  operations: number,
  tally: Tally,
  version: Version = 17,
): Promise<void> {
  const from = randomOf(label);
  const { tables, ddl } = randomTables(from);
  const routines = randomRoutines(from, tables);
  const isolation = from.pick(['read committed', 'serializable'] as const);
  const relations = tables.map(({ target, bulk }) => ({ name: target, bulk }));
  const settings = {
    relations,
    isolation,
    entryPoints: routines.entryPoints,
    sessions: { max: 1 },
    stageTimeoutMs: STAGE_TIMEOUT_MS,
  };
  await using place = await protectedDatabase(`${ddl}\n${routines.ddl}`, settings, { version });
  const client = new pg.Client({ connectionString: place.db.url() });
  client.on('error', () => {});
  await client.connect();
  await prepareOracle(client);
  const adapter = await place
    .factory()
    .open({ name: 'differential', clock: systemClock, reached: () => {} });
  assert.equal(adapter.capability, 'PROMOTABLE');
  try {
    const { rows } = await client.query<{ oid: string }>(
      'select unnest($1::regclass[])::oid::text as oid',
      [[...tables.map(({ sql }) => sql), STRAY]],
    );
    const oids = new Map(
      [...tables.map(({ target }) => target), STRAY].map((name, at) => [name, rows[at]?.oid ?? '']),
    );
    const scene: Scene = {
      adapter,
      client,
      tables,
      oids,
      tally,
      entryPoints: routines.entryPoints.length,
      login: place.db.role('em_exec'),
    };
    let before = await dump(client, tables);
    for (let index = 0; index < operations; index += 1) {
      before = await playOperation(scene, `${label}/${index}`, before);
      // Triggers that feed each other make tables grow without end; what they do is known by then.
      if ([...before.values()].some((rows) => rows.length > ROWS_MAX)) break;
    }
    tally.schemas += 1;
  } finally {
    await adapter.close();
    await client.end();
  }
}

interface Scene {
  readonly adapter: PromotableAdapter;
  readonly client: pg.Client;
  readonly tables: readonly TableSpec[];
  readonly oids: ReadonlyMap<string, string>;
  readonly tally: Tally;
  readonly entryPoints: number;
  readonly login: string;
}

async function playOperation(scene: Scene, label: string, before: Dump): Promise<Dump> {
  const { adapter, client, tables, tally } = scene;
  const from = randomOf(label);
  const statements = Array.from({ length: 1 + from.below(4) }, () => randomAction(from, scene));
  const told = `${label}\n${statements.map((statement) => textOf(statement)).join('\n')}`;
  const writtenBefore = await readWritten(client, scene.login);
  const stood = await readPositions(client, tables);
  const proofs = mintProofs(adapter, label);
  const staged = await adapter.stage(
    proofs.claim,
    proofs.certificate,
    adapter.parseAction({ statements }),
  );
  tally.operations += 1;
  if (staged.kind === 'failed') {
    count(tally.failed, staged.reason);
    assert.ok(
      ['constraint', 'action-failed', 'timeout'].includes(staged.reason),
      `${staged.reason}: ${staged.detail}\n${told}`,
    );
    const after = await dump(client, tables);
    assert.deepEqual(
      netEffects(tables, before, after),
      [],
      `a failed operation left something\n${told}`,
    );
    return after;
  }
  tally.held += 1;
  const evidence = await staged.stage.observe();
  const observation = establish(evidence, adapter.registration, adapter.channels);
  const promotes = observation.kind === 'complete' && from.fraction() < PROMOTED_SHARE;
  if (promotes) {
    const promotion = await staged.stage.promote(proofs.permit(evidence));
    assert.equal(promotion.kind, 'confirmed', `${textOf(promotion)}\n${told}`);
    tally.promoted += 1;
  } else {
    await staged.stage.discard();
    tally.discarded += 1;
  }
  const written = differenceOf(writtenBefore, await readWritten(client, scene.login));
  const after = await dump(client, tables);
  const stand = await readPositions(client, tables);
  compareCounts(scene, { evidence, written, told });
  compareDrawn(scene, { evidence, stood, stand, told });
  if (observation.kind === 'incomplete')
    justifyGaps(scene, { evidence, written, told, gaps: observation.gaps });
  else compareProfiles(scene, { evidence, observation, told });
  const truth = netEffects(tables, before, after);
  if (!promotes) assert.deepEqual(truth, [], `a discarded operation left something\n${told}`);
  else {
    const unused = unusedNumbers(tables, stood, stand, truth);
    compareEffects(scene, { evidence, observation, before, after, truth, unused, told });
  }
  return after;
}

function randomAction(from: Random, { tables, entryPoints }: Scene): PostgresStatement {
  if (from.fraction() < 0.25)
    return { call: `act${from.below(entryPoints)}`, values: [1 + from.below(2)] };
  return { sql: randomStatement(from, tables) };
}

function count(into: Map<string, number>, what: string): void {
  into.set(what, (into.get(what) ?? 0) + 1);
}

type Triple = readonly [number, number, number];

function differenceOf(before: Written, after: Written): Written {
  const none: Triple = [0, 0, 0];
  return new Map(
    [...after].map(([oid, now]) => {
      const was = before.get(oid) ?? none;
      return [oid, [now[0] - was[0], now[1] - was[1], now[2] - was[2]] as const];
    }),
  );
}

interface Seen {
  readonly evidence: Evidence;
  readonly told: string;
}

/**
 * The counters that the adapter read within the transaction are those that the server publishes
 * after it.
 */
function compareCounts(
  { tables, oids, tally }: Scene,
  { evidence, written, told }: Seen & { readonly written: Written },
): void {
  const report = evidence.channels.find(({ channel }) => channel === 'counters');
  assert.ok(report?.kind === 'gross', told);
  let gross = 0;
  for (const { target } of tables) {
    const counted: readonly number[] = OPS.map((op) =>
      report.counts
        .filter((entry) => entry.target === target && entry.op === op)
        .reduce((sum, entry) => sum + entry.count, 0),
    );
    gross += counted.reduce((sum, part) => sum + part, 0);
    assert.deepEqual(
      counted,
      written.get(oids.get(target) ?? ''),
      `counters of ${target}\n${told}`,
    );
  }
  if (gross > evidence.records.length) tally.undone += 1;
}

/** Nobody else draws here: what the session is said to have drawn is how far each sequence went. */
function compareDrawn(
  { tally }: Scene,
  { evidence, stood, stand, told }: Seen & { readonly stood: Positions; readonly stand: Positions },
): void {
  for (const [target, { sequence, at }] of stood) {
    const times = evidence.drawn?.find((drawn) => drawn.sequence === sequence)?.times ?? 0;
    assert.equal(times, Number(stand.get(target)?.at) - at, `numbers of ${sequence}\n${told}`);
    tally.drawn += times;
  }
}

/**
 * Only one thing may keep an observation from being complete, and the server's own statistics must
 * show it.
 */
function justifyGaps(
  { oids, tally }: Scene,
  { written, told, gaps }: Seen & { readonly written: Written; readonly gaps: readonly string[] },
): void {
  const total = (target: string) =>
    (written.get(oids.get(target) ?? '') ?? []).reduce((sum, part) => sum + part, 0);
  for (const gap of gaps) {
    if (gap.startsWith(`Channel "relations" saw "${STRAY}" touched`)) {
      assert.ok(total(STRAY) > 0, `${gap}\n${told}`);
      count(tally.incomplete, 'an unregistered table was written');
    } else {
      assert.fail(`a gap that nothing explains: ${gap}\n${told}`);
    }
  }
}

/** The other two profiles from the same evidence: as many writes as records, of the same kinds. */
function compareProfiles(
  { adapter, tables, tally }: Scene,
  { evidence, told }: Seen & { readonly observation: Observation },
): void {
  const targets = new Set(tables.map(({ target }) => target));
  tally.records += evidence.records.length;
  const kinds = (list: readonly { readonly op: string; readonly target: string }[]) =>
    list.map(({ op, target }) => `${op} ${target}`).sort();
  for (const profile of ['row-event', 'relation-write'] as const) {
    const seen = establish(evidence, { ...adapter.registration, profile }, adapter.channels);
    assert.ok(seen.kind === 'complete', told);
    const writes = seen.effects.filter(({ target }) => targets.has(target));
    assert.deepEqual(kinds(writes), kinds([...evidence.records]), `${profile}\n${told}`);
  }
}

interface Outcome extends Seen {
  readonly observation: Observation;
  readonly before: Dump;
  readonly after: Dump;
  readonly truth: readonly string[];
  readonly unused: readonly string[];
}

/**
 * E is the difference between the dumps with the numbers that no row has, and so is the sum of all
 * row events.
 */
function compareEffects(
  { tables, tally }: Scene,
  { evidence, observation, before, after, truth, unused, told }: Outcome,
): void {
  assert.ok(observation.kind === 'complete', told);
  assert.deepEqual(observation.effects.map(textOf).sort(), [...truth, ...unused].sort(), told);
  tally.effects += truth.length;
  tally.unused += unused.length;
  for (const { target } of tables) {
    const events = [...evidence.records].filter((record) => record.target === target);
    const images = (side: 'before' | 'after') =>
      events.flatMap((record) => (record[side] === null ? [] : [textOf(record[side])]));
    const rows = (state: Dump) => (state.get(target) ?? []).map(textOf);
    assert.deepEqual(
      surplus(images('before'), images('after')),
      surplus(rows(before), rows(after)),
      `row events of ${target}\n${told}`,
    );
  }
}
