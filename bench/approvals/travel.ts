import type { Packet, Snapshot, StateRecord } from '../data/state-bench.ts';
import { demandSaid, Expected, instantOf, lookUp, numberOf, textOf } from './draft.ts';

type Reason = 'personal' | 'medical';

/** What travellers ask for, read from the messages by hand. */
type TripRequest =
  | {
      readonly kind: 'cancel';
      readonly says: readonly string[];
      readonly bookings: readonly string[];
      hotel: string;
    }
  | {
      readonly kind: 'change';
      readonly says: readonly string[];
      readonly booking: string;
      /** The date of the new flight. Cabin, route and preferences do not change. */
      readonly date: string;
      readonly reason: Reason;
    };

const REQUESTS: { readonly [taskId: string]: TripRequest } = {
  '2-cancel_business_international': {
    kind: 'cancel',
    says: [
      'cancel the entire London trip',
      'both flights and the hotel',
      'BK-1000',
      'BK-1003',
      'HR-0100',
    ],
    bookings: ['BK-1000', 'BK-1003'],
    hotel: 'HR-0100',
  },
  '100-challenge_medical_yyze_intl_lt7d': {
    kind: 'change',
    says: ['medical procedure', 'BK-1000', 'June 27', 'same economy cabin'],
    booking: 'BK-1000',
    date: '2026-06-27',
    reason: 'medical',
  },
  '103-change_business_international_fare_diff_only': {
    kind: 'change',
    says: ['personal schedule', 'BK-1000', 'June 29'],
    booking: 'BK-1000',
    date: '2026-06-29',
    reason: 'personal',
  },
  '104-change_domestic_gt7d_personal_fee_tier': {
    kind: 'change',
    says: ['my plans changed', 'BK-1000', 'July 2'],
    booking: 'BK-1000',
    date: '2026-07-02',
    reason: 'personal',
  },
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const LONG_DELAY_MINUTES = 240;

/**
 * The bookings and reservations after the request, with fees and refunds by the rules of the
 * airline and the hotel.
 */
export function approveTravel(packet: Packet): Snapshot {
  const request = REQUESTS[packet.taskId];
  if (request === undefined) throw new Error(`no request is specified for ${packet.taskId}`);
  demandSaid(packet, request.says);
  const expected = new Expected(packet.initial);
  if (request.kind === 'change') changeFlight(packet, expected, request);
  else {
    for (const id of request.bookings) cancelFlight(packet, expected, id);
    cancelHotel(packet, expected, request.hotel);
  }
  return expected.state;
}

function ownBooking({ userId }: Packet, expected: Expected, id: string): StateRecord {
  const booking = expected.record('bookings', id);
  if (booking.user_id !== userId || booking.status !== 'confirmed')
    throw new Error(`${id} cannot be changed`);
  return booking;
}

function cancelFlight(packet: Packet, expected: Expected, id: string): void {
  const booking = ownBooking(packet, expected, id);
  const flight = lookUp(packet, 'flights', 'flight_id', textOf(booking.flight_id));
  const paid = numberOf(booking.price_paid);
  const fee = cancellationFee(packet, booking, flight);
  expected.change('bookings', id, {
    status: 'cancelled',
    cancellation_fee: fee,
    refund_amount: paid - fee,
  });
}

function cancellationFee(packet: Packet, booking: StateRecord, flight: StateRecord): number {
  const isFree =
    isFreshlyBooked(packet, booking, flight) ||
    booking.add_insurance === true ||
    booking.cabin_class === 'first' ||
    flight.status === 'cancelled' ||
    numberOf(flight.delay_minutes) >= LONG_DELAY_MINUTES;
  if (isFree) return 0;
  const paid = numberOf(booking.price_paid);
  const share = (percent: number) => Math.floor((paid * percent) / 100);
  const isAbroad = flight.route_type === 'international';
  if (booking.cabin_class === 'business') return share(isAbroad ? 8 : 5);
  return isAbroad ? Math.max(75, share(20)) : Math.max(50, share(15));
}

/** The grace period after booking: one day, or two days for international flights. */
function isFreshlyBooked(
  { now }: Packet,
  { booked_at }: StateRecord,
  { route_type }: StateRecord,
): boolean {
  const hours = (instantOf(now) - instantOf(textOf(booked_at))) / HOUR_MS;
  return hours <= (route_type === 'international' ? 48 : 24);
}

/**
 * Standard rooms: free until two days before 15:00 on the check-in day, then half a night, then one
 * night.
 */
function cancelHotel({ now, userId }: Packet, expected: Expected, id: string): void {
  const { user_id, room_type, check_in, nightly_rate, total_price } = expected.record('hotels', id);
  if (user_id !== userId || room_type !== 'standard')
    throw new Error(`${id} cannot be cancelled by this rule`);
  const hours = (instantOf(`${textOf(check_in)}T15:00:00`) - instantOf(now)) / HOUR_MS;
  const night = numberOf(nightly_rate);
  const fee = hours >= 48 ? 0 : hours >= 24 ? Math.floor(night / 2) : night;
  expected.change('hotels', id, {
    status: 'cancelled',
    cancellation_fee: fee,
    refund_amount: numberOf(total_price) - fee,
  });
}

function changeFlight(
  packet: Packet,
  expected: Expected,
  { booking: id, date, reason }: Extract<TripRequest, { kind: 'change' }>,
): void {
  const booking = ownBooking(packet, expected, id);
  const old = lookUp(packet, 'flights', 'flight_id', textOf(booking.flight_id));
  const fee = changeFee(packet, booking, old, reason);
  const next = flightOn(packet, old, date);
  const price = numberOf((next.cabin_prices as StateRecord)[textOf(booking.cabin_class)]);
  if (booking.paid_checked_bags !== 0 || booking.change_fee !== null)
    throw new Error('the rule is stated without bags');
  expected.change('bookings', id, {
    flight_id: textOf(next.flight_id),
    change_fee: fee,
    fare_difference: price - numberOf(booking.price_paid),
    price_paid: price + fee,
  });
}

/** The only flight on that day and the same route. */
function flightOn({ reference }: Packet, old: StateRecord, date: string): StateRecord {
  const found = (reference.flights ?? []).filter(
    ({ origin, destination, departure_time }) =>
      origin === old.origin &&
      destination === old.destination &&
      textOf(departure_time).startsWith(date),
  );
  const [flight] = found;
  if (flight === undefined || found.length > 1)
    throw new Error(`${found.length} flights leave on ${date}`);
  return flight;
}

/**
 * In economy the fee depends on the whole days left before the old flight. Illness halves the fee.
 */
function changeFee(packet: Packet, booking: StateRecord, old: StateRecord, reason: Reason): number {
  if (booking.cabin_class !== 'economy' || isFreshlyBooked(packet, booking, old)) return 0;
  const days = Math.floor((instantOf(textOf(old.departure_time)) - instantOf(packet.now)) / DAY_MS);
  const isAbroad = old.route_type === 'international';
  const fee = days > 7 ? (isAbroad ? 100 : 75) : isAbroad ? 200 : 150;
  return reason === 'medical' ? Math.floor(fee / 2) : fee;
}
