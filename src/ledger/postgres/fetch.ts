import type {
  Connection,
  ParameterValue,
  TextRow,
  WireStatement,
} from '../../postgres/connection.ts';
import type { SqlFile } from '../../postgres/sql-file.ts';
import type { Digest, OccurrenceId } from '../../protocol/record.ts';
import { BATCH } from '../checkpoint.ts';
import type { JournalRow } from '../journal.ts';
import type { About, CheckpointRow, DocumentRow, UnsettledEntry } from '../store.ts';
import type { FetchedTables } from './fetched.ts';

/** A ledger's statements, with its schema filled in. */
export class Queries {
  readonly #texts: ReadonlyMap<string, string>;
  /** The notification channel for verdicts. */
  readonly channel: string;

  /** `decide` is the body of the function that writes decisions. */
  constructor(file: SqlFile, schema: string, decide: string) {
    this.channel = schema;
    this.#texts = new Map(file.names.map((name) => [name, file.get(name, { schema, decide })]));
  }

  get(name: string, ...values: readonly ParameterValue[]) {
    return { text: this.#texts.get(name) ?? '', values };
  }
}

type Taking = (rows: readonly TextRow[]) => void;

/** Statements sent as one message, and the functions that take their rows. */
export class Fetching {
  readonly #queries: Queries;
  readonly #tables: FetchedTables;
  readonly #statements: WireStatement[] = [];
  readonly #takers: Taking[] = [];

  constructor(queries: Queries, tables: FetchedTables) {
    this.#queries = queries;
    this.#tables = tables;
  }

  async run(session: Pick<Connection, 'run'>): Promise<void> {
    if (this.#statements.length === 0) return;
    const { replies, failure } = await session.run(this.#statements);
    if (failure !== undefined) throw failure.error;
    this.#takers.forEach((take, index) => {
      take(replies[index]?.rows ?? []);
    });
  }

  /** Asks for everything in `about`. */
  about(about: About): this {
    const { occurrences = [], binding, document, page } = about;
    const task = about.task ?? about.plan?.task;
    const { lists, plans, kept } = this.#tables;
    if (isTimed(about)) this.moment();
    const first = binding?.occurrences.slice(0, 1) ?? [];
    this.occurrences([...occurrences, ...first, ...(page?.occurrence ? [page.occurrence] : [])]);
    if (about.issuances === true) this.#issuances('issuances_of', [...occurrences]);
    if (binding !== undefined) this.#issuances('issuances', [binding.issuer], [binding.nonce]);
    if (task !== undefined) {
      this.ask('plans', [[task]], ([row]) => row && plans.set(task, Number(row[1])));
    }
    if (document !== undefined)
      this.ask('documents', [[document]], ([row]) => row && kept.set(document, readDocument(row)));
    if (about.standing !== undefined) this.#standing(about.standing);
    if (about.checkpointsAfter !== undefined) this.#checkpoints(about.checkpointsAfter);
    if (page !== undefined && page.occurrence === undefined) {
      const name = page.last === true ? 'last_page' : 'page';
      this.ask(name, [String(page.afterSeq), String(page.limit)], (rows) => {
        lists.page = rows.map(readRow);
      });
    }
    return this.#lists(about);
  }

  #lists(about: About): this {
    const { lists } = this.#tables;
    if (about.unsettled !== undefined)
      this.ask('unsettled', [String(about.unsettled === 'all')], (rows) => {
        lists.unsettled = rows.map(readEntry);
      });
    if (about.uncompleted === true)
      this.ask('uncompleted', [], (rows) => {
        lists.uncompleted = rows.map(readRow);
      });
    if (about.search !== undefined)
      this.ask('search', [about.search, `${about.search}\u{10ffff}`], (rows) => {
        lists.found = rows.map(([occurrence]) => occurrence as OccurrenceId);
      });
    if (about.documentsAfter !== undefined)
      this.ask('documents_after', [about.documentsAfter, String(BATCH)], (rows) => {
        lists.documents = rows.map(readDocument);
      });
    if (about.totals === true)
      this.ask('totals', [], ([row]) => {
        const stray = row?.[0] == null ? undefined : Number(row[0]);
        lists.totals = { stray, counted: Number(row?.[1]) };
      });
    return this;
  }

