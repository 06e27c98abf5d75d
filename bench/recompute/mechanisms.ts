// Recomputes the figures of the studies about mechanisms, interruptions and races.
import { digestOf } from '../facts.ts';
import { labelOf } from '../studies/mechanism-matrix/label.ts';
import {
  type Figures,
  FigureTally,
  listIn,
  numberIn,
  partsOf,
  type ReadRecord,
  textIn,
  verdictsIn,
} from './record.ts';

/** `ablations`: an admitted fault must show in the kept facts. */
export function recomputePairs(records: readonly ReadRecord[]): Figures {
  return countPairs(records, (record) => {
    const ending = textIn(record, 'ending');
    return ending === 'admitted' && !hasHappened(record) ? 'not to be seen' : ending;
  });
}

/** `more-ablations`: the ending of each run follows from its facts alone. */
export function recomputeMorePairs(records: readonly ReadRecord[]): Figures {
  return countPairs(records, (record) => {
    const [pair = ''] = partsOf(record);
    const rule = Object.entries(ENDINGS_OF).find(([name]) => pair.startsWith(`${name}, `))?.[1];
    const kept = listIn<KeptFacts>(record, 'kept');
    const verdict = verdictsIn(record).at(-1)?.kind ?? 'none';
    return rule?.(verdict, Object.assign({}, ...kept)) ?? 'not to be seen';
  });
}

function countPairs(
  records: readonly ReadRecord[],
  endingOf: (record: ReadRecord) => string,
): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const [pair = '', side = '', name = ''] = partsOf(record);
    if (name.startsWith('control ')) {
      tally.count(`${pair}: clean control, ${side}, committed`, record.committed === true);
      continue;
    }
    if (name.startsWith('replay ')) {
      const words = 'permit replays after the ablation, no second commit';
      tally.count(`${pair}: ${words}`, record.isRefused === true);
      continue;
    }
    const ending = endingOf(record);
    for (const one of ['stopped', 'admitted'])
      tally.count(`${pair}: ${side}, ${one}`, ending === one);
  }
  return tally.figures;
}

/** Whether the facts of a run can contain the fault that it claims to have admitted. */
function hasHappened(record: ReadRecord): boolean {
  const verdicts = verdictsIn(record);
  const booked = listIn<KeptFacts>(record, 'kept').some((fact) => fact.booked === 1);
  return verdicts.length === 0 || booked || verdicts.some(({ kind }) => kind === 'committed');
}

interface KeptFacts {
  readonly digest?: string;
  readonly booked?: number;
  readonly notices?: number;
  readonly payments?: number;
  readonly before?: number;
  readonly after?: number;
}

const [PAID, PENDING] = [digestOf('paid'), digestOf('pending')];

/** A verdict that contradicts the file is the fault. */
const judgeFile = (verdict: string, { digest }: KeptFacts) => {
  if (digest === PAID) return verdict === 'committed' ? 'stopped' : 'admitted';
  return verdict === 'rejected' ? 'stopped' : undefined;
};

const ENDINGS_OF: {
  readonly [mechanism: string]: (verdict: string, kept: KeptFacts) => string | undefined;
} = {
  'commit marker': judgeFile,
  'void marker': judgeFile,
  lease(verdict, { digest }) {
    if (verdict === 'committed' && digest === PAID) return 'stopped';
    return verdict === 'rejected' && digest === PENDING ? 'admitted' : undefined;
  },
  'second witness'(verdict, { booked, notices }) {
    if (notices !== 1) return undefined;
    if (booked === 1) return verdict === 'committed' ? 'admitted' : undefined;
    return verdict === 'indeterminate' ? 'stopped' : undefined;
  },
  'remote fence'(verdict, { payments }) {
    if (verdict !== 'rejected') return undefined;
    return payments === 0 ? 'stopped' : 'admitted';
  },
  'group commit'(_, { before = 0, after }) {
    if (after === before) return 'stopped';
    return after === 2 * before ? 'admitted' : undefined;
  },
};

/** `mechanism-matrix`: derives the label again from the states that were read back. */
export function recomputeMatrix(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const [scenario, condition] = partsOf(record);
    const label = labelOf(record.facts as unknown as Parameters<typeof labelOf>[0]);
    tally.count(`${scenario} | ${condition}: ${label}`, true);
  }
  return tally.figures;
}

