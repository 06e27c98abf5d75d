// Recomputes the figures of the studies about mechanisms, interruptions and races.
import { labelOf } from '../studies/mechanism-matrix/label.ts';
import {
  type Figures,
  FigureTally,
  keptIn,
  listIn,
  numberIn,
  partsOf,
  type ReadRecord,
  statesIn,
  textIn,
  verdictsIn,
} from './record.ts';

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
    const readers = listIn<{ readonly reader?: { readonly terminal: string | null } }>(
      record,
      'kept',
    ).flatMap(({ reader }) => reader ?? []);
    const isSeen = readers.length > 0 && readers.every(({ terminal }) => terminal !== null);
    tally.count(`${name}: correct state`, statesIn(record).isApproved);
    tally.count(`${name}: terminal`, isSeen);
    tally.count(`${name}: released`, releases === 1);
    tally.count(`${name}: released more than once`, releases > 1 || after > 1);
    tally.count(`${name}: released once, after our recovery`, after === 1);
  }
  return tally.figures;
}

/** `integrated`: the rows are those that the scenario leaves, with as many commits as it names. */
export function recomputeScenarios(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const scenario = textIn(record, 'scenario');
    const commits = verdictsIn(record).filter(({ kind }) => kind === 'committed').length;
    const due = Number(/: (committed|no second commit)$/.test(scenario));
    const isRight = statesIn(record).isApproved && commits === due;
    tally.count(scenario, record.wrong === null && isRight);
  }
  return tally.figures;
}

/** `boundary`: verdict, rows and releases are those of a payment that passes or is refused. */
export function recomputeTrials(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    if (record.construction === undefined) {
      countServers(tally, record);
      continue;
    }
    const [group, name] = [textIn(record, 'group'), textIn(record, 'construction')];
    const passes = record.passes === true;
    const isRight = record.wrong === null && isAsSaid(record, passes);
    tally.count(`${group}: ${name}: ${passes ? 'passes' : 'is refused'}`, isRight);
    tally.count(`${group}, ${passes ? 'pass' : 'refuse'}`, isRight);
    tally.count(`all, ${passes ? 'pass' : 'refuse'}`, isRight);
  }
  return tally.figures;
}

/** Certificates of one configuration on two servers, and with one privilege more on one of them. */
function countServers(tally: FigureTally, { digests }: ReadRecord): void {
  const { first, other, again, granted } = digests as { readonly [place: string]: string };
  const isSame = first !== undefined && other === first && again === first;
  tally.count('two servers of one version, one configuration: same digests', isSame);
  tally.count('one privilege more on one of them: other digests', granted !== first);
}

/** One request for the release of dependent work, and how often the work then ran. */
interface KeptRelease {
  readonly answer?: string;
  readonly ran?: number;
}

/**
 * The work runs if and only if it is released, and once at most. Where a request must be refused,
 * the rightful one may come before or after it.
 */
function isReleasedAs(asked: readonly KeptRelease[], passes: boolean): boolean {
  const released = asked.filter(({ answer }) => answer === 'released').length;
  const isTrue = asked.every(({ answer, ran }) => ran === Number(answer === 'released'));
  return isTrue && (passes ? released === asked.length : released < asked.length) && released <= 1;
}

/** Whether the kept facts are those of a payment, or a release, that passes or is refused. */
function isAsSaid(record: ReadRecord, passes: boolean): boolean {
  const asked = listIn<KeptRelease>(record, 'kept').filter(({ answer }) => answer !== undefined);
  if (asked.length > 0) return isReleasedAs(asked, passes);
  const [first] = verdictsIn(record);
  const { isApproved, isInitial } = statesIn(record);
  return passes
    ? first?.kind === 'committed' && isApproved
    : first?.kind === 'rejected' && isInitial;
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
    const contradictions = listIn<KeptOperation>(record, 'kept').filter(isContradicted).length;
    const findings = listIn(record, 'violations').length + contradictions;
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
    const contradictions = listIn<KeptOperation>(record, 'kept').filter(isContradicted).length;
    const violations = listIn(record, 'violations').length + contradictions;
    for (const step of listIn<string>(record, 'planned')) {
      const isSound = died.includes(step) && violations === 0;
      tally.count(`${step} | ${textIn(record, 'backend')}`, isSound);
    }
    const left = listIn<{ readonly step: string }>(record, 'left');
    const sent = left.filter(({ step }) => SENT.includes(step)).length;
    tally.add('processes killed', died.length);
    tally.add('wrong or lost verdicts', violations);
    tally.add('left to a person: requests that may be on their way', sent);
    tally.add('left to a person: anything else', left.length - sent);
  }
  return tally.figures;
}

/** What the files or the service say about one operation when a round is over. */
interface KeptOperation {
  readonly claims?: number;
  readonly verdicts?: readonly string[];
  readonly marker?: string | null;
  readonly released?: number;
  readonly verdict?: string;
  readonly arrivals?: number;
  readonly payments?: number;
}

/** Whether a verdict says something else than marker, releases or payments do. */
function isContradicted(one: KeptOperation): boolean {
  const { verdicts, marker, claims = 0, released = 0, arrivals = 0, payments = 0 } = one;
  if (verdicts !== undefined) {
    const commits = verdicts.filter((kind) => kind === 'committed').length;
    const isMarked = marker === 'committed';
    return claims > 1 || commits !== Number(isMarked) || released > commits;
  }
  if (one.verdict === undefined) return false;
  if (one.verdict === 'committed') return arrivals !== 1 || payments !== 1;
  return payments > arrivals || (one.verdict === 'rejected' && payments > 0);
}

/** `peers`. */
export function recomputePeers(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const attempt = textIn(record, 'attempt');
    const { isApproved, isInitial } = statesIn(record);
    tally.count(`${textIn(record, 'condition')}: ${attempt}`, !isApproved && !isInitial);
    if (attempt === 'clean') tally.count('clean runs that are committed', isApproved);
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
    const kept = keptIn<KeptCase>(record);
    const isRefused = record.isRefused === true && isStopped(disruption, kept);
    tally.count(stopped[disruption] ?? disruption, isRefused);
    if (disruption === 'blocker') tally.add('preflight blocker: effects', durable);
    if (disruption === 'changed plan') tally.add('changed plan: effects', durable);
    if (disruption === 'failure') {
      tally.add('mid-run failure: effects of completed predecessors', predecessors);
      const others =
        'mid-run failure: effects of independent branches, and of a node that diverged';
      tally.add(others, durable - predecessors);
    }
    const isTrue = kept.reported?.join() === kept.tags?.join();
    tally.count('handoff reports that equal durable state', isTrue);
    tally.count('cases', true);
  }
  return tally.figures;
}

/** What the workflow answered, and what independent code then read from the backends. */
interface KeptCase {
  readonly refused?: string;
  readonly failed?: string | null;
  readonly stopped?: readonly string[];
  readonly successors?: readonly string[];
  readonly tags?: readonly string[];
  readonly reported?: readonly string[];
  readonly tagsOfTheNextRun?: readonly string[];
}

/** Whether the kept answers are those of a case that was stopped. */
function isStopped(disruption: string, kept: KeptCase): boolean {
  if (disruption !== 'failure')
    return kept.refused !== undefined && (kept.tagsOfTheNextRun ?? []).length === 0;
  const isFailed = kept.failed === 'rejected' || kept.failed === 'diverged';
  return isFailed && kept.stopped?.join() === kept.successors?.join();
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
