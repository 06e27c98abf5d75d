// Changing a booking: another flight, another cabin, preferences, bags, delay compensation.
import type { StateRecord } from '../data/state-bench.ts';
import {
  type Answer,
  type Arguments,
  DAY_MS,
  type Desk,
  number,
  type Row,
  text,
  timeOf,
} from './desk.ts';
import { isNew, noCabin } from './journeys.ts';

const BAG_FEE = 35;
const NEAR_DAYS = 7;
const FREE_REASONS: ReadonlySet<string> = new Set([
  'jury_duty',
  'military',
  'schedule_change',
  'weather',
]);
/** The share of the fee to pay, by reason. */
const SHARE: { readonly [reason: string]: number } = { medical: 1 / 2, bereavement: 1 / 4 };
const UPGRADES: { readonly [cabin: string]: string } = { economy: 'business', business: 'first' };
const PREFERENCES = [
  'seat_type',
  'meal_preference',
  'add_wifi',
  'add_extra_legroom',
  'add_insurance',
] as const;

/** The price of a flight or cabin change. */
interface Quote {
  readonly kind: 'quote';
  readonly flight: StateRecord;
  readonly cabin: string;
  readonly changeFee: number | null;
  readonly difference: number;
  readonly price: number;
}

type Quoted = Quote | { readonly kind: 'refused'; readonly answer: Answer };

function refused(answer: Answer): Quoted {
  return { kind: 'refused', answer };
}

export function changeBooking(desk: Desk, given: Arguments): Answer {
  const booking = desk.row('bookings', given.booking_id);
  if (booking === undefined) return { error: `Booking ${given.booking_id} not found.` };
  if (booking.status === 'cancelled')
    return { error: `Booking ${given.booking_id} is already cancelled.` };
  const quote = quoteChange(desk, booking, given);
  if (quote?.kind === 'refused') return quote.answer;
  if (quote !== undefined && given.confirm === false)
    return {
      status: 'preview',
      booking_id: text(given.booking_id),
      flight_id: quote.flight.flight_id ?? null,
      change_fee: quote.changeFee,
      fare_difference: quote.difference,
      price_paid: quote.price,
    };
  const changed = quote === undefined ? [] : applyQuote(desk, booking, quote);
  if (quote === undefined && text(given.flight_id) !== '') priceAgain(desk, booking, given);
  for (const name of PREFERENCES) {
    const wanted = given[name];
    if (wanted === undefined || wanted === booking[name]) continue;
    booking[name] = wanted;
    changed.push(name);
  }
  changed.push(...changeBags(booking, given));
  const wrong = compensate(desk, booking, given, changed);
  if (wrong !== undefined) return { error: wrong };
  if (changed.includes('flight_id')) changed.push('change_reason');
  return {
    status: 'updated',
    booking_id: text(given.booking_id),
    changes_applied: changed,
    price_paid: booking.price_paid ?? null,
    ...(booking.change_fee !== null && { change_fee: booking.change_fee ?? null }),
    ...(booking.fare_difference !== null && { fare_difference: booking.fare_difference ?? null }),
  };
}

/** Returns undefined if neither the flight nor the cabin changes. */
function quoteChange(desk: Desk, booking: Row, given: Arguments): Quoted | undefined {
  const current = desk.find('flights', 'flight_id', booking.flight_id);
  const wanted = text(given.flight_id) === '' ? booking.flight_id : given.flight_id;
  const flight = desk.find('flights', 'flight_id', wanted);
  if (flight === undefined || current === undefined)
    return refused({ error: `Flight ${wanted} not found.` });
  const isMoved = wanted !== booking.flight_id;
  const cabin =
    text(given.cabin_class) === '' ? text(booking.cabin_class) : text(given.cabin_class);
  const isRaised = cabin !== booking.cabin_class;
  if (!isMoved && !isRaised) return undefined;
  const fare = (flight.cabin_prices as StateRecord)[cabin];
  if (fare === undefined) return refused(noCabin(flight, cabin));
  const bags = number(booking.paid_checked_bags) * BAG_FEE;
  const fees = number(booking.change_fee) + bags;
  const difference =
    number(fare) - (number(booking.price_paid) - fees) + number(booking.fare_difference);
  if (!isMoved) return quoteUpgrade(booking, { flight, cabin, difference, fare: number(fare) });
  if (booking.cabin_class === 'basic_economy' && !isNew(desk, booking, current))
    return refused({
      status: 'rejected',
      reason: 'Basic economy fares cannot be changed after the 24-hour window',
    });
  const changeFee = feeFor(desk, booking, current, text(given.change_reason));
  return {
    kind: 'quote',
    flight,
    cabin,
    changeFee,
    difference,
    price: number(fare) + changeFee + bags,
  };
}

