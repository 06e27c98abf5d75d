/** The number of undo entries of a session's transaction, or why it is unknown. */
export type UndoCount =
  | { readonly kind: 'counted'; readonly entries: number; readonly transaction: string }
  | { readonly kind: 'unknown'; readonly why: string };

/**
 * Asks InnoDB, independently of the recorders, how many undo entries each session's transaction
 * has. The text is in the third column.
 */
export const INNODB_STATUS = 'show engine innodb status';

/** The heading before the transactions. The last deadlock comes earlier and also names sessions. */
const LIST = /^LIST OF TRANSACTIONS FOR EACH SESSION:$/m;

/**
 * Reads the InnoDB status. It quotes statements of other sessions, which may contain any text.
 * After the first line that could begin the list, the session must be named exactly once, and
 * nothing may be cut off.
 */
export function readStatus(text: string, thread: number): UndoCount {
  const unknown = (why: string): UndoCount => ({ kind: 'unknown', why });
  if (!/^END OF INNODB MONITOR OUTPUT$/m.test(text) || /^\.\.\. truncated\.\.\.$/m.test(text))
    return unknown('the status of InnoDB was cut off');
  const list = LIST.exec(text);
  if (list === null) return unknown('the status of InnoDB lists no transactions');
  const status = text.slice(list.index);
  const named = new RegExp(`^MariaDB thread id ${thread}, `);
  const sections = status.split(/^---(?=TRANSACTION )/m);
  const naming = sections.flatMap((section) =>
    section
      .split('\n')
      .filter((line) => named.test(line))
      .map(() => section),
  );
  if (naming.length !== 1)
    return unknown(`the status of InnoDB names the session ${naming.length} times instead of once`);
  const [section = ''] = naming;
  const head = section.slice(0, section.indexOf('\nMariaDB thread id '));
  const transaction = /^TRANSACTION (\d+), ACTIVE /.exec(head)?.[1];
  const entries = /^\d+ lock struct\(s\).*, undo log entries (\d+)$/m.exec(head)?.[1];
  if (transaction === undefined || entries === undefined)
    return unknown('the status of InnoDB shows no writing transaction of the session');
  return { kind: 'counted', entries: Number(entries), transaction };
}
