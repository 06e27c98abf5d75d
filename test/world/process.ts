import type {
  Adapter,
  AdapterFactory,
  Dispatch,
  Evidence,
  Markers,
  Stage,
} from '../../src/contract/adapter.ts';
import type { Ledgers, LedgersFactory } from '../../src/contract/ledgers.ts';
import type { Reached, Step } from '../../src/contract/steps.ts';
import type { ChangeRecord } from '../../src/protocol/effect.ts';
import type { Call, Ending, Fault } from './faults.ts';
import { overlay, overlayStages, silence } from './overlay.ts';
import { type MemoryRemote, requestedWrites } from './remote.ts';

/** Thrown where the fault strikes. */
export class FaultStruck extends Error {
  override readonly name = 'FaultStruck';
}

/** What a process may do to the world around it when its fault strikes. */
export interface Surroundings {
  readonly remote: MemoryRemote;
  /** Lets a test decide who goes on next. */
  pause(call: string): Promise<void>;
  disturb(kind: 'state' | 'schema'): void;
  stepClock(byMs: number): void;
}

/**
 * One process of a deployment in memory. Everything it does to store and backend passes here: that
 * is where its fault strikes, and once it is dead nothing of it reaches anything any more, not even
 * its own cleaning up.
 */
export class MemoryProcess {
  readonly #surroundings: Surroundings;
  /** Steps reached and calls made since the fault was armed, in order. */
  readonly trace: string[] = [];
  readonly #opened: { close(): Promise<void> }[] = [];
  #alive = true;
  #fault: Fault = { kind: 'none' };
  #counts = new Map<string, number>();
  #struck = false;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Whether the fault has struck: a fault that cannot proves nothing. */
  get struck(): boolean {
    return this.#struck;
  }

  /** For a fault that strikes outside the process, in the logic of its backend. */
  noteStruck(): void {
    this.#struck = true;
  }

  arm(fault: Fault): void {
    this.#fault = fault;
    this.#struck = false;
    this.#counts.clear();
    this.trace.length = 0;
  }

