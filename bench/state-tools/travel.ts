// The travel desk's business tools. Hotels and cars are in journeys.ts.
import type { StateRecord } from '../data/state-bench.ts';
import { changeBooking } from './changes.ts';
import {
  type Answer,
  type Arguments,
  type Desk,
  nextId,
  number,
  policyTool,
  type Row,
  type StateTools,
  text,
  timeOf,
} from './desk.ts';
import {
  bookCar,
  bookHotel,
  cancelCar,
  cancelHotel,
  cancelReservation,
  isNew,
  noCabin,
  searchCars,
  searchFlights,
  searchHotels,
} from './journeys.ts';

const BAG_FEE = 35;
const POINTS_ROUNDED_TO = 100;
const DELAY_FREE_FROM = 240;

function getUser(desk: Desk, { user_id }: Arguments): Answer {
  const user = desk.row('users', user_id);
  if (user === undefined) return { error: `User ${user_id} not found.` };
  const { budget: _, preferences: __, ...shown } = user;
  return shown;
}

function getReservations(desk: Desk, { user_id }: Arguments): Answer {
  const own = (namespace: string, key: string) =>
    desk
      .rows(namespace)
      .filter((row) => row.user_id === user_id)
      .map((row) => row[key] ?? null);
  return {
    user_id: text(user_id),
    booking_ids: own('bookings', 'booking_id'),
    hotel_ids: own('hotels', 'reservation_id'),
    car_rental_ids: own('car_rentals', 'rental_id'),
  };
}

function getBooking(desk: Desk, { booking_id }: Arguments): Answer {
  const booking = desk.row('bookings', booking_id);
  if (booking === undefined) return { error: `Booking ${booking_id} not found.` };
  const flight = desk.find('flights', 'flight_id', booking.flight_id);
  if (flight === undefined) return { ...booking };
  const shown = ['origin', 'destination', 'departure_time', 'route_type'] as const;
  const facts = shown.map((field) => [field, flight[field] ?? null]);
  return { ...booking, ...Object.fromEntries(facts) };
}

function getFlightStatus(desk: Desk, { flight_id }: Arguments): Answer {
  const flight = desk.find('flights', 'flight_id', flight_id);
  if (flight === undefined) return { error: `Flight ${flight_id} not found.` };
  const delay = number(flight.delay_minutes);
  const departure = text(flight.departure_time);
  const estimated = new Date(timeOf(departure) + delay * 60_000).toISOString().slice(0, 19);
  return {
    flight_id: text(flight_id),
    status: flight.status ?? null,
    origin: flight.origin ?? null,
    destination: flight.destination ?? null,
    scheduled_departure: departure,
    scheduled_arrival: flight.arrival_time ?? null,
    ...(delay > 0 && { delay_minutes: delay, estimated_departure: estimated }),
  };
}

function reservationOf(namespace: string, key: string, name: string) {
  return (desk: Desk, given: Arguments): Answer => {
    const found = desk.row(namespace, given[key]);
    return found === undefined ? { error: `${name} ${given[key]} not found.` } : { ...found };
  };
}

function createBooking(desk: Desk, given: Arguments): Answer {
  const flight = desk.find('flights', 'flight_id', given.flight_id);
  const user = desk.row('users', given.user_id);
  if (flight === undefined) return { error: `Flight ${given.flight_id} not found.` };
  if (user === undefined) return { error: `User ${given.user_id} not found.` };
  const fare = (flight.cabin_prices as StateRecord)[text(given.cabin_class)];
  if (fare === undefined) return noCabin(flight, given.cabin_class);
  const price = number(fare) + number(given.paid_checked_bags) * BAG_FEE;
  const payment = pay(flight, user, given, price);
  if ('error' in payment) return payment;
  const { points, cash } = payment;
  user.loyalty_points = number(user.loyalty_points) - points;
  const id = nextId(desk, 'bookings', 'BK-');
  desk.add('bookings', id, newBooking(desk, id, given, { points, cash }));
  return {
    status: 'confirmed',
    booking_id: id,
    flight_id: text(given.flight_id),
    cabin_class: text(given.cabin_class),
    price,
    payment_method: text(given.payment_method),
    ...(given.payment_method !== 'credit_card' && { points_used: points, cash_charged: cash }),
  };
}

type Payment = { readonly points: number; readonly cash: number } | { readonly error: string };

/**
 * A point is worth 1 cent, or 1.5 cents on international routes. A payment with points and cash
 * must use all of the customer's points, up to the price.
 */
