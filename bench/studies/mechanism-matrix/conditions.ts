// The five conditions without EffectMatch. Each adds evidence, or checks, to the one before it.
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { openSession, type Session } from './session.ts';
import {
  type Change,
  changesBetween,
  expectedOf,
  type PaymentStep,
  type Place,
  type RowStep,
  type Snapshot,
  type StepFinding,
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
  changeRow(place: Place, step: RowStep): Promise<StepFinding>;
  /** `key` belongs to the step, and is of no use to a condition that does not send it. */
  pay(place: Place, step: PaymentStep, key: string): Promise<StepFinding>;
  /**
   * What became of an interrupted payment: verified before it is sent again. A condition without
   * this simply sends it again.
   */
  verify?(place: Place, step: PaymentStep, key: string): Promise<PaymentState>;
}

/** `made`: as the step wants it; `absent`: not at all; `unknown`: something else, or not readable. */
export type PaymentState = 'made' | 'absent' | 'unknown';

const DONE: StepFinding = { goesOn: true };
/** Rolled back, or refused before anything was done: there is nothing to be seen. */
const NOTHING_DONE: StepFinding = { goesOn: false, evidence: [] };
const OPEN: StepFinding = { goesOn: false };
const UNSEEN: StepFinding = { goesOn: false, evidence: 'incomplete' };

/** Believes what the backend answers. */
const direct: Performer = {
  name: 'direct',
  changeRow: (place, step) => transact(place, step, {}),
  pay: async (place, step) => ((await callPaymentTool(place, step)).ok ? DONE : NOTHING_DONE),
};

/**
 * The same, once parameters, their types and the resources that they name were found to be
 * permitted.
 */
const allowlist: Performer = {
  name: 'allowlist',
  changeRow: async (place, step) =>
    isPermittedRow(step) ? await direct.changeRow(place, step) : NOTHING_DONE,
  pay: async (place, step, key) =>
    isPermittedPayment(step) ? await direct.pay(place, step, key) : NOTHING_DONE,
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
 * Builds its own requests with keys, locks and compares the planned row, and reads the named target
 * back.
 */
const robust: Performer = {
  name: 'robust workflow',
  changeRow: (place, step) => transact(place, step, { before: isAsPlanned, after: isAsWanted }),
  async pay(place, step, key) {
    const sent = await sendPayment(place, step, key);
    if (sent === undefined) return NOTHING_DONE;
    return (await readPayment(place, step, sent)) === 'as wanted' ? DONE : OPEN;
  },
  verify: (place, step, key) =>
    lookUp(place, key, async (effects) =>
      effects.some((effect) => textOf(effect) === textOf(expectedOf(step))),
    ),
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
    if (sent === undefined) return NOTHING_DONE;
    const named = await readPayment(place, step, sent);
    const after = await readEvents(place);
    if (named === 'unknown' || before === undefined || after === undefined) return UNSEEN;
    return named === 'as wanted' && isOnly(after.slice(before.length), key) ? DONE : UNSEEN;
  },
  verify: (place, step, key) =>
    lookUp(place, key, async (effects) => {
      const events = await readEvents(place);
      const isNamed = effects.some((effect) => textOf(effect) === textOf(expectedOf(step)));
      return isNamed && events !== undefined && isOnly(events, key);
    }),
};

/** One event, and that of this request. What the log does not attribute may be ours or not. */
function isOnly(events: readonly Event[], key: string): boolean {
  return events.length === 1 && events.every(({ request }) => request === key);
}

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
    if (sent === undefined) return NOTHING_DONE;
    const effects = await readKept(place, key);
    if (typeof effects === 'string') return UNSEEN;
    return isExpected(effects, step) ? DONE : { goesOn: false, evidence: effects };
  },
  verify: (place, step, key) => lookUp(place, key, async (effects) => isExpected(effects, step)),
};

/** The effects that the service keeps under a key. */
async function readKept(
  place: Place,
  key: string,
): Promise<readonly Change[] | 'absent' | 'unknown'> {
  const kept = await exchange(place, 'GET', `/requests/${key}`);
  if (kept.status === 404) return 'absent';
  if (!kept.ok) return 'unknown';
  const { effects } = kept.body as { readonly effects: readonly Change[] };
  return effects.map(({ target, before, after }) => ({ target, before, after }));
}

async function lookUp(
  place: Place,
  key: string,
  isWanted: (effects: readonly Change[]) => Promise<boolean>,
): Promise<PaymentState> {
  const effects = await readKept(place, key);
  if (typeof effects === 'string') return effects;
  return (await isWanted(effects)) ? 'made' : 'unknown';
}

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
): Promise<StepFinding> {
  await using session = await openSession(place, step.where);
  await session.query('begin');
  const isFine = (await before?.(session, step)) ?? true;
  if (isFine) await runStatement(session, step);
  const isGood = isFine && ((await after?.(session, step)) ?? true);
  await session.query(isGood ? 'commit' : 'rollback');
  return isGood ? DONE : NOTHING_DONE;
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
