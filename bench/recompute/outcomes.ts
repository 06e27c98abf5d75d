// Recomputes the figures of the studies on public tasks from the digests of states.
import {
  type Figures,
  FigureTally,
  judgeStates,
  partsOf,
  type ReadRecord,
  statesIn,
  textIn,
} from './record.ts';

const TITLES: { readonly [part: string]: string } = {
  a: '(a)',
  b: '(b)',
  'b, own tools': '(b) own tools,',
  c: '(c)',
  'c, own tools': '(c) own tools,',
};

/** `public-outcomes`. */
export function recomputeOutcomes(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  const runs = records.filter(({ states }) => states !== undefined);
  const harmless = findHarmless(runs);
  for (const record of runs) {
    const [part = ''] = partsOf(record);
    const [condition, variant] = [textIn(record, 'condition'), textIn(record, 'variant')];
    const title = `${TITLES[part]} ${condition}:`;
    const { isRight, isWrong, isSaved, isKept, isSpoilt } = judgeStates(record);
    if (variant === 'clean') {
      tally.count(`${title} clean, right state`, isRight);
      tally.count(`${title} clean, saved`, isSaved);
    } else {
      tally.count(`${title} ${variant}, wrong commit`, isWrong);
      tally.count(`${title} ${variant}, rejected`, isKept);
    }
    tally.count(`${title} rejected, but durable`, isSpoilt);
    if (part === 'a') {
      tally.count(`${title} ${variant}, the benchmark's check passes`, record.isNative === true);
      const isCompared = record.why === 'comparison: diverged';
      tally.count(`${title} faults rejected by comparison, rows kept`, isKept && isCompared);
    }
    if (variant === 'duplicate') {
      const isHarmless = harmless.has(`${part}|${textIn(record, 'task')}`);
      const committed = record.committed === true;
      tally.count(`${title} harmless duplicate, committed`, isHarmless && committed);
      tally.count(`${title} harmless duplicate, blocked`, isHarmless && !committed);
    }
  }
  countNative(runs, tally);
  return tally.figures;
}

/** Counts the unapproved states that the benchmark's own check accepts, in parts (a) and (c). */
function countNative(runs: readonly ReadRecord[], tally: FigureTally): void {
  const placeOf = (record: ReadRecord) =>
    [partsOf(record)[0], textIn(record, 'task'), textIn(record, 'variant')].join('|');
  const isAccepted = (record: ReadRecord) =>
    textIn(record, 'condition') === 'direct' &&
    record.isNative === true &&
    !judgeStates(record).isRight;
  const accepted = new Set(runs.filter(isAccepted).map(placeOf));
  for (const record of runs) {
    const [part = ''] = partsOf(record);
    if (!/^[ac]/.test(part)) continue;
    const title = TITLES[part];
    tally.count(
      `${title} direct: wrong commit, and the benchmark's check passes`,
      isAccepted(record),
    );
    const isRefused = textIn(record, 'condition') === 'EffectMatch' && judgeStates(record).isKept;
    tally.count(
      `${title} EffectMatch: rejected where that check passes`,
      isRefused && accepted.has(placeOf(record)),
    );
  }
}

/** Finds the tasks whose state is still the approved one if a duplicate call is trusted. */
function findHarmless(runs: readonly ReadRecord[]): ReadonlySet<string> {
  const found = runs.filter(
    (record) =>
      textIn(record, 'variant') === 'duplicate' &&
      textIn(record, 'condition') === 'direct' &&
      judgeStates(record).isRight,
  );
  return new Set(found.map((record) => `${partsOf(record)[0]}|${textIn(record, 'task')}`));
}

/** `information`. */
export function recomputeInformation(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const parts = partsOf(record);
    if (record.states !== undefined) {
      const { isSaved, isKept } = judgeStates(record);
      const isClean = textIn(record, 'variant') === 'clean';
      tally.count('EffectMatch: clean committed, right state', isClean && isSaved);
      tally.count('EffectMatch: hidden prevented, initial state kept', !isClean && isKept);
      continue;
    }
    const [decider = '', , variant = ''] = parts;
    const decision = textIn(record, 'decision');
    for (const one of ['admit', 'deny', 'escalate'])
      tally.count(`${decider}: ${one}`, variant === 'clean' && decision === one);
    tally.count(`${decider}: clean admitted`, variant === 'clean' && decision === 'admit');
    tally.count(`${decider}: hidden prevented`, variant !== 'clean' && decision !== 'admit');
  }
  return tally.figures;
}