function quoteUpgrade(
  booking: Row,
  asked: { flight: StateRecord; cabin: string; difference: number; fare: number },
): Quoted {
  const { flight, cabin, difference, fare } = asked;
  const from = text(booking.cabin_class);
  if (from === 'basic_economy')
    return refused({
      status: 'rejected',
      reason: 'Basic economy fares are not eligible for upgrades',
    });
  if (UPGRADES[from] !== cabin)
    return refused({
      status: 'rejected',
      reason: `Direct upgrade from ${from} to ${cabin} is not available`,
    });
  return { kind: 'quote', flight, cabin, changeFee: null, difference, price: fare };
}

/** The fee depends on the whole days until the flight that was booked first, even after changes. */
function feeFor(desk: Desk, booking: Row, current: StateRecord, reason: string): number {
  if (booking.cabin_class === 'business' || booking.cabin_class === 'first') return 0;
  if (FREE_REASONS.has(reason) || isNew(desk, booking, current)) return 0;
  const booked = desk.texts.get(bookedKey(booking)) ?? text(current.flight_id);
  const first = desk.find('flights', 'flight_id', booked) ?? current;
  const days = Math.floor((timeOf(first.departure_time) - timeOf(desk.data.now)) / DAY_MS);
  const base = first.route_type === 'international' ? 100 : 75;
  const fee = days > NEAR_DAYS ? base : base * 2;
  return Math.floor(fee * (SHARE[reason] ?? 1));
}

/** Recalculates the fee of an earlier flight change for the reason that is given now. */
function priceAgain(desk: Desk, booking: Row, given: Arguments): void {
  const current = desk.find('flights', 'flight_id', booking.flight_id);
  if (booking.change_fee === null || current === undefined) return;
  const fee = feeFor(desk, booking, current, text(given.change_reason));
  booking.price_paid = number(booking.price_paid) - number(booking.change_fee) + fee;
  booking.change_fee = fee;
}

function bookedKey({ booking_id }: Row): string {
  return `booked ${booking_id}`;
}

function applyQuote(desk: Desk, booking: Row, quote: Quote): string[] {
  const changed: string[] = [];
  const { flight, cabin, changeFee, difference, price } = quote;
  if (flight.flight_id !== booking.flight_id) {
    const key = bookedKey(booking);
    if (!desk.texts.has(key)) desk.texts.set(key, text(booking.flight_id));
    booking.flight_id = flight.flight_id ?? null;
    changed.push('flight_id');
  }
  if (cabin !== booking.cabin_class) {
    booking.cabin_class = cabin;
    changed.push('cabin_class');
  }
  if (changeFee !== null) {
    booking.change_fee = changeFee;
    booking.fare_difference = difference;
  }
  booking.price_paid = price;
  return changed;
}

function changeBags(booking: Row, { paid_checked_bags: wanted }: Arguments): string[] {
  const before = number(booking.paid_checked_bags);
  if (wanted === undefined || wanted === before) return [];
  booking.price_paid = number(booking.price_paid) + (number(wanted) - before) * BAG_FEE;
  booking.paid_checked_bags = number(wanted);
  return ['paid_checked_bags'];
}

/** Checks the compensation against the flight's delay, and returns an error if it is wrong. */
function compensate(
  desk: Desk,
  booking: Row,
  given: Arguments,
  changed: string[],
): string | undefined {
  const asked = given.delay_compensation;
  if (asked === undefined) return undefined;
  const flight = desk.find('flights', 'flight_id', booking.flight_id);
  const delay = number(flight?.delay_minutes);
  const due = delay >= 240 ? 'full' : delay >= 120 ? 'meal_voucher' : 'none';
  if (asked !== 'none' && asked !== due) {
    const why = delay === 0 ? 'Flight is not delayed.' : `Flight is delayed ${delay} minutes.`;
    return `Incorrect delay_compensation '${asked}'. ${why}`;
  }
  const value = asked === 'none' ? null : asked;
  if (value === booking.delay_compensation) return undefined;
  booking.delay_compensation = value;
  changed.push('delay_compensation');
  return undefined;
}
