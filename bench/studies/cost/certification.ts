import type pg from 'pg';
import type { AdapterFactory, PromotableAdapter } from '../../../src/contract/adapter.ts';
import type { Samples } from '../../statistics.ts';
import { atMost, type Cell, figure, type Measured } from '../../study.ts';
import { FLOORS, openFloor, openFloorSessions } from '../pg-cost/floor.ts';
import { connect, openHeld, type Path } from '../pg-cost/paths.ts';
import { openSite, startBenchServer } from '../pg-cost/site.ts';
import { PAPER_CERTIFICATION } from './paper.ts';

const RELATIONS = 12;
const ROWS = 2000;
/** A write by another application to a registered table that the operation does not touch. */
const WRITE = 'update other_1 set amount = amount + 1 where id = 1';

/** Times of pairs of executions, without and with certification, in milliseconds. */
export interface CertificationTimes {
  readonly off: readonly number[];
  readonly on: readonly number[];
  /** The same with as little as possible around two fresh surveys, written by hand. */
  readonly floor: readonly number[];
  /** The two surveys of each execution with certification. */
  readonly first: readonly number[];
  readonly final: readonly number[];
}

/** The same pairs while another client writes, and alone. */
export interface CertificationRuns {
  readonly amongWriters: CertificationTimes;
  readonly alone: CertificationTimes;
}

/**
 * Measures pairs of the same five-effect operation under a license, without and with fresh surveys,
 * and after each pair the floor with fresh surveys. Each time another client commits a write before
 * the operation and while its candidate is held, so that no survey can reuse an earlier one. The
 * time of these writes is not counted.
 */
export async function measureCertification(
  pairs: number,
  warmups: number,
): Promise<CertificationRuns> {
  await using server = await startBenchServer();
  await using site = await openSite(server, RELATIONS, ROWS);
  await using writers = await connect(site.plainUrl, 1);
  await using sessions = await openFloorSessions(site, 1);
  const [, , kind] = FLOORS;
  const numbers = { next: 1 };
  const measure = async (writer: pg.Client | undefined): Promise<CertificationTimes> => {
    const clock = new SurveyClock(writer);
    const adapt = (fresh: boolean) => ({ adapt: clock.around(fresh) });
    await using off = await openHeld(site, { certified: true, ...adapt(false) });
    await using on = await openHeld(site, { certified: true, ...adapt(true) });
    const disturb = (reading: string) => clock.disturb(reading);
    await using floor = await openFloor(site, { kind, ledger: 'SQLite', sessions, disturb });
    const times = { off: [], on: [], floor: [], first: [], final: [] } as {
      [name: string]: number[];
    };
    for (let pair = -warmups; pair < pairs; pair += 1) {
      // Alternate the order, because the second of a pair benefits from warm caches.
      const order = pair % 2 === 0 ? (['off', 'on'] as const) : (['on', 'off'] as const);
      for (const side of order) {
        const spent = await clock.time(side === 'on' ? on : off, numbers);
        if (pair < 0) continue;
        times[side]?.push(spent.ms);
        if (side === 'off') continue;
        times.first?.push(spent.surveys[0] ?? Number.NaN);
        times.final?.push(spent.surveys.at(-1) ?? Number.NaN);
      }
      const { ms } = await clock.time(floor, numbers);
      if (pair >= 0) times.floor?.push(ms);
    }
    return times as unknown as CertificationTimes;
  };
  const amongWriters = await measure(writers.client(0));
  return { amongWriters, alone: await measure(undefined) };
}

/** Times surveys, and makes another client commit before each of them. */
class SurveyClock {
  readonly #writer: pg.Client | undefined;
  #writing = 0;
  #surveys: number[] = [];

  constructor(writer: pg.Client | undefined) {
    this.#writer = writer;
  }

  /** Without `fresh`, every survey returns the one from opening the adapter. */
  around(fresh: boolean) {
    return <A>(factory: AdapterFactory<A>): AdapterFactory<A> => ({
      open: async (context) => {
        const adapter = await factory.open(context);
        const { survey, stage } = adapter as PromotableAdapter<A>;
        const opened = await survey.call(adapter);
        const surveyNow = async () => {
          const begun = performance.now();
          const found = await survey.call(adapter);
          this.#surveys.push(performance.now() - begun);
          return found;
        };
        const stageAndWrite: typeof stage = async (...given) => {
          const held = await stage.apply(adapter, given);
          await this.disturb('final');
          return held;
        };
        return Object.assign(adapter, {
          survey: fresh ? surveyNow : async () => opened,
          stage: stageAndWrite,
        });
      },
    });
  }

  /** Writes while the candidate is held. The write before an operation is made by {@link time}. */
  async disturb(reading: string): Promise<void> {
    if (reading !== 'final') return;
    const begun = performance.now();
    await this.#write();
    this.#writing += performance.now() - begun;
  }

  async #write(): Promise<void> {
    await this.#writer?.query(WRITE);
  }

  /** Times one operation on rows that no other operation changes. */
  async time(path: Path, numbers: { next: number }) {
    const id = numbers.next;
    numbers.next += 1;
    await path.approve([id]);
    await this.#write();
    this.#writing = 0;
    this.#surveys = [];
    const begun = performance.now();
    await path.run(id, 0);
    const ms = performance.now() - begun - this.#writing;
    return { ms, surveys: this.#surveys };
  }
}

/** The paper's figures and ours. Only the figure among writers is judged. */
export function certificationCells({ amongWriters, alone }: CertificationRuns): readonly Cell[] {
  const { off, on, floor, first, final } = amongWriters;
  const paper = PAPER_CERTIFICATION;
  const cell = (name: string, measured: Measured, published: number): Cell => ({
    ...figure(`PostgreSQL: ${name}`, measured, 'ms'),
    paper: published,
  });
  const middle = (of: readonly number[]): Samples => ({ statistic: 'median', of });
  const high = (of: readonly number[]): Samples => ({ statistic: 'p95', of });
  const pairs = { of: on, to: off };
  const others = { of: alone.on, to: alone.off };
  const ratio = atMost('PostgreSQL: on over off', { statistic: 'ratio', ...pairs }, 'x', 1.5);
  return [
    cell('certification off', middle(off), paper.off),
    cell('certification off, p95', high(off), paper.offP95),
    cell('certification on', middle(on), paper.on),
    cell('certification on, p95', high(on), paper.onP95),
    cell('paired increment, median', { statistic: 'increment', ...pairs }, paper.increment),
    cell('first survey, median', middle(first), paper.first),
    cell('final survey, median', middle(final), paper.final),
    { ...ratio, paper: paper.ratio },
    figure(`PostgreSQL: ${FLOORS[2]} over off`, { statistic: 'ratio', of: floor, to: off }, 'x'),
    figure('PostgreSQL: on over off, no other writer', { statistic: 'ratio', ...others }, 'x'),
    figure(
      'PostgreSQL: paired increment, no other writer',
      { statistic: 'increment', ...others },
      'ms',
    ),
  ];
}
