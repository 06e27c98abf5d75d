// What a workflow is given, whichever condition runs it. Which fault lies beneath is not in it.
import type { PostgresOptions } from '../../../src/adapters/postgres/index.ts';

export type Row = { readonly [column: string]: string | number | null };

/** A row before and after; the key of a new row is the backend's own choice and is left out. */
export interface Change {
  readonly target: string;
  readonly before: Row | null;
  readonly after: Row | null;
}

/**
 * One row of a table gets another value in one column. `seen` is the row as it was when the step
 * was planned.
 */
export interface RowStep {
  readonly kind: 'row';
  readonly where: 'postgres' | 'sqlite';
  readonly table: string;
  readonly id: number;
  readonly column: string;
  readonly value: string;
  readonly seen: Row;
}

/** A payment at the remote service. */
export interface PaymentStep {
  readonly kind: 'payment';
  readonly payee: string;
  readonly amount: number;
}

export type Step = RowStep | PaymentStep;

export interface Workflow {
  readonly steps: readonly Step[];
  /** Whether there is work that depends on the steps. */
  readonly hasDependent: boolean;
  /**
   * Whether a process that takes over finds out what became of an interrupted step, as it does by
   * default. Otherwise it leaves the step as it is, which is the paper's reading.
   */
  readonly settles: boolean;
  /** Whether another process will have to take over. */
  readonly isInterrupted: boolean;
}

/** Where things are. It survives processes as JSON. */
export interface Place {
  /**
   * Of this run alone: the SQLite database, the tools' settings, and whatever a condition has to
   * remember.
   */
  readonly folder: string;
  /** The application's login; absent where the workflow has nothing to do with PostgreSQL. */
  readonly postgres?: string;
  /** The same database as it was provisioned for EffectMatch. */
  readonly provisioned?: PostgresOptions;
  readonly service: { readonly origin: string; readonly customer: string };
  /** Whether the gateway has the only credential of the service and its keys are honoured. */
  readonly capability: 'MEDIATED' | 'OPAQUE';
}

/** What a condition makes of a step that it has performed. */
export interface StepFinding {
  /** Whether whatever comes next may run. */
  readonly goesOn: boolean;
  /**
   * The effects that it saw, kept with the step: `incomplete` if it could not see all it asked for.
   * Without any, the step stays open, for someone to reconcile.
   */
  readonly evidence?: readonly Change[] | 'incomplete';
}

/**
 * What the durable records say about the last step that was begun: it was rolled back or refused
 * (`none`), it has no end (`open`), or it ended on evidence that was incomplete, other than what the
 * step should leave, or just that.
 */
export type Saved = 'none' | 'open' | 'incomplete' | 'different' | 'complete';

/** All tables there are, by backend. */
export const TABLES = {
  postgres: ['invoice', 'notification'],
  sqlite: ['account', 'history'],
} as const;
export const SQLITE_FILE = 'desk.db';
/** What a workflow without EffectMatch remembers. */
export const PROGRESS_FILE = 'progress.db';
/** EffectMatch's ledger. */
export const LEDGER_FILE = 'ledger.db';
/** Settings of the connector that the agent's tools go through. */
export const CONNECTOR_FILE = 'connector.json';
/** Where the dependent work leaves a line every time it runs. */
export const DEPENDENT_FILE = 'dependent.log';

/** What a step has to leave, derived from the step alone. */
export function expectedOf(step: Step): Change {
  if (step.kind === 'payment') {
    return {
      target: 'payment',
      before: null,
      after: { payee: step.payee, amount: step.amount, memo: null },
    };
  }
  const { table, column, value, seen } = step;
  return { target: table, before: seen, after: { ...seen, [column]: value } };
}

/** The change as text: equal texts are equal changes. */
export function textOf({ target, before, after }: Change): string {
  const sorted = (row: Row | null) =>
    row && Object.entries(row).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([target, sorted(before), sorted(after)]);
}

export type Snapshot = { readonly [table: string]: readonly Row[] };

/** What changed from one reading of tables with an `id` to the next. */
export function changesBetween(before: Snapshot, after: Snapshot): readonly Change[] {
  return Object.keys(after).flatMap((target) => {
    const old = new Map((before[target] ?? []).map((row) => [row.id, row]));
    const now = new Map((after[target] ?? []).map((row) => [row.id, row]));
    const gone = [...old]
      .filter(([id]) => !now.has(id))
      .map(([, row]) => ({ target, before: row, after: null }));
    const others = [...now].flatMap(([id, row]): readonly Change[] => {
      const was = old.get(id);
      if (was !== undefined)
        return JSON.stringify(was) === JSON.stringify(row)
          ? []
          : [{ target, before: was, after: row }];
      const { id: _, ...rest } = row;
      return [{ target, before: null, after: rest }];
    });
    return [...gone, ...others];
  });
}
