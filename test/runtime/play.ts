import assert from 'node:assert/strict';
import type { Step } from '../../src/contract/steps.ts';
import { insert, remove, row, update } from '../../src/protocol/draft.ts';
import type { ApprovedEffect } from '../../src/protocol/effect.ts';
import type { SignedLicense } from '../../src/protocol/license.ts';
import type { Terminal } from '../../src/protocol/terminal.ts';
import type { Row } from '../../src/protocol/value.ts';
import { referenceLedgers } from '../ledger/reference.ts';
import {
  type Fault,
  FaultStruck,
  type MemoryBackend,
  World,
  type WorldOptions,
  type Write,
} from '../world/world.ts';
import { type Deployed, deploy, LEASE_MS } from './deploy.ts';

/**
 * A change of one invoice, from which approval, action and expected state are derived
 * independently.
 */
export type Change =
  | { readonly op: 'insert' | 'update'; readonly id: number; readonly status: string }
  | { readonly op: 'delete'; readonly id: number };

/**
 * One approval, one action, and what goes wrong in the process that executes and in those that
 * recover.
 */
export interface Scenario {
  readonly adapter: 'books' | 'bank';
  readonly remote?: 'MEDIATED' | 'OPAQUE';
  readonly approved: readonly Change[];
  readonly written: readonly Change[];
  /**
   * One process each: the first executes, every other one recovers. A last one recovers without a
   * fault.
   */
  readonly faults: readonly Fault[];
  readonly ledgers?: WorldOptions['ledgers'];
}

/** Whether the fault of each process has struck, and how it all ended. */
export interface Played {
  readonly struck: readonly boolean[];
  readonly terminal: Terminal | undefined;
  readonly paid: boolean;
}

export const INITIAL: readonly Row[] = [1, 2, 3].map((id) => ({
  id,
  status: 'pending',
  amount: 10 * id,
}));

/**
 * Plays a scenario to its end and asserts after every process that no record contradicts what is
 * durable.
 */
export async function play(scenario: Scenario): Promise<Played> {
  const { adapter, remote = 'MEDIATED', faults, ledgers = referenceLedgers } = scenario;
  using world = new World({ ledgers, remote, rows: { invoice: INITIAL } });
  const stage = new Stage(world, scenario);
  const struck: boolean[] = [];
  const license = await stage.approve();
  for (const [index, fault] of [...faults, { kind: 'none' } as const].entries()) {
    const deployed = await deploy(world);
    world.arm(deployed.process, fault);
    if (index === 0) await stage.execute(deployed, license);
    else await stage.recover(deployed, index === faults.length);
    await stage.release(deployed);
    struck.push(deployed.process.struck);
    if (deployed.process.alive) {
      world.arm(deployed.process, { kind: 'none' });
      await stage.assertConsistent(deployed);
      await deployed.runtime.close();
    }
    world.advance(LEASE_MS);
  }
  return stage.end(license, struck, adapter);
}

/** What is known about one occurrence while processes come and go. */
class Stage {
  readonly #world: World;
  readonly #scenario: Scenario;
  readonly #backend: MemoryBackend;
  readonly #before: unknown;
  readonly #approved: unknown;
  #licensed: SignedLicense | undefined;
  #returned: Terminal | undefined;
  #ran = 0;

  constructor(world: World, scenario: Scenario) {
    this.#world = world;
    this.#scenario = scenario;
    this.#backend = scenario.adapter === 'books' ? world.books : world.bank.backend;
    this.#before = this.#durable();
    this.#approved = { invoice: changed(INITIAL, scenario.approved), audit: [] };
  }

