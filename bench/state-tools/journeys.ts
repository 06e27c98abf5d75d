// Searching for flights, hotels and cars, booking hotels and cars, and cancellation fees.
import type { StateRecord } from '../data/state-bench.ts';
import {
  type Answer,
  type Arguments,
  type Desk,
  HOUR_MS,
  nextId,
  number,
  type Row,
  text,
  timeOf,
} from './desk.ts';

/** Ranges of departure hours by name; the end is exclusive. The last range crosses midnight. */
const HOURS: { readonly [range: string]: readonly [number, number] } = {
  early_morning: [5, 8],
  morning: [8, 12],
  afternoon: [12, 17],
  evening: [17, 21],
  red_eye: [21, 5],
};
const CHECK_IN = '15:00:00';
const LUXURY_SURCHARGE = 50;

export function searchFlights(desk: Desk, given: Arguments): Answer {
  const found = desk.catalogue('flights').filter((flight) => isWanted(flight, given));
  if (found.length === 0)
    return { flights: [], message: 'No flights found matching your criteria.' };
  found.sort((a, b) => timeOf(a.departure_time) - timeOf(b.departure_time));
  const flights = found.map(({ delay_minutes: _, ...flight }) => flight);
  return { flights };
}

function isWanted(flight: StateRecord, given: Arguments): boolean {
  const departure = text(flight.departure_time);
  if (flight.origin !== given.origin || flight.destination !== given.destination) return false;
  if (!departure.startsWith(text(given.date))) return false;
  if (text(given.airline) !== '' && flight.airline_code !== given.airline) return false;
  if (!isWithin(HOURS[text(given.time_range)], Number(departure.slice(11, 13)))) return false;
  if (given.max_stops !== undefined && number(flight.stops) > number(given.max_stops)) return false;
  const prices = Object.values(flight.cabin_prices ?? {}).map(number);
  return given.max_price === undefined || isBelow(Math.min(...prices), given.max_price);
}

function isWithin(hours: readonly [number, number] | undefined, hour: number): boolean {
  if (hours === undefined) return true;
  const [from, before] = hours;
  return from < before ? hour >= from && hour < before : hour >= from || hour < before;
}

/** A negative limit means no limit. */
function isBelow(value: number, limit: Arguments[string]): boolean {
  return number(limit) < 0 || value <= number(limit);
}

/** A missing or empty argument matches everything. */
function isAsked(value: Arguments[string], asked: Arguments[string]): boolean {
  return text(asked) === '' || value === asked;
}

/** Hotels are listed by the code of the nearest airport. A city's name stands for that code. */
const AIRPORTS: { readonly [city: string]: string } = {
  atlanta: 'ATL',
  boston: 'BOS',
  chicago: 'ORD',
  denver: 'DEN',
  'las vegas': 'LAS',
  london: 'LHR',
  'los angeles': 'LAX',
  miami: 'MIA',
  'new york': 'JFK',
  paris: 'CDG',
  'san francisco': 'SFO',
  seattle: 'SEA',
  tokyo: 'NRT',
  toronto: 'YYZ',
};

export function searchHotels(desk: Desk, given: Arguments): Answer {
  const city = AIRPORTS[text(given.city).toLowerCase()] ?? given.city;
  const hotels = desk.rows('hotel_inventory').filter((hotel) => {
    if (hotel.city !== city || !isAsked(hotel.room_type, given.room_type)) return false;
    if (!isAsked(hotel.check_in, given.check_in)) return false;
    if (!isAsked(hotel.check_out, given.check_out)) return false;
    return given.max_price === undefined || isBelow(number(hotel.nightly_rate), given.max_price);
  });
  return hotels.length > 0
    ? { hotels }
    : { hotels, message: 'No hotels found matching your criteria.' };
}

export function searchCars(desk: Desk, given: Arguments): Answer {
  const cars = desk.rows('car_inventory').filter((car) => {
    if (car.pickup_location !== given.pickup_location) return false;
    if (!isAsked(car.car_class, given.car_class)) return false;
    if (!isAsked(car.pickup_date, given.pickup_date)) return false;
    if (!isAsked(car.dropoff_date, given.dropoff_date)) return false;
    const limit = given.max_daily_rate;
    return limit === undefined || isBelow(number(car.daily_rate), limit);
  });
  return cars.length > 0
    ? { car_rentals: cars }
    : { car_rentals: cars, message: 'No car rentals found matching your criteria.' };
}

export function bookHotel(desk: Desk, given: Arguments): Answer {
  const offer = desk.rows('hotel_inventory').find(({ hotel_id }) => hotel_id === given.hotel_id);
  if (offer === undefined) return { error: `Hotel ${given.hotel_id} not found.` };
  const id = nextId(desk, 'hotels', 'HR-');
  const head = { reservation_id: id, user_id: text(given.user_id) };
  desk.add('hotels', id, { ...head, ...offer, ...newReservation(desk) });
  return {
    status: 'confirmed',
    reservation_id: id,
    hotel_id: text(given.hotel_id),
    hotel_name: offer.hotel_name ?? null,
    total_price: offer.total_price ?? null,
    room_type: offer.room_type ?? null,
  };
}

