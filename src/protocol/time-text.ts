/**
 * The instants that a timestamp may mean. A text without milliseconds was truncated, so it means a
 * short interval.
 */
export interface Instant {
  readonly earliestMs: number;
  readonly latestMs: number;
}

const FORM =
  /^((\d{4})-(\d\d)-(\d\d))(?:T([\d:]{8})(?:\.(\d{1,9}))?(?:Z|\+00:00)?| ([\d:]{8})(?:\.(\d{1,9}))?(?:\+00)?)$/;

/**
 * Reads a UTC timestamp as databases write it: `2026-01-31T10:00:00.5Z` or `2026-01-31
 * 10:00:00.5+00`, with optional zone and fraction. Undefined for any other text and for dates that
 * do not exist. `Date.parse` alone would accept local times and other formats, and an approval must
 * not depend on the time zone of a process.
 */
export function readInstant(text: string): Instant | undefined {
  const found = FORM.exec(text);
  if (found === null) return undefined;
  const [, date, year, month, day] = found;
  const [time = '', fraction = ''] = found[5] === undefined ? found.slice(7) : found.slice(5);
  // ISO 8601 in full and with a zone: the one form that every engine reads alike.
  const ms = Date.parse(`${date}T${time}Z`);
  const exists = Number(day) <= lastDay(Number(year), Number(month)) && !time.startsWith('24');
  if (Number.isNaN(ms) || !exists) return undefined;
  const earliestMs = ms + Number(fraction.slice(0, 3).padEnd(3, '0'));
  return { earliestMs, latestMs: earliestMs + 10 ** Math.max(0, 3 - fraction.length) - 1 };
}

/** `Date.parse` may read a day that a month does not have as one of the next month. */
function lastDay(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  if (month === 2) return isLeap ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}
