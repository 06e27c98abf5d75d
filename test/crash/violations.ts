import { isApproved, type OperationShape } from './backends/backend.ts';
import type { Facts, JournalLine } from './facts.ts';
import { type Installation, taskOf } from './installation.ts';

/** What is expected beyond what must hold in every installation. */
export interface Expectation {
  /**
   * `settled`: recovery has run, so every claim has its end. `unsettled`: a process is stopped in
   * the middle, and only contradictions count.
   */
  readonly stage: 'settled' | 'unsettled';
  /**
   * Operations for which release was tried in full after everything had settled, with nobody killed
   * in it.
   */
  readonly released?: readonly number[];
}

/**
 * Everything in an installation that must not be: a wrong or double effect, a lost or contradicted verdict,
 * an occurrence left for a person, work released wrongly or twice. Empty means that the installation is
 * sound.
 */
export function findViolations(
  installation: Installation,
  facts: Facts,
  expectation: Expectation,
): readonly string[] {
  const verdicts = installation.operations.map((operation) =>
    judgeOperation(operation, facts, expectation),
  );
  const committed = new Set(
    verdicts.filter((verdict) => verdict.committed).map((verdict) => verdict.n),
  );
  return [
    ...verdicts.flatMap((verdict) => verdict.wrong),
    ...(expectation.stage === 'settled' ? compareState(installation, facts, committed) : []),
    ...checkReleases(facts, committed, expectation.released ?? []),
    ...facts.journals.flatMap(checkOrder),
  ];
}

interface Judged {
  readonly n: number;
  readonly committed: boolean;
  readonly wrong: readonly string[];
}

/**
 * What all journals and the markers say about one operation. Verdicts count only from whoever held
 * the claim.
 */
function judgeOperation(operation: OperationShape, facts: Facts, { stage }: Expectation): Judged {
  const { n, kind } = operation;
  const wrong: string[] = [];
  const complain = (what: string) => wrong.push(`operation ${n} (${kind}): ${what}`);
  const commits: JournalLine[] = [];
  let claimed = 0;
  for (const journal of facts.journals) {
    const lines = journal.filter((line) => line.record.task === taskOf(operation));
    const claims = lines.filter((line) => line.kind === 'claim');
    const ends = lines.filter((line) => line.kind === 'terminal');
    claimed += claims.length;
    if (claims.length > 1) complain(`claimed ${claims.length} times in one ledger`);
    const holder = claims[0]?.record.execution;
    const held = ends.filter((line) => line.record.execution === holder);
    const conclusive = held.filter((line) => line.record.kind !== 'indeterminate');
    if (holder !== undefined && stage === 'settled' && conclusive.length === 0)
      complain('claimed, but without a verdict');
    if (conclusive.length > 1) complain(`${conclusive.length} verdicts for one attempt`);
    for (const end of ends) {
      const verdict = end.record.kind;
      if (verdict === 'diverged') complain('a promotable operation ended as diverged');
      if (verdict !== 'rejected' && end.record.execution !== holder)
        complain(`${verdict} without holding the claim`);
      if (verdict === 'committed' && end.record.execution === holder) commits.push(end);
    }
  }
  if (commits.length > 1) complain(`committed ${commits.length} times`);
  if (commits.length > 0 && !isApproved(kind))
    complain('committed, although its outcome is not the approved one');
  checkMarker(facts, { claimed, commits, task: taskOf(operation) }, stage, complain);
  return { n, committed: commits.length > 0, wrong };
}

/** The marker is what decides: it must say the same as the verdict, about the same execution. */
function checkMarker(
  facts: Facts,
  told: {
    readonly claimed: number;
    readonly commits: readonly JournalLine[];
    readonly task: string;
  },
  stage: Expectation['stage'],
  complain: (what: string) => void,
): void {
  const occurrences = facts.journals.flat().filter((line) => line.record.task === told.task);
  const marker = facts.markers.find((candidate) =>
    occurrences.some((line) => line.occurrence === candidate.occurrence),
  );
  const commit = told.commits[0];
  if (commit !== undefined && marker?.disposition !== 'committed')
    complain('committed, but the marker does not say so');
  if (
    commit !== undefined &&
    marker !== undefined &&
    marker.execution !== commit.record.execution
  ) {
    complain('committed by another execution than the marker names');
  }
  if (commit === undefined && marker?.disposition === 'committed' && stage === 'settled') {
    complain('its marker says committed, but no journal does');
  }
  // A server that crashes may lose a claim; its execution then voids the marker and is rejected.
  const isEnded = occurrences.some(
    ({ record }) => record.kind === 'rejected' && record.execution === marker?.execution,
  );
  const isLost = marker?.disposition === 'void' && isEnded;
  if (told.claimed === 0 && marker !== undefined && !isLost)
    complain('it has a marker, but nobody claimed it');
}

/**
 * The whole durable state against the initial one plus exactly the committed operations, row by
 * row.
 */
function compareState(
  installation: Installation,
  facts: Facts,
  committed: ReadonlySet<number>,
): readonly string[] {
  const expected = tally(installation.backend.expectState(installation.operations, committed));
  const found = tally(facts.state);
  const lines = new Set([...expected.keys(), ...found.keys()]);
  const wrong = [...lines].flatMap((line) => {
    const wanted = expected.get(line) ?? 0;
    const seen = found.get(line) ?? 0;
    return wanted === seen
      ? []
      : [`durable state: "${line}" is there ${seen} times instead of ${wanted}`];
  });
  const more = wrong.length - LINES_SHOWN;
  return more <= 0
    ? wrong
    : [...wrong.slice(0, LINES_SHOWN), `durable state: ${more} more lines differ`];
}

const LINES_SHOWN = 8;

function tally(lines: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

/**
 * Dependent work: never without `committed`, never twice, and once where everybody was free to ask.
 */
function checkReleases(
  facts: Facts,
  committed: ReadonlySet<number>,
  tried: readonly number[],
): readonly string[] {
  const wrong: string[] = [];
  const runs = new Map<number, number>();
  for (const n of facts.releases) runs.set(n, (runs.get(n) ?? 0) + 1);
  for (const [n, times] of runs) {
    if (times > 1) wrong.push(`operation ${n}: its dependent work ran ${times} times`);
    if (!committed.has(n))
      wrong.push(`operation ${n}: its dependent work ran without a committed verdict`);
  }
  for (const n of tried) {
    if (committed.has(n) && !runs.has(n))
      wrong.push(`operation ${n}: committed, but nobody was released`);
  }
  return wrong;
}

/**
 * Positions count up by one from 1: nothing was dropped. Nothing is acknowledged before its
 * verdict.
 */
function checkOrder(journal: readonly JournalLine[]): readonly string[] {
  const wrong: string[] = [];
  journal.forEach((line, index) => {
    if (line.seq !== index + 1) wrong.push(`journal: row ${line.seq} stands at place ${index + 1}`);
    const before = journal
      .slice(0, index)
      .filter((earlier) => earlier.occurrence === line.occurrence);
    if (
      line.kind === 'acknowledgement' &&
      !before.some((earlier) => earlier.record.kind === 'committed')
    ) {
      wrong.push(`journal: row ${line.seq} releases before anything was committed`);
    }
    if (
      line.kind === 'terminal' &&
      line.record.claim !== undefined &&
      !before.some(({ kind }) => kind === 'claim')
    ) {
      wrong.push(`journal: row ${line.seq} ends an attempt that had not claimed`);
    }
  });
  return wrong;
}