  async approve(): Promise<SignedLicense> {
    const { adapter, approved } = this.#scenario;
    await using deployed = await deploy(this.#world);
    const requires = [row('vendor', { id: 1 }, { blocked: false })];
    this.#licensed = await deployed.approve({ adapter, effects: approved.map(effectOf), requires });
    return this.#licensed;
  }

  async execute(deployed: Deployed, license: SignedLicense): Promise<void> {
    const action = { writes: this.#scenario.written.map(writeOf) };
    this.#returned = await survive(() => deployed.runtime.execute(license, action));
  }

  async recover(deployed: Deployed, last: boolean): Promise<void> {
    const recovered = await survive(() => deployed.runtime.recover(last ? { now: true } : {}));
    for (const one of recovered ?? []) {
      if ('why' in one)
        assert.doesNotMatch(
          one.why,
          /invariant|TypeError|CONFLICT|unreachable/,
          'a bug, not a fault',
        );
      if (last && this.#scenario.adapter === 'books')
        assert.equal(one.kind, 'settled', JSON.stringify(one));
    }
  }

  async release(deployed: Deployed): Promise<void> {
    const [claim] = (await survive(() => deployed.runtime.ledgers.journal())) ?? [];
    if (claim?.kind !== 'claim') return;
    const { occurrence, license: lineage } = claim.record;
    await survive(() =>
      deployed.runtime.continuation({ occurrence, lineage }, 'reconcile').release(() => {
        this.#ran += 1;
        assert.deepEqual(
          this.#durable(),
          this.#approved,
          'released work implies the approved state',
        );
      }),
    );
    assert.ok(this.#ran <= 1, 'no continuation is released twice');
  }

  /** The heart: whatever has happened so far, what is recorded fits what is durable. */
  async assertConsistent(deployed: Deployed): Promise<void> {
    const { ledgers } = deployed.runtime;
    assert.equal((await ledgers.verify()).kind, 'intact');
    const claim = (await ledgers.journal()).find(({ kind }) => kind === 'claim');
    const durable = this.#durable();
    if (claim === undefined)
      return assert.deepEqual(durable, this.#before, 'nothing happens without a claim');
    const { occurrence, execution } = claim.record as {
      occurrence: Terminal['occurrence'];
      execution: string;
    };
    const terminal = await ledgers.terminal(occurrence);
    const marker = this.#world.books.markers.get(occurrence);
    if (this.#scenario.adapter === 'books') {
      const expected = marker?.disposition === 'committed' ? this.#approved : this.#before;
      assert.deepEqual(
        durable,
        expected,
        'state and marker are durable together, and only ever the approved state',
      );
    }
    if (this.#returned?.execution === execution && this.#returned.kind !== 'indeterminate') {
      assert.deepEqual(terminal, this.#returned, 'a verdict that was returned never changes');
    }
    this.#assertTerminal(terminal, marker?.disposition);
  }

  #assertTerminal(terminal: Terminal | undefined, marker: 'committed' | 'void' | undefined): void {
    const durable = this.#durable();
    const held = this.#scenario.adapter === 'books';
    switch (terminal?.kind) {
      case undefined:
      case 'indeterminate':
        return;
      case 'committed':
        assert.deepEqual(durable, this.#approved, 'committed implies the approved state');
        if (held) assert.equal(marker, 'committed', 'committed implies a committed marker');
        return;
      case 'rejected':
        this.#world.bank.deliver(); // not even what is still on its way
        assert.deepEqual(
          this.#durable(),
          this.#before,
          'rejected implies that nothing became durable',
        );
        assert.notEqual(marker, 'committed');
        return;
      case 'diverged':
        assert.ok(!held, 'a held candidate that differs is discarded');
        if (!this.#observerLies())
          assert.notDeepEqual(durable, this.#approved, 'diverged implies another state');
    }
  }

  /**
   * At the end, everything claimed on a backend with markers is conclusive, and a replay gets
   * nothing.
   */
  async end(license: SignedLicense, struck: readonly boolean[], adapter: string): Promise<Played> {
    await using deployed = await deploy(this.#world);
    const { ledgers } = deployed.runtime;
    const claim = (await ledgers.journal()).find(({ kind }) => kind === 'claim');
    const terminal = claim && (await ledgers.terminal(claim.record.occurrence));
    if (claim && adapter === 'books') {
      assert.ok(terminal && terminal.kind !== 'indeterminate', 'recovery is conclusive');
      assert.deepEqual(await ledgers.unsettled({ includeLeased: true }), []);
    }
    this.#assertUndisturbed(terminal, struck[0] === true);
    if (this.#ran > 0) assert.equal(terminal?.kind, 'committed');
    if (claim) {
      const before = this.#durable();
      const replay = await deployed.runtime.execute(license, {
        writes: this.#scenario.written.map(writeOf),
      });
      assert.equal(replay.kind, 'rejected', 'a replay gets nothing');
      assert.deepEqual(this.#durable(), before);
      assert.deepEqual(
        await ledgers.terminal(claim.record.occurrence),
        terminal,
        'and shadows nothing',
      );
    }
    return {
      struck,
      terminal,
      paid: JSON.stringify(this.#durable()) === JSON.stringify(this.#approved),
    };
  }

  /** What changed before the final gate was seen at it. */
  #assertUndisturbed(terminal: Terminal | undefined, struck: boolean): void {
    const [fault] = this.#scenario.faults;
    if (!struck || fault === undefined || !('at' in fault) || !SEEN_AT_GATE.includes(fault.at))
      return;
    // A boundary is certified after the claim, so that a change up to then belongs to it.
    if (fault.kind === 'schema' && fault.at === 'path:claimed') return;
    assert.notEqual(terminal?.kind, 'committed', `${fault.kind} changed at ${fault.at}`);
  }

  #observerLies(): boolean {
    return this.#scenario.faults.some((fault) => fault.kind === 'evidence');
  }

  #durable(): unknown {
    const { invoice, audit } = this.#backend.rows();
    return { invoice, audit };
  }
}

/** Steps in front of the final gate whose changes it must notice. */
const SEEN_AT_GATE: readonly Step[] = [
  'path:claimed',
  'path:certified',
  'adapter:stage-opened',
  'adapter:action-done',
  'path:staged',
  'path:observed',
  'path:permit-bound',
  'path:request-built',
];

/** Only the fault may be thrown, in whatever wrapping; anything else is a bug of ours. */
async function survive<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    for (let at: unknown = error; at !== undefined; at = inner(at))
      if (at instanceof FaultStruck) return undefined;
    throw error;
  }
}

function inner(error: unknown): unknown {
  if (error instanceof SuppressedError) return error.suppressed;
  return error instanceof Error ? error.cause : undefined;
}

/** The state that changes lead to: an oracle that shares nothing with the code under test. */
function changed(rows: readonly Row[], changes: readonly Change[]): readonly Row[] {
  const byId = new Map(rows.map((invoice) => [Number(invoice.id), invoice]));
  for (const change of changes) {
    if (change.op === 'delete') byId.delete(change.id);
    else
      byId.set(change.id, {
        id: change.id,
        status: change.status,
        amount: byId.get(change.id)?.amount ?? null,
      });
  }
  return [...byId]
    .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
    .map(([, invoice]) => invoice);
}

function effectOf(change: Change): ApprovedEffect {
  const { op, id } = change;
  if (op === 'delete') return remove('invoice', { id }, { status: 'pending', amount: 10 * id });
  const { status } = change;
  return op === 'insert'
    ? insert('invoice', { id, status })
    : update('invoice', { id }, { status: ['pending', status] });
}

function writeOf(change: Change): Write {
  const { op, id } = change;
  const target = 'invoice';
  if (op === 'delete') return { op, target, key: { id } };
  const { status } = change;
  return op === 'insert'
    ? { op, target, row: { id, status } }
    : { op, target, key: { id }, set: { status } };
}
