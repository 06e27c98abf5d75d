// The five conditions without EffectMatch. Each adds evidence, or checks, to the one before it.
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { openSession, type Session } from './session.ts';
import {
  type Change,
  changesBetween,
  type Decision,
  expectedOf,
  type PaymentStep,
  type Place,
  type RowStep,
  type Snapshot,
  TABLES,
  textOf,
} from './task.ts';
import { type Answer, callPaymentTool, exchange, runStatement } from './tools.ts';

/**
 * How a condition performs a step, and what it makes of a step that was begun by a process that is
 * gone.
 */
export interface Performer {
  readonly name: string;
  changeRow(place: Place, step: RowStep): Promise<Decision>;
  /** `key` is new with every step, and of no use to whoever does not send it. */
  pay(place: Place, step: PaymentStep, key: string): Promise<Decision>;
  /** Whether an interrupted step is done again; otherwise it is left to be reconciled. */
  readonly repeats: boolean;
}

/** Believes what the backend answers. */
const direct: Performer = {
  name: 'direct',
  changeRow: (place, step) => transact(place, step, {}),
  pay: async (place, step) => ((await callPaymentTool(place, step)).ok ? 'done' : 'rejected'),
  repeats: true,
};

/**
 * The same, once parameters, their types and the resources that they name were found to be
 * permitted.
 */
const allowlist: Performer = {
  name: 'allowlist',
  changeRow: async (place, step) =>
    isPermittedRow(step) ? await direct.changeRow(place, step) : 'rejected',
  pay: async (place, step, key) =>
    isPermittedPayment(step) ? await direct.pay(place, step, key) : 'rejected',
  repeats: true,
};

const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  invoice: ['status'],
  account: ['tier'],
};
const VALUES: readonly string[] = ['paid', 'gold'];
const IDS: readonly number[] = [4711, 7];

function isPermittedRow({ where, table, column, id, value }: RowStep): boolean {
  const isKnown =
    (TABLES[where] as readonly string[]).includes(table) &&
    COLUMNS[table]?.includes(column) === true;
  return isKnown && IDS.includes(id) && VALUES.includes(value);
}

function isPermittedPayment({ payee, amount }: PaymentStep): boolean {
  return payee === 'acme' && Number.isSafeInteger(amount) && amount > 0 && amount <= 100;
}

/**
 * Requests of its own making, the planned row locked and looked at again, the named target read
 * back, keys.
 */
const robust: Performer = {
  name: 'robust workflow',
  changeRow: (place, step) => transact(place, step, { before: isAsPlanned, after: isAsWanted }),
  async pay(place, step, key) {
    const sent = await sendPayment(place, step, key);
    if (sent === undefined) return 'rejected';
    return (await readPayment(place, step, sent)) === 'as wanted' ? 'done' : 'reconcile';
  },
  repeats: false,
};

/** A robust workflow that also reads what the backend counts or logs anyway. */
const nativeAudit: Performer = {
  name: 'native audit',
  changeRow: (place, step) =>
    transact(place, step, {
      before: isAsPlanned,
      after: async (session, row) =>
        (await isAsWanted(session, row)) && (await session.countWrites()) === 1,
    }),
  async pay(place, step, key) {
    const before = await readEvents(place);
    const sent = await sendPayment(place, step, key);
    if (sent === undefined) return 'rejected';
    const named = await readPayment(place, step, sent);
    const after = await readEvents(place);
    if (named === 'unknown' || before === undefined || after === undefined) return 'uncertain';
    const ours = after.slice(before.length).filter(({ request }) => request === key);
    // What the log does not attribute may be ours or somebody else's.
    const others = after.length - before.length - ours.length;
    if (named !== 'as wanted' || ours.length !== 1) return 'diverged';
    return others === 0 ? 'done' : 'uncertain';
  },
  repeats: false,
};

/**
 * A robust workflow that sees every protected effect and compares them with what the step should
 * leave.
 */
const completeAudit: Performer = {
  name: 'complete audit',
  changeRow(place, step) {
    let initial: Snapshot = {};
    return transact(place, step, {
      before: async (session, row) => {
        initial = await session.snapshot();
        return await isAsPlanned(session, row);
      },
      after: async (session, row) =>
        isExpected(changesBetween(initial, await session.snapshot()), row),
    });
  },
  async pay(place, step, key) {
    const sent = await sendPayment(place, step, key);
    if (sent === undefined) return 'rejected';
    const kept = await exchange(place, 'GET', `/requests/${key}`);
    if (!kept.ok) return 'uncertain';
    const { effects } = kept.body as { readonly effects: readonly Change[] };
    return isExpected(effects, step) ? 'done' : 'diverged';
  },
  repeats: false,
};

export const PERFORMERS: readonly Performer[] = [
  direct,
  allowlist,
  robust,
  nativeAudit,
  completeAudit,
];

type Check = (session: Session, step: RowStep) => Promise<boolean>;

/**
 * One transaction, which commits unless a check says no. Errors of the backend are faults of the
 * fixture.
 */
async function transact(
  place: Place,
  step: RowStep,
  { before, after }: { readonly before?: Check; readonly after?: Check },
): Promise<Decision> {
  await using session = await openSession(place, step.where);
  await session.query('begin');
  const isFine = (await before?.(session, step)) ?? true;
  if (isFine) await runStatement(session, step);
  const isGood = isFine && ((await after?.(session, step)) ?? true);
  await session.query(isGood ? 'commit' : 'rollback');
  return isGood ? 'done' : 'rejected';
}

const isAsPlanned: Check = async (session, step) =>
  isDeepStrictEqual(await readNamed(session, step), step.seen);
const isAsWanted: Check = async (session, step) =>
  isDeepStrictEqual(await readNamed(session, step), expectedOf(step).after);

async function readNamed(session: Session, { table, id }: RowStep) {
  const [row] = await session.query(`select * from ${table} where id = $1 for update`, [id]);
  return row;
}

function isExpected(changes: readonly Change[], step: RowStep | PaymentStep): boolean {
  return (
    changes.length === 1 && changes.every((change) => textOf(change) === textOf(expectedOf(step)))
  );
}

/**
 * Exactly the fields of the step; the id of the payment, or undefined where the service refused.
 */
async function sendPayment(
  place: Place,
  { payee, amount }: PaymentStep,
  key: string,
): Promise<string | undefined> {
  const answer = await exchange(place, 'POST', '/payments', { payee, amount }, key);
  return answer.ok ? String((answer.body as { id: unknown }).id) : undefined;
}

async function readPayment(
  place: Place,
  step: PaymentStep,
  id: string,
): Promise<'as wanted' | 'other' | 'unknown'> {
  const answer: Answer = await exchange(place, 'GET', '/payments');
  if (!answer.ok) return 'unknown';
  const { payments } = answer.body as { readonly payments: readonly { readonly id: string }[] };
  const { id: _, ...fields } = payments.find((payment) => payment.id === id) ?? { id: '' };
  return isDeepStrictEqual(fields, expectedOf(step).after) ? 'as wanted' : 'other';
}

interface Event {
  readonly request: string | null;
}

async function readEvents(place: Place): Promise<readonly Event[] | undefined> {
  const answer = await exchange(place, 'GET', '/events');
  return answer.ok ? (answer.body as { readonly events: readonly Event[] }).events : undefined;
}

export const newKey = (): string => randomUUID();