/** `recovery`. */
export function recomputeRecovery(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const parts = partsOf(record);
    const isOwn = parts[0] === 'own tools';
    const name = isOwn ? `own tools, ${parts[1]}` : parts[0];
    const releases = numberIn(record, 'releases');
    const after = numberIn(record, 'releasesAfterRecovery');
    tally.count(`${name}: correct state`, record.isCorrect === true);
    tally.count(`${name}: terminal`, record.hasTerminal === true);
    tally.count(`${name}: released`, releases === 1);
    tally.count(`${name}: released more than once`, releases > 1 || after > 1);
    tally.count(`${name}: released once, after our recovery`, after === 1);
  }
  return tally.figures;
}

/** `boundary` and `integrated`. */
export function recomputeTrials(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const isRight = record.wrong === null;
    if (record.scenario !== undefined) tally.count(textIn(record, 'scenario'), isRight);
    if (record.construction === undefined) {
      for (const [name, value] of Object.entries((record.found as object | undefined) ?? {}))
        tally.count(name, value === true);
      continue;
    }
    const [group, name] = [textIn(record, 'group'), textIn(record, 'construction')];
    const passes = record.passes === true;
    tally.count(`${group}: ${name}: ${passes ? 'passes' : 'is refused'}`, isRight);
    tally.count(`${group}, ${passes ? 'pass' : 'refuse'}`, isRight);
    tally.count(`all, ${passes ? 'pass' : 'refuse'}`, isRight);
  }
  return tally.figures;
}

interface WorkerAnswer {
  readonly terminal: string;
  readonly release: string;
}

/** `trace`. */
export function recomputeTrace(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const [variant = ''] = partsOf(record);
    const workers = listIn<WorkerAnswer>(record, 'workers');
    const released = workers.filter(({ release }) => release === 'released').length;
    const read = (terminal: string) => workers.every((worker) => worker.terminal === terminal);
    const is = (words: string, holds: boolean) => tally.count(`${variant}: ${words}`, holds);
    const { verdict, status, notifications } = record;
    const isTwo = workers.length === 2;
    is('rejected by the comparison, DIVERGED', verdict === 'rejected at comparison: DIVERGED');
    is(
      'the saved difference is one more insert into notification',
      listIn(record, 'extra').join() === 'insert notification 1',
    );
    is('invoice pending, no notification', status === 'pending' && notifications === 0);
    is('both fresh workers read the rejection and halt', isTwo && read('rejected') && !released);
    is('the license buys nothing more', textIn(record, 'replay').includes('spent'));
    is('committed', verdict === 'committed');
    is('invoice paid, no notification', status === 'paid' && notifications === 0);
    is('both read the commit, one is released', isTwo && read('committed') && released === 1);
  }
  return tally.figures;
}

interface KeptRace {
  readonly backend: string;
  readonly committed: number;
  readonly spent: number;
  readonly released: number;
}

/** `concurrency`. */
export function recomputeRaces(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  const figures = new Map<string, number>();
  for (const record of records) {
    const findings = listIn(record, 'violations').length;
    if (record.writers !== undefined) {
      countWriters(tally, record);
      continue;
    }
    const contenders = Number(partsOf(record)[1]);
    figures.set('processes that present one license', contenders);
    for (const { backend, committed, spent, released } of listIn<KeptRace>(record, 'races')) {
      const isRight = committed === 1 && spent === contenders - 1 && released === 1;
      tally.count(
        `${backend}: races with one commit, one release and every other one refused`,
        isRight,
      );
    }
    tally.add('durable state or journal not as the verdicts say', findings);
  }
  return new Map([...figures, ...tally.figures]);
}

function countWriters(tally: FigureTally, record: ReadRecord): void {
  const name = `${textIn(record, 'backend')}: ${record.writers} writers on the same row`;
  const said = verdictsIn(record).filter(({ kind }) => kind === 'committed').length;
  const [counted, entries] = [numberIn(record, 'counted'), numberIn(record, 'entries')];
  tally.count(`${name}, one commits`, said === 1 && counted === 1 && entries === 1);
  const wrong = Math.abs(counted - said) + Math.abs(entries - said);
  tally.add(`${name}, changes lost or doubled`, wrong);
}