export function bookCar(desk: Desk, given: Arguments): Answer {
  const offer = desk.rows('car_inventory').find(({ car_id }) => car_id === given.car_id);
  if (offer === undefined) return { error: `Car ${given.car_id} not found.` };
  const id = nextId(desk, 'car_rentals', 'CR-');
  const head = { rental_id: id, user_id: text(given.user_id) };
  desk.add('car_rentals', id, { ...head, ...offer, ...newReservation(desk) });
  return {
    status: 'confirmed',
    rental_id: id,
    car_id: text(given.car_id),
    company: offer.company ?? null,
    car_class: offer.car_class ?? null,
    total_price: offer.total_price ?? null,
  };
}

function newReservation(desk: Desk): Row {
  return {
    status: 'confirmed',
    booked_at: desk.data.now,
    cancellation_fee: null,
    refund_amount: null,
  };
}

interface Terms {
  readonly fee: number;
  readonly reason: string;
}

function hotelTerms(desk: Desk, hotel: Row): Terms {
  if (hotel.room_type === 'suite')
    return { fee: number(hotel.total_price), reason: 'Suite bookings are non-refundable.' };
  const opens = timeOf(`${hotel.check_in}T${CHECK_IN}`);
  const hours = (opens - timeOf(desk.data.now)) / HOUR_MS;
  const night = number(hotel.nightly_rate);
  if (hours >= 48) return { fee: 0, reason: 'Free cancellation (48+ hours before check-in).' };
  return hours >= 24
    ? { fee: Math.floor(night / 2), reason: '50% of first night (24-48 hours before check-in).' }
    : { fee: night, reason: 'Full first night (less than 24 hours before check-in).' };
}

function carTerms(desk: Desk, car: Row): Terms {
  const hours = (timeOf(car.pickup_date) - timeOf(desk.data.now)) / HOUR_MS;
  const surcharge = car.car_class === 'luxury' ? LUXURY_SURCHARGE : 0;
  const extra = surcharge > 0 ? ` + $${LUXURY_SURCHARGE} luxury surcharge` : '';
  return hours >= 24
    ? { fee: surcharge, reason: `Free cancellation (24+ hours before pickup)${extra}.` }
    : {
        fee: number(car.daily_rate) + surcharge,
        reason: `One day charge (less than 24 hours before pickup)${extra}.`,
      };
}

export function cancelHotel(desk: Desk, given: Arguments): Answer {
  const hotel = desk.row('hotels', given.reservation_id);
  const name = `Hotel reservation ${given.reservation_id}`;
  if (hotel === undefined) return { error: `${name} not found.` };
  const head = { reservation_id: text(given.reservation_id) };
  return cancelReservation(hotel, { name, head, terms: hotelTerms(desk, hotel), given });
}

export function cancelCar(desk: Desk, given: Arguments): Answer {
  const car = desk.row('car_rentals', given.rental_id);
  const name = `Car rental ${given.rental_id}`;
  if (car === undefined) return { error: `${name} not found.` };
  const head = { rental_id: text(given.rental_id) };
  return cancelReservation(car, { name, head, terms: carTerms(desk, car), given });
}

/** Previews a cancellation or, if confirmed, performs it. A preview is not required. */
export function cancelReservation(
  reservation: Row,
  asked: {
    readonly name: string;
    readonly head: Answer;
    readonly terms: Terms;
    readonly given: Arguments;
    /** The refund is this amount less the fee. Defaults to the total price. */
    readonly paid?: number;
  },
): Answer {
  const { name, head, terms, given } = asked;
  if (reservation.status === 'cancelled') return { error: `${name} is already cancelled.` };
  const paid = asked.paid ?? number(reservation.total_price);
  const refund = Math.max(0, paid - terms.fee);
  const sums = { cancellation_fee: terms.fee, refund_amount: refund, reason: terms.reason };
  if (given.confirm !== true) return { status: 'preview', ...head, ...sums };
  reservation.status = 'cancelled';
  reservation.cancellation_fee = terms.fee;
  reservation.refund_amount = refund;
  return { status: 'cancelled', ...head, ...sums };
}

export function noCabin(
  { flight_id, cabin_prices }: StateRecord,
  cabin: Arguments[string],
): Answer {
  const names = Object.keys(cabin_prices ?? {})
    .sort()
    .join(', ');
  return {
    error: `Cabin class '${cabin}' not available on flight ${flight_id}. Available: ${names}.`,
  };
}

/** Bookings can be cancelled or changed free for one day, on international routes for two. */
export function isNew(desk: Desk, booking: Row, flight: StateRecord): boolean {
  const hours = (timeOf(desk.data.now) - timeOf(booking.booked_at)) / HOUR_MS;
  return hours <= (flight.route_type === 'international' ? 48 : 24);
}