interface Business {
  readonly approved: string;
  readonly candidate: string;
  readonly durable: string;
}

/** Scripts that do something odd and still leave the approved work. */
const DONE_AS_APPROVED = /repeats a call in vain|forgets to finish, and the host finishes/;

/** `live-agents`: from the states that were compared at the end of each episode. */
export function recomputeEpisodes(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const [row = '', path = ''] = partsOf(record);
    const name = `${row}, ${path}:`;
    const { approved, candidate, durable } = record.means as Business;
    const { isApproved, isInitial } = statesIn(record);
    const isRight = durable === approved;
    const { kind } = record.verdict as { readonly kind: string };
    const isTruthful = kind === 'committed' ? isRight : kind === 'rejected' && isInitial;
    tally.count(`${name} candidate correct`, candidate === approved);
    tally.count(`${name} durable correct`, isRight);
    tally.count(`${name} finalised by the agent`, record.finalised === 'by the agent');
    tally.count(`${name} durable equal in every id and order`, isApproved);
    tally.count(`${name} durable is the initial state`, isInitial);
    tally.count(`${name} rejected`, kind === 'rejected');
    tally.count(`${name} durable is what was approved`, isRight);
    tally.count(`${name} the verdict is what the durable state shows`, isTruthful);
    tally.count(`${name} durable is something else`, !isInitial && !isRight);
    const isUnapproved = row.includes(' that ') && !DONE_AS_APPROVED.test(row);
    if (isUnapproved && path === 'integrated')
      tally.count(
        'every misbehaving script, integrated: the initial state and a rejection that says so',
        isInitial && kind === 'rejected',
      );
  }
  return tally.figures;
}

/** `backends`. */
export function recomputeBackends(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const parts = partsOf(record);
    if (parts[0] === 'github') countIssue(tally, record, parts[2] ?? '');
    else countPhone(tally, record);
  }
  return tally.figures;
}

function countPhone(tally: FigureTally, record: ReadRecord): void {
  const [condition, variant] = [textIn(record, 'condition'), textIn(record, 'variant')];
  const name = `ToolSandbox, ${condition}: ${variant}`;
  countEnding(tally, name, record);
  tally.count(`${name}, goal check passed`, record.passesGoal === true);
}

/** What the caller was told, held against the rows that were read afterwards. */
function countEnding(tally: FigureTally, name: string, record: ReadRecord): void {
  const { isApproved, isInitial } = statesIn(record);
  const committed = record.committed === true;
  tally.count(`${name}, committed`, committed && isApproved);
  tally.count(`${name}, right state`, committed && isApproved);
  tally.count(`${name}, wrong commit`, committed && !isApproved);
  tally.count(`${name}, rejected`, !committed && isInitial);
}

function countIssue(tally: FigureTally, record: ReadRecord, variant: string): void {
  const { terminal, releases, writes } = record;
  const { isApproved, isTakenOver } = statesIn(record);
  const isOnce = writes === 1;
  const isBlocked = releases === 0 && isOnce;
  if (variant === 'clean') {
    const isReleased = isApproved && releases === 1 && isOnce;
    tally.count('GitHub, clean: fields match, released', isReleased && terminal === 'committed');
  }
  if (variant === 'changed title') {
    const isDetected = isTakenOver && terminal === 'diverged' && isBlocked;
    tally.count('GitHub, changed title: mismatch detected, blocked', isDetected);
  }
  if (variant === 'no read-back') {
    tally.count('GitHub, no read-back: blocked', terminal === 'indeterminate' && isBlocked);
    const words = 'GitHub, no read-back: fields match all the same';
    tally.count(words, isApproved);
  }
}

/** `backends-mariadb`. */
export function recomputeMariadb(records: readonly ReadRecord[]): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const name = `${textIn(record, 'condition')}: ${textIn(record, 'variant')}`;
    countEnding(tally, name, record);
  }
  return tally.figures;
}
