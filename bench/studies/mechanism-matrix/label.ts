import { type Change, type Saved, textOf } from './task.ts';

/** What one run left, read by code that took no part in it. */
export interface Facts {
  /** What became durable while the workflow ran, in all backends. */
  readonly changes: readonly Change[];
  /** What the designated approver approved; absent if that approver approved nothing. */
  readonly approved: readonly Change[] | undefined;
  /** What the workflow was told to leave, by any approver. */
  readonly local: readonly Change[];
  /** Payments that arrived at the service. */
  readonly requests: number;
  /** How often the dependent work ran; undefined if there is none. */
  readonly dependent: number | undefined;
  /** Whether the remote outcome could be read once the request had been made. */
  readonly readable: boolean;
  /** What the condition's durable records say. It only distinguishes runs that stopped. */
  readonly saved: Saved;
}

/** The words of the paper's table for what happened; other words for what is not in the table. */
export function labelOf(facts: Facts): string {
  const { changes, approved, local, requests, dependent, readable, saved } = facts;
  if (dependent !== undefined && dependent > 1) return 'dependent work repeated';
  if (changes.length === 0) {
    if (dependent === 1) return 'nothing; advance';
    return saved === 'none' ? 'reject' : stopOf(saved, false);
  }
  const { missing, extra } = compare(changes, approved ?? local);
  if (missing.length > 0) {
    const isStale =
      missing.length === extra.length &&
      missing.every((one) => extra.some((other) => isStaleOf(one, other)));
    return isStale ? 'stale commit' : 'wrong commit';
  }
  if (extra.length > 0) {
    if (dependent === 0) return stopOf(saved, true);
    const isRepeated = extra.every((one) => local.some((wanted) => textOf(wanted) === textOf(one)));
    if (isRepeated && requests > 1) return 'resend; duplicate';
    return dependent === undefined ? 'extra commit' : 'extra; advance';
  }
  if (dependent === 0) return stopOf(saved, false);
  if (approved === undefined) return 'accept local match';
  return readable ? 'exact' : 'response; advance';
}

/** Why nothing continued, by what is saved; a wrong record is not taken for a good reason. */
function stopOf(saved: Saved, isDifferent: boolean): string {
  if (saved === 'open') return 'reconcile';
  if (saved === 'incomplete') return 'uncertain; stop';
  if (saved === 'different') return isDifferent ? 'diverged; stop' : 'false alarm; stop';
  return 'stop without a reason';
}

/** Both as multisets. */
function compare(changes: readonly Change[], wanted: readonly Change[]) {
  const extra = [...changes];
  const missing = wanted.filter((one) => {
    const index = extra.findIndex((change) => textOf(change) === textOf(one));
    if (index >= 0) extra.splice(index, 1);
    return index < 0;
  });
  return { missing, extra };
}

/**
 * The wanted value is in the wanted row, which is another one by now than the one it was wanted
 * for.
 */
function isStaleOf(wanted: Change, change: Change): boolean {
  const { before, after } = wanted;
  if (before === null || after === null || change.before === null || change.after === null)
    return false;
  if (wanted.target !== change.target || before.id !== change.before.id) return false;
  const set = Object.keys(after).filter((column) => after[column] !== before[column]);
  return set.every((column) => change.after?.[column] === after[column]);
}
