// Recomputes the figures of the two studies of ablations: how each run ended follows from its
// verdicts, the digests of the states and the counts that were kept with it.
import { digestOf } from '../facts.ts';
import {
  type Figures,
  FigureTally,
  keptIn,
  partsOf,
  type ReadRecord,
  statesIn,
  verdictsIn,
} from './record.ts';

/** What the file of an invoice can say. */
const [PAID, PENDING] = [digestOf('paid'), digestOf('pending')];

type Ending = 'stopped' | 'admitted' | undefined;

/** `ablations`. */
export function recomputePairs(records: readonly ReadRecord[]): Figures {
  return countPairs(records, endingOf, isCommitted, isRefused);
}

/** `more-ablations`. */
export function recomputeMorePairs(records: readonly ReadRecord[]): Figures {
  return countPairs(records, moreEndingOf, isCommitted, isRefused);
}

function countPairs(
  records: readonly ReadRecord[],
  ending: (record: ReadRecord) => Ending,
  committed: (record: ReadRecord) => boolean,
  refused: (record: ReadRecord) => boolean,
): Figures {
  const tally = new FigureTally();
  for (const record of records) {
    const [pair = '', side = '', name = ''] = partsOf(record);
    if (name.startsWith('control '))
      tally.count(`${pair}: clean control, ${side}, committed`, committed(record));
    else if (name.startsWith('replay ')) {
      const words = 'permit replays after the ablation, no second commit';
      tally.count(`${pair}: ${words}`, refused(record));
    } else
      for (const one of ['stopped', 'admitted'])
        tally.count(`${pair}: ${side}, ${one}`, ending(record) === one);
  }
  return tally.figures;
}

/**
 * What is durable if the fault is admitted, and why it is refused otherwise. In some pairs the
 * result is wrong, in others it is right and the approval is not for it.
 */
const RULES: { readonly [pair: string]: readonly ['wrong' | 'right', reason: string] } = {
  'result comparison, PG tasks': ['wrong', 'diverged'],
  'result comparison, STATE tasks': ['wrong', 'diverged'],
  'complete E, extra write': ['wrong', 'diverged'],
  'candidate binding, replacement': ['wrong', 'candidate-replaced'],
  'approval source, source swap': ['right', 'signature-invalid'],
  'approval source, unknown issuer': ['right', 'issuer-unknown'],
  'approval source, undesignated issuer': ['right', 'issuer-not-designated'],
  'approval source, disallowed source': ['right', 'source-not-allowed'],
  'execution binding, STATE occurrence': ['right', 'spent'],
  'execution binding, STATE action': ['right', 'other-action'],
  'execution binding, STATE state': ['right', 'stale-state'],
  'execution binding, PG occurrence': ['right', 'spent'],
  'execution binding, PG action': ['right', 'other-action'],
  'execution binding, PG state': ['right', 'stale-state'],
  'final boundary check, PG recheck': ['right', 'boundary-changed'],
  'final boundary check, certificate reuse': ['right', 'boundary-changed'],
};

function endingOf(record: ReadRecord): Ending {
  const [pair = '', side = ''] = partsOf(record);
  const kept = keptIn<KeptCounts>(record);
  if (kept.release !== undefined) {
    if (kept.notices !== 1) return undefined;
    if (kept.booked === 1) return 'admitted';
    return kept.release === (side === 'full' ? 'diverged' : 'no-terminal') ? 'stopped' : undefined;
  }
  const verdict = verdictsIn(record).at(-1);
  if (kept.before !== undefined) {
    if (kept.before === 1 && kept.after === 2) return 'admitted';
    return kept.after === 1 && verdict?.reason === 'spent' ? 'stopped' : undefined;
  }
  const [result, reason] = RULES[pair] ?? [];
  const { isApproved, isInitial } = statesIn(record);
  if (verdict?.kind === 'rejected')
    return isInitial && verdict.reason === reason ? 'stopped' : undefined;
  const isFault = isApproved === (result === 'right');
  return verdict?.kind === 'committed' && isFault ? 'admitted' : undefined;
}

/** A control: committed, with the approved state, or with the one payment or release that is due. */
function isCommitted(record: ReadRecord): boolean {
  const { booked, payments, digest } = keptIn<KeptCounts>(record);
  const isSaved = digest === PAID || statesIn(record).isApproved;
  return (
    (booked ?? payments ?? Number(isSaved)) === 1 && verdictsIn(record).at(-1)?.kind === 'committed'
  );
}

/** A replay: of everything that was presented only the first committed, and the rows say so. */
function isRefused(record: ReadRecord): boolean {
  const [first, ...later] = verdictsIn(record);
  const isOnce = later.length > 0 && later.every(({ kind }) => kind !== 'committed');
  return first?.kind === 'committed' && isOnce && statesIn(record).isApproved;
}

interface KeptCounts {
  readonly digest?: string;
  readonly release?: string;
  readonly booked?: number;
  readonly notices?: number;
  readonly payments?: number;
  readonly before?: number;
  readonly after?: number;
}

function moreEndingOf(record: ReadRecord): Ending {
  const [pair = ''] = partsOf(record);
  const rule = Object.entries(ENDINGS_OF).find(([name]) => pair.startsWith(`${name}, `))?.[1];
  return rule?.(verdictsIn(record).at(-1)?.kind ?? 'none', keptIn(record));
}

/** A verdict that contradicts the file is the fault. */
const judgeFile = (verdict: string, { digest }: KeptCounts): Ending => {
  if (digest === PAID) return verdict === 'committed' ? 'stopped' : 'admitted';
  return verdict === 'rejected' ? 'stopped' : undefined;
};

const ENDINGS_OF: {
  readonly [mechanism: string]: (verdict: string, kept: KeptCounts) => Ending;
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
