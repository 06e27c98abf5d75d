// What a condition's durable records say, read from its files by code that took no part in the run:
// nothing that a condition says about itself decides a label.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { keepFact } from '../../facts.ts';
import {
  type Change,
  expectedOf,
  LEDGER_FILE,
  type Place,
  PROGRESS_FILE,
  type Saved,
  textOf,
  type Workflow,
} from './task.ts';

/** What a workflow without EffectMatch remembers of its last step. */
export function readProgress(place: Place, { steps }: Workflow): Saved {
  const file = join(place.folder, PROGRESS_FILE);
  if (!existsSync(file)) return 'none';
  using progress = new DatabaseSync(file, { readOnly: true });
  const last = progress.prepare('select * from step order by n desc limit 1').get();
  const step = steps[Number(last?.n)];
  keepFact({ progress: last ?? null });
  if (last === undefined || step === undefined) return 'none';
  if (last.state === 'begun') return 'open';
  if (last.state === 'done') return 'complete';
  const evidence = JSON.parse(String(last.evidence)) as readonly Change[] | 'incomplete';
  if (evidence === 'incomplete') return 'incomplete';
  if (evidence.length === 0) return 'none';
  const wanted = textOf(expectedOf(step));
  const isWanted = evidence.length === 1 && evidence.every((one) => textOf(one) === wanted);
  return isWanted ? 'complete' : 'different';
}

/** The fields of a journal record that are read here. */
interface JournalRecord {
  readonly execution?: string;
  readonly kind?: string;
  readonly outcome?: {
    readonly diff?: { readonly [part in 'extra' | 'missing' | 'altered']: readonly unknown[] };
  };
}

/** What EffectMatch's ledger has of the last of these occurrences that was claimed. */
export function readLedgerFile(place: Place, occurrences: readonly string[]): Saved {
  using ledger = new DatabaseSync(join(place.folder, LEDGER_FILE), { timeout: 10_000 });
  const find = ledger.prepare(
    'select text from journal where kind = ? and occurrence = ? order by seq',
  );
  const read = (kind: string, occurrence: string) =>
    find.all(kind, occurrence).map(({ text }) => JSON.parse(String(text)) as JournalRecord);
  const last = occurrences.findLast((one) => read('claim', one).length > 0);
  if (last === undefined) return 'none';
  const [claim] = read('claim', last);
  // A license that is presented again gets a terminal too, but for another execution.
  const terminal = read('terminal', last).findLast(
    ({ execution }) => execution === claim?.execution,
  );
  keepFact({ claim, terminal: terminal ?? null });
  return savedBy(terminal);
}

/** A claim without a terminal may have happened, so the evidence is incomplete. */
function savedBy(terminal: JournalRecord | undefined): Saved {
  switch (terminal?.kind) {
    case 'committed':
      return 'complete';
    case 'rejected':
      return 'none';
    case 'diverged': {
      const parts = Object.values(terminal.outcome?.diff ?? {}).filter(Array.isArray);
      return parts.some((part) => part.length > 0) ? 'different' : 'complete';
    }
    default:
      return 'incomplete';
  }
}