  /** Asks for the rows of occurrences not fetched yet, and the entries of their claims. */
  occurrences(wanted: readonly string[]): this {
    const missing = wanted.filter((occurrence) => !this.#tables.has(occurrence));
    if (missing.length === 0) return this;
    this.#tables.addOccurrences(missing);
    return this.ask('rows', [missing], (rows) => {
      for (const row of rows) {
        const fetched = readRow(row);
        const [issuance, execution, untilMs] = row.slice(8);
        const entry =
          execution == null
            ? undefined
            : readEntry([String(fetched.seq), execution, untilMs ?? null, fetched.occurrence]);
        const id = issuance == null ? undefined : Number(issuance);
        this.#tables.addRow({ ...fetched, issuance: id }, entry);
      }
    });
  }

  /** Asks for the issuances that occurrences were claimed under. */
  issuancesOf(occurrences: readonly string[]): this {
    return occurrences.length === 0 ? this : this.#issuances('issuances_of', occurrences);
  }

  #issuances(name: string, ...values: readonly (readonly string[])[]): this {
    return this.ask(name, values, (rows) => {
      for (const [id, issuer, nonce, claimed, ...texts] of rows) {
        const [license, approved, binding, sealKey, mac] = texts.map(String);
        const row = { issuer, nonce, claimed: Number(claimed), license, approved, binding };
        this.#tables.issuances.set(Number(id), { ...row, sealKey, mac } as never);
      }
    });
  }

  #standing({ task, attempt }: NonNullable<About['standing']>): void {
    const { occurrence, execution } = attempt;
    this.ask('standing', [task, occurrence, execution], ([row]) => {
      const announced = row?.[0] == null ? undefined : Number(row[0]);
      this.#tables.lists.standing = { announced, open: row?.[1] === 't' };
    });
  }

  #checkpoints(after: number): void {
    this.ask('checkpoints_after', [String(after), String(BATCH + 1)], (rows) => {
      this.#tables.checkpoints.push(...rows.map(readCheckpoint));
    });
  }

  /** Takes the ledger's lock, so that no other transaction decides at the same time. */
  lock(): this {
    return this.ask('lock', [], ([row]) => {
      this.#tables.lists.transaction = row?.[0] ?? undefined;
    });
  }

  /** Asks for the count of positions and the server's time. */
  moment(): this {
    return this.ask('moment', [], ([row]) => {
      if (row === undefined) return;
      this.#tables.lists.positions = Number(row[0]);
      this.#tables.lists.nowMs = Number(row[1]);
    });
  }

  ask(name: string, values: readonly ParameterValue[], take: Taking): this {
    return this.say(this.#queries.get(name, ...values), take);
  }

  /** Adds a statement that is not in the SQL file. */
  say(statement: WireStatement, take: Taking = () => {}): this {
    this.#statements.push(statement);
    this.#takers.push(take);
    return this;
  }
}

/** Whether the answer depends on the time or on the count of positions. */
function isTimed({ issuances, unsettled, checkpointsAfter, totals }: About): boolean {
  return issuances === true || (unsettled ?? checkpointsAfter) !== undefined || totals === true;
}

function readRow(row: TextRow): JournalRow {
  const [seq, kind, occurrence, slot, text, sealKey, sealMac, digest] = row.map(String);
  return { seq: Number(seq), kind, occurrence, slot, text, sealKey, sealMac, digest } as JournalRow;
}

function readEntry([claim, execution, untilMs, occurrence = null]: TextRow): UnsettledEntry {
  const leaseUntilMs = Number(untilMs);
  return { claim: Number(claim), execution: String(execution), leaseUntilMs, occurrence };
}

function readDocument(row: TextRow): DocumentRow {
  const [digest, text, sealKey, sealMac] = row.map(String);
  return { digest: digest as Digest, text, sealKey, sealMac } as DocumentRow;
}

function readCheckpoint([throughSeq, ...rest]: TextRow): CheckpointRow {
  const [text, sealKey, sealMac] = rest.map(String);
  return { throughSeq: Number(throughSeq), text, sealKey, sealMac } as CheckpointRow;
}