  readonly reached: Reached = (step) => {
    this.#assertAlive();
    this.trace.push(step);
    const fault = this.#fault;
    if (fault.kind === 'step' && fault.step === step) this.#strike(fault.ending);
    if (!('at' in fault) || fault.at !== step || !this.#once(step)) return;
    if (fault.kind === 'clock') this.#surroundings.stepClock(fault.byMs);
    else this.#surroundings.disturb(fault.kind);
  };

  ledgers(factory: LedgersFactory): LedgersFactory {
    return {
      open: async (context) => {
        const ledgers = await factory.open(context);
        this.#opened.push(ledgers);
        return this.#watchLedgers(ledgers);
      },
    };
  }

  adapter<A>(factory: AdapterFactory<A>): AdapterFactory<A> {
    return {
      open: async (context) => {
        const adapter = await factory.open(context);
        this.#opened.push(adapter);
        return this.#watchAdapter(adapter);
      },
    };
  }

  #watchLedgers(ledgers: Ledgers): Ledgers {
    return new Proxy(ledgers, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...parameters: unknown[]) =>
          this.#call(`ledgers.${String(name)}`, () => value.apply(target, parameters));
      },
    });
  }

  #watchAdapter<A>(adapter: Adapter<A>): Adapter<A> {
    const common = {
      read: (reads) => this.#call('adapter.read', () => adapter.read(reads)),
      survey: () => this.#call('adapter.survey', () => adapter.survey()),
      close: async () => {
        if (this.#alive) await adapter.close();
      },
    } satisfies Partial<Adapter<A>>;
    if (adapter.capability !== 'PROMOTABLE') {
      return overlay(adapter, {
        ...common,
        dispatch: (permit, request) =>
          this.#call('adapter.dispatch', async () => {
            const fault = this.#fault;
            if (fault.kind !== 'network') return adapter.dispatch(permit, request);
            this.#struck = true;
            return this.#misroute(
              fault.how,
              () => adapter.dispatch(permit, request),
              () => {
                this.#surroundings.remote.post(
                  permit.record.occurrence,
                  requestedWrites(request.content),
                );
              },
            );
          }),
        readBack: (...asked) =>
          this.#call('adapter.readBack', async () =>
            this.#report(await adapter.readBack(...asked)),
          ),
      });
    }
    const staging = overlayStages(adapter, (stage) => this.#watchStage(stage));
    return overlay(adapter, {
      ...common,
      markers: this.#watchMarkers(adapter.markers),
      stage: (...asked) => this.#call('adapter.stage', () => staging.stage(...asked)),
    });
  }

  #watchStage(stage: Stage): Partial<Stage> {
    return {
      read: (reads) => this.#call('stage.read', () => stage.read(reads)),
      observe: () => this.#call('stage.observe', async () => this.#report(await stage.observe())),
      recheck: () => this.#call('stage.recheck', () => stage.recheck()),
      promote: (permit) =>
        this.#call('stage.promote', async () => {
          const fault = this.#fault;
          if (fault.kind !== 'reply') return stage.promote(permit);
          this.#struck = true;
          if (fault.committed) await stage.promote(permit);
          return { kind: 'unknown', cause: new FaultStruck('the reply was lost') };
        }),
      discard: () => this.#call('stage.discard', async () => (await stage.discard()) ?? undefined),
      [Symbol.asyncDispose]: async () => {
        if (this.#alive) await stage[Symbol.asyncDispose]();
      },
    };
  }

  #watchMarkers(markers: Markers): Markers {
    return overlay(markers, {
      find: (occurrence) => this.#call('markers.find', () => markers.find(occurrence)),
      void: (marker) => this.#call('markers.void', () => markers.void(marker)),
    });
  }

  async #call<T>(call: Call | string, work: () => Promise<T>): Promise<T> {
    await this.#surroundings.pause(call);
    this.#assertAlive();
    this.trace.push(call);
    const nth = (this.#counts.get(call) ?? 0) + 1;
    this.#counts.set(call, nth);
    const fault = this.#fault;
    const strikes = fault.kind === 'call' && fault.call === call && fault.nth === nth;
    if (strikes && fault.when === 'before') this.#strike(fault.ending);
    const result = await work();
    if (strikes && fault.when === 'after') this.#strike(fault.ending);
    return result;
  }

  async #misroute(
    how: string,
    send: () => Promise<Dispatch>,
    postpone: () => void,
  ): Promise<Dispatch> {
    if (how === 'not-sent') return { mayHaveSent: false, why: 'the connection was refused' };
    if (how === 'in-flight') postpone();
    if (how === 'lost-reply') await send();
    throw new FaultStruck(`the request had bad luck: ${how}`);
  }

  #report(evidence: Evidence): Evidence {
    const fault = this.#fault;
    if (fault.kind !== 'evidence' && fault.kind !== 'silence') return evidence;
    this.#struck = true;
    if (fault.kind === 'silence') return silence(evidence, fault.channel);
    const [first, ...rest] = evidence.records;
    if (first === undefined) return evidence;
    if (fault.how === 'drop') return { ...evidence, records: rest };
    if (fault.how === 'duplicate') return { ...evidence, records: [first, ...evidence.records] };
    return { ...evidence, records: [alterRecord(first), ...rest] };
  }

  #strike(ending: Ending): never {
    this.#struck = true;
    if (ending === 'die') {
      this.#alive = false;
      // What a process holds ends with it.
      for (const opened of this.#opened) void opened.close();
    }
    throw new FaultStruck(ending === 'die' ? 'the process died' : 'something was thrown');
  }

  #once(step: Step): boolean {
    if (this.#struck) return false;
    this.#struck = true;
    return this.trace.includes(step);
  }

  #assertAlive(): void {
    if (!this.#alive) throw new FaultStruck('the process is dead');
  }
}

/** The record with another value than the one that was written. */
function alterRecord(record: ChangeRecord): ChangeRecord {
  const side = record.after === null ? 'before' : 'after';
  const columns = Object.keys(record[side] ?? {}).filter(
    (column) => record.key?.[column] === undefined,
  );
  const altered = Object.fromEntries(columns.map((column) => [column, 'altered by the observer']));
  return { ...record, [side]: { ...record[side], ...altered } };
}