function pay(flight: StateRecord, user: Row, given: Arguments, price: number): Payment {
  if (given.payment_method === 'credit_card') return { points: 0, cash: price };
  const cents = flight.route_type === 'international' ? 3 : 2;
  const whole = Math.ceil((price * 2) / cents) * POINTS_ROUNDED_TO;
  const balance = number(user.loyalty_points);
  const isMixed = given.payment_method === 'points_plus_cash';
  const points = isMixed ? Math.min(whole, balance) : whole;
  if (number(given.points_used) !== points || points > balance)
    return { error: 'Incorrect points_used value.' };
  return { points, cash: isMixed ? number(given.cash_amount) : 0 };
}

function newBooking(
  desk: Desk,
  id: string,
  given: Arguments,
  { points, cash }: { readonly points: number; readonly cash: number },
): Row {
  return {
    booking_id: id,
    user_id: text(given.user_id),
    flight_id: text(given.flight_id),
    status: 'confirmed',
    cabin_class: text(given.cabin_class),
    seat_type: text(given.seat_type),
    meal_preference: text(given.meal_preference),
    add_wifi: given.add_wifi ?? false,
    add_extra_legroom: given.add_extra_legroom ?? false,
    add_insurance: given.add_insurance ?? false,
    price_paid: cash,
    payment_method: text(given.payment_method),
    points_used: points,
    cash_amount: cash,
    booked_at: desk.data.now,
    cancellation_fee: null,
    refund_amount: null,
    change_fee: null,
    fare_difference: null,
    delay_compensation: null,
    paid_checked_bags: number(given.paid_checked_bags),
  };
}

function cancellationTerms(desk: Desk, booking: Row, flight: StateRecord) {
  const paid = number(booking.price_paid);
  const isAbroad = flight.route_type === 'international';
  const free = (reason: string) => ({ fee: 0, reason });
  if (flight.status === 'cancelled') return free('Flight cancelled by the airline');
  if (number(flight.delay_minutes) >= DELAY_FREE_FROM)
    return free('Flight delayed 4 hours or more');
  if (isNew(desk, booking, flight))
    return free(`Within ${isAbroad ? 48 : 24}-hour free cancellation window`);
  if (booking.add_insurance === true) return free('Travel insurance covers cancellation');
  if (booking.cabin_class === 'first') return free('First class: free cancellation');
  const share = (percent: number) => Math.floor((paid * percent) / 100);
  if (booking.cabin_class === 'business') {
    const percent = isAbroad ? 8 : 5;
    const name = isAbroad ? 'International business' : 'Business';
    const fee = share(percent);
    return { fee, reason: `${name} cancellation fee: ${percent}% of $${paid} = $${fee}` };
  }
  const [least, percent] = isAbroad ? [75, 20] : [50, 15];
  const name = isAbroad ? 'International economy' : 'Economy';
  const fee = Math.max(least, share(percent));
  const reason = `${name} cancellation fee: max($${least}, ${percent}% of $${paid}) = $${fee}`;
  return { fee, reason };
}

function cancelBooking(desk: Desk, given: Arguments): Answer {
  const booking = desk.row('bookings', given.booking_id);
  const name = `Booking ${given.booking_id}`;
  const flight = desk.find('flights', 'flight_id', booking?.flight_id);
  if (booking === undefined || flight === undefined) return { error: `${name} not found.` };
  const isFixed = booking.cabin_class === 'basic_economy' && booking.add_insurance !== true;
  if (booking.status !== 'cancelled' && isFixed && !isNew(desk, booking, flight))
    return { status: 'rejected', reason: 'Basic economy fares are not cancellable' };
  const head = { booking_id: text(given.booking_id) };
  const terms = cancellationTerms(desk, booking, flight);
  const isPoints = given.confirm === true && booking.payment_method !== 'credit_card';
  const paid = number(isPoints ? booking.cash_amount : booking.price_paid);
  const answer = cancelReservation(booking, { name, head, terms, given, paid });
  if (isPoints && answer.status === 'cancelled') returnPoints(desk, booking);
  return answer;
}

function returnPoints(desk: Desk, booking: Row): void {
  const user = desk.row('users', booking.user_id);
  if (user === undefined) return;
  user.loyalty_points = number(user.loyalty_points) + number(booking.points_used);
}

export const travelTools: StateTools = {
  search_flights: searchFlights,
  get_user_details: getUser,
  get_user_reservations: getReservations,
  get_booking: getBooking,
  get_flight_status: getFlightStatus,
  get_policies: policyTool,
  create_booking: createBooking,
  update_booking: changeBooking,
  cancel_booking: cancelBooking,
  search_hotels: searchHotels,
  book_hotel: bookHotel,
  get_hotel_reservation: reservationOf('hotels', 'reservation_id', 'Hotel reservation'),
  cancel_hotel_reservation: cancelHotel,
  search_car_rentals: searchCars,
  book_car_rental: bookCar,
  get_car_rental: reservationOf('car_rentals', 'rental_id', 'Car rental'),
  cancel_car_rental: cancelCar,
};
