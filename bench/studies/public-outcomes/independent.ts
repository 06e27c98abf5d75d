// Part (b): twelve STATE tasks whose approvals are calculated from request, initial state and
// business rules.
import { approveState } from '../../approvals/index.ts';
import { applyPatch, type PatchStep, readPointer } from '../../data/patch.ts';
import type { Packet, Snapshot, StateTask } from '../../data/state-bench.ts';
import type { RawRecords } from '../../raw.ts';
import { type Cell, exactly, reproduced } from '../../study.ts';
import { replayVariant, withFinal } from './replay.ts';
import { CONDITIONS, type Condition } from './state-conditions.ts';
import {
  countRuns,
  runStatePlan,
  type StateRun,
  type StateVariant,
  type TableOptions,
} from './state-runs.ts';

const REPETITIONS = 3;

/** The amount that *alter value* raises by one: the cart's total, a refund or a booking's price. */
const ALTERED: { readonly [taskId: string]: string } = {
  'shopping_assistant/10-loyalty_points_on_discount': '/carts/CART-shop_003/total',
  'shopping_assistant/14-price_drop_disclosure': '/carts/CART-shop_004/total',
  'shopping_assistant/20-triple_policy_compound_disclosure': '/carts/CART-shop_001/total',
  'shopping_assistant/84-remove_qty_scope_all_vs_one': '/carts/CART-shop_004/total',
  'customer_support/11-cancel_before_shipment': '/order_items/ITEM-9100/refund_amount',
  'customer_support/14-cancel_split_payment': '/order_items/ITEM-9110/refund_amount',
  'customer_support/150-spare_cancel_in_transit_fee_decline':
    '/order_items/ITEM-10286/refund_amount',
  'customer_support/17-cancel_price_match': '/order_items/ITEM-9125/refund_amount',
  'travel/2-cancel_business_international': '/bookings/BK-1000/refund_amount',
  'travel/100-challenge_medical_yyze_intl_lt7d': '/bookings/BK-1000/price_paid',
  'travel/103-change_business_international_fare_diff_only': '/bookings/BK-1000/price_paid',
  'travel/104-change_domestic_gt7d_personal_fee_tier': '/bookings/BK-1000/price_paid',
};

/** The clean calls, two faults of the calls and two of the state that no call shows. */
export const VARIANTS: readonly StateVariant[] = [
  { name: 'clean', calls: (task) => replayVariant(task, 'clean') },
  { name: 'omit', calls: (task) => replayVariant(task, 'omitFirstMutation') },
  { name: 'duplicate', calls: (task) => replayVariant(task, 'duplicateFirstMutation') },
  withFault('alter value', ({ packet, variants }) => alterValue(packet, variants.clean?.final)),
  withFault('extra field', ({ packet }) => changeEmail(packet)),
];

/** The clean calls and, after them, a change that none of them shows. */
export function withFault(
  name: string,
  fault: (task: StateTask) => readonly PatchStep[],
): StateVariant {
  const calls = (task: StateTask) =>
    withFinal(replayVariant(task, 'clean'), (final) => applyPatch(final, fault(task)));
  return { name, calls, fault };
}

function alterValue({ domain, taskId }: Packet, final: Snapshot | undefined): readonly PatchStep[] {
  const path = ALTERED[`${domain}/${taskId}`];
  if (path === undefined) throw new Error(`no amount to alter is named for ${taskId}`);
  const [namespace = '', id = '', field = ''] = readPointer(path);
  return [{ op: 'replace', path, value: Number(final?.[namespace]?.[id]?.[field]) + 1 }];
}

/** A change that no call shows: the customer's own e-mail address. */
export function changeEmail({ domain, userId }: Packet): readonly PatchStep[] {
  const path = `/${domain === 'travel' ? 'users' : 'customers'}/${userId}/email`;
  return [{ op: 'replace', path, value: 'changed@example.com' }];
}

const { direct, errorReject, effectMatch } = CONDITIONS;