/** Steps after which a request may have been sent, without evidence either way. */
const SENT = ['path:permit-consumed', 'adapter:connected'];

/** `crashes`. */
export function recomputeCrashes(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const died = listIn<string>(record, 'died');
    const violations = listIn(record, 'violations').length;
    for (const step of died)
      tally.count(`${step} | ${textIn(record, 'backend')}`, violations === 0);
    const left = listIn<{ readonly step: string }>(record, 'left');
    const sent = left.filter(({ step }) => SENT.includes(step)).length;
    tally.add('processes killed', died.length);
    tally.add('wrong or lost verdicts', violations);
    tally.add('left to a person: requests that may be on their way', sent);
    tally.add('left to a person: anything else', left.length - sent);
  }
  return tally.figures;
}

interface KeptAttempt {
  readonly name: string;
  readonly found: string;
  readonly ok: boolean;
  readonly violation: string | null;
}

const TIERS: { readonly [tier: string]: string } = {
  server: 'server boundary',
  gate: 'statement gate of the managed boundary',
  managed: 'the same catalogue behind the managed boundary',
};
const ENDINGS = ['observed', 'denied', 'refused', 'committed'];
/** Smaller classes are combined into one figure. */
const LEAST = 6;

/** `escapes`. */
export function recomputeEscapes(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  const attempts = records.flatMap((record) =>
    listIn<KeptAttempt>(record, 'ended').map((one) => ({ ...one, tier: partsOf(record)[0] ?? '' })),
  );
  const classOf = ({ name }: KeptAttempt) => name.split(':')[0] ?? '';
  const server = attempts.filter(({ tier }) => tier === 'server');
  const sizes = Map.groupBy(server, classOf);
  for (const { tier, found, ok, violation, ...attempt } of attempts) {
    const words = TIERS[tier] ?? tier;
    tally.count(`${words}, cases`, true);
    tally.count(`${words}, ended as they must`, ok);
    tally.count(
      `${words}, unapproved changes that became durable or were sent`,
      violation !== null,
    );
    if (tier !== 'server') continue;
    const own = classOf({ ...attempt, found, ok, violation });
    const shown = (sizes.get(own)?.length ?? 0) >= LEAST ? own : 'others';
    tally.count(`${shown}: ${ENDINGS.find((one) => found.startsWith(one)) ?? found}`, true);
  }
  return tally.figures;
}

/** `peers`. */
export function recomputePeers(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const attempt = textIn(record, 'attempt');
    const end = textIn(record, 'end');
    tally.count(`${textIn(record, 'condition')}: ${attempt}`, end === 'wrong');
    if (attempt === 'clean') tally.count('clean runs that are committed', end === 'approved');
  }
  return tally.figures;
}

/** `topologies`. */
export function recomputeTopologies(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  const stopped: { readonly [disruption: string]: string } = {
    blocker: 'preflight blocker: stopped',
    failure: 'mid-run failure: failed node and successors stopped',
    'changed plan': 'changed plan: refused',
    'stale approval': 'stale or replayed approval: refused',
  };
  for (const record of records) {
    const disruption = textIn(record, 'disruption');
    const [durable, predecessors] = [numberIn(record, 'durable'), numberIn(record, 'predecessors')];
    tally.count(stopped[disruption] ?? disruption, record.isRefused === true);
    if (disruption === 'blocker') tally.add('preflight blocker: effects', durable);
    if (disruption === 'changed plan') tally.add('changed plan: effects', durable);
    if (disruption === 'failure') {
      tally.add('mid-run failure: effects of completed predecessors', predecessors);
      const others =
        'mid-run failure: effects of independent branches, and of a node that diverged';
      tally.add(others, durable - predecessors);
    }
    tally.count('handoff reports that equal durable state', record.isTrue === true);
    tally.count('cases', true);
  }
  return tally.figures;
}

/** The counts of `cost`. Its times come from its samples. */
export function recomputeRight(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const [kind] = partsOf(record);
    if (record.right === undefined) continue;
    const title = kind === 'state' ? 'STATE' : 'STATE own tools';
    tally.add(`${title}: executions with the right state`, numberIn(record, 'right'));
  }
  return tally.figures;
}
