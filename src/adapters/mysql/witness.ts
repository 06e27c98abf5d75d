import type { MysqlConnection } from './connection.ts';

/** The undo entries of a session's transaction, or why they are not known. */
export type UndoCount =
  | { readonly kind: 'counted'; readonly entries: number; readonly transaction: string }
  | { readonly kind: 'unknown'; readonly why: string };

/** Asks InnoDB itself, past all recorders, how many rows the transaction of a session has written. */
export async function countUndo(control: MysqlConnection, thread: number): Promise<UndoCount> {
  const [row] = await control.texts('show engine innodb status');
  return readStatus(row?.[2] ?? '', thread);
}

/** What precedes the transactions. The last deadlock stands before it, and names sessions too. */
const LIST = /^LIST OF TRANSACTIONS FOR EACH SESSION:$/m;

/**
 * Reads the status of InnoDB. It quotes statements of other sessions, which may hold any text: from
 * the first line that may begin the list, the session must be named exactly once, and nothing may
 * have been cut off.
 */
export function readStatus(text: string, thread: number): UndoCount {
  const unknown = (why: string): UndoCount => ({ kind: 'unknown', why });
  if (!/^END OF INNODB MONITOR OUTPUT$/m.test(text) || /^\.\.\. truncated\.\.\.$/m.test(text))
    return unknown('the status of InnoDB was cut off');
  const list = LIST.exec(text);
  if (list === null) return unknown('the status of InnoDB lists no transactions');
  const status = text.slice(list.index);
  const named = new RegExp(`^MariaDB thread id ${thread}, `);
  const sections = status
    .split(/^---(?=TRANSACTION )/m)
    .filter((section) => section.split('\n').some((line) => named.test(line)));
  const lines = status.split('\n').filter((line) => named.test(line));
  const [section] = sections;
  if (section === undefined || lines.length !== 1)
    return unknown(`the status of InnoDB names the session ${lines.length} times instead of once`);
  const head = section.slice(0, section.indexOf('\nMariaDB thread id '));
  const transaction = /^TRANSACTION (\d+), ACTIVE /.exec(head)?.[1];
  const entries = /^\d+ lock struct\(s\).*, undo log entries (\d+)$/m.exec(head)?.[1];
  if (transaction === undefined || entries === undefined)
    return unknown('the status of InnoDB shows no writing transaction of the session');
  return { kind: 'counted', entries: Number(entries), transaction };
}