/** The paper's table (b), per condition: right states when clean, then wrong commits. */
const PAPER = [
  {
    condition: direct,
    clean: 36,
    wrong: { omit: 36, duplicate: 9, 'alter value': 36, 'extra field': 36 },
  },
  {
    condition: errorReject,
    clean: 36,
    wrong: { omit: 36, duplicate: 9, 'alter value': 36, 'extra field': 36 },
  },
  {
    condition: effectMatch,
    clean: 36,
    wrong: { omit: 0, duplicate: 0, 'alter value': 0, 'extra field': 0 },
  },
] as const;

const PART = '(b)';
/** A quick run of our own tools takes one task of so many. */
const QUICK_SHARE = 4;

export async function runIndependent(
  all: readonly StateTask[],
  raw: RawRecords,
  options: TableOptions,
): Promise<readonly Cell[]> {
  const { quick, progress, desk } = options;
  const repetitions = quick ? 1 : REPETITIONS;
  const chosen = all.filter(({ approved12 }) => approved12);
  const plan = {
    variants: VARIANTS,
    conditions: [direct, errorReject, effectMatch],
    repetitions,
    approve: (task: StateTask) => approveState(task.packet),
  };
  const recorded = await runStatePlan({ ...plan, part: 'b', tasks: chosen }, all, raw, progress);
  const some = chosen.filter((_, index) => !quick || index % QUICK_SHARE === 0);
  const part = 'b, own tools';
  const own = await runStatePlan({ ...plan, part, tasks: some, desk }, all, raw, progress);
  // Every run is one of as many repetitions, so fewer of them give that share of the paper's count.
  const paper: Judge = (name, value, count) =>
    quick
      ? exactly(name, value, 'runs', (count * repetitions) / REPETITIONS)
      : reproduced(name, value, 'runs', count);
  const names = new Set(own.map(({ task }) => task));
  const same = recorded.filter(({ task }) => names.has(task));
  return [
    ...tabulate(PART, recorded, paper),
    ...(quick
      ? compareTables(tabulate(`${PART} own tools,`, own, paper), tabulate(PART, same, paper))
      : tabulate(`${PART} own tools,`, own, paper)),
  ];
}

type Judge = (name: string, value: number, paper: number) => Cell;

/** The figures of our own tools on some of the tasks: they must be those of the recorded calls. */
export function compareTables(own: readonly Cell[], recorded: readonly Cell[]): readonly Cell[] {
  return own.map(({ name, value, unit }, at) =>
    exactly(name, value, unit, recorded[at]?.value ?? Number.NaN),
  );
}

/** The paper's table of these runs, every name with the same words in front. */
function tabulate(title: string, runs: readonly StateRun[], judge: Judge): readonly Cell[] {
  const cell: Judge = (name, value, paper) => judge(`${title} ${name}`, value, paper);
  const cells = PAPER.flatMap(({ condition, clean, wrong }) => [
    cell(`${condition.name}: clean, right state`, countRuns(runs, 'clean', condition).right, clean),
    ...Object.entries(wrong).map(([variant, paper]) =>
      cell(
        `${condition.name}: ${variant}, wrong commit`,
        countRuns(runs, variant, condition).wrong,
        paper,
      ),
    ),
  ]);
  // Repeated calls are harmless where trusting them left the approved state.
  const harmless = new Set(
    runs
      .filter(
        ({ variant, condition, isApproved }) =>
          variant === 'duplicate' && condition === 'direct' && isApproved,
      )
      .map(({ task }) => task),
  );
  const repeated = (condition: Condition, committed: boolean) =>
    runs.filter(
      (run) =>
        run.variant === 'duplicate' &&
        run.condition === condition.name &&
        harmless.has(run.task) &&
        run.committed === committed,
    ).length;
  const spoilt = VARIANTS.reduce(
    (sum, { name }) => sum + countRuns(runs, name, effectMatch).spoilt,
    0,
  );
  return [
    ...cells,
    cell('EffectMatch: harmless duplicate, committed', repeated(effectMatch, true), 27),
    cell('error-reject: harmless duplicate, blocked', repeated(errorReject, false), 12),
    exactly(`${title} EffectMatch: rejected, but durable`, spoilt, 'runs', 0),
  ];
}
