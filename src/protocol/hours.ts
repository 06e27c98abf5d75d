import { checked, choice, closed, form, type Infer, list, optional } from './schema.ts';

export const DAYS = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;
export type Day = (typeof DAYS)[number];

const timeSchema = form(/^(?:(?:[01]\d|2[0-3]):[0-5]\d|24:00)$/, 'a time from 00:00 to 24:00');

/**
 * A daily window in local time, including `from` but not `to`. A window that ends before it begins
 * spans midnight and belongs to the day on which it begins.
 */
export const windowSchema = checked(
  closed({
    from: timeSchema,
    to: timeSchema,
    /**
     * A name from the time zone database, such as `Europe/Berlin`. There is no default, because
     * servers differ.
     */
    zone: form(/^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/, 'a time zone such as Europe/Berlin'),
    /** Every day if absent. */
    days: optional(list(choice(...DAYS), 1, 7)),
  }),
  ({ from, to }) => from !== to,
  'from and to are the same; a whole day is 00:00 to 24:00',
);
export type Window = Infer<typeof windowSchema>;

/** Day and minute in the local time of a zone. */
interface LocalTime {
  readonly day: Day;
  readonly minute: number;
  readonly text: string;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/**
 * The local time of a zone at an instant, including daylight saving time. Throws a RangeError for
 * an unknown zone.
 */
export function localTime(zone: string, atMs: number): LocalTime {
  const options = {
    timeZone: zone,
    weekday: 'short',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  } as const;
  const format = formats.get(zone) ?? new Intl.DateTimeFormat('en-US', options);
  formats.set(zone, format);
  const parts = new Map(format.formatToParts(atMs).map(({ type, value }) => [type, value]));
  const [hour, minute] = [Number(parts.get('hour')), Number(parts.get('minute'))];
  const day = DAYS.find((name) => name === parts.get('weekday')?.toLowerCase()) ?? 'mon';
  return {
    day,
    minute: hour * 60 + minute,
    text: `${day} ${parts.get('hour')}:${parts.get('minute')} in ${zone}`,
  };
}

/** Whether an instant lies in the window. */
export function isWithin(window: Window, atMs: number): boolean {
  const { day, minute } = localTime(window.zone, atMs);
  const [from, to] = [minuteOf(window.from), minuteOf(window.to)];
  const days: readonly Day[] = window.days ?? DAYS;
  if (from < to) return days.includes(day) && minute >= from && minute < to;
  const dayBefore = DAYS[(DAYS.indexOf(day) + 6) % 7] ?? day;
  return (days.includes(day) && minute >= from) || (days.includes(dayBefore) && minute < to);
}

/** A window in words. */
export function describeWindow({ from, to, zone, days }: Window): string {
  return `${days === undefined ? 'daily' : days.join(' ')} ${from}-${to} (${zone})`;
}

function minuteOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number);
  return hours * 60 + minutes;
}
