/**
 * The instants that a timestamp may mean. A text without milliseconds was truncated, so it means a
 * short interval.
 */
export interface Instant {
  readonly earliestMs: number;
  readonly latestMs: number;
}

const FORM =
  /^(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)?| (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(?:\+00)?)$/;

/**
 * Reads a UTC timestamp as databases write it: `2026-01-31T10:00:00.5Z` or `2026-01-31
 * 10:00:00.5+00`, with optional zone and fraction. Undefined for any other text and for dates that
 * do not exist. `Date.parse` would accept local times and other formats, and an approval must not
 * depend on the time zone of a process.
 */
export function readInstant(text: string): Instant | undefined {
  const found = FORM.exec(text);
  if (found === null) return undefined;
  const [, year, month, day] = found;
  const [hour, minute, second, fraction = ''] =
    found[4] === undefined ? found.slice(8) : found.slice(4);
  const date = [Number(year), Number(month), Number(day)] as const;
  const time = [Number(hour), Number(minute), Number(second)] as const;
  if (!isDate(...date) || time[0] > 23 || time[1] > 59 || time[2] > 59) return undefined;
  const seconds = daysSinceEpoch(...date) * 86_400 + time[0] * 3600 + time[1] * 60 + time[2];
  const earliestMs = seconds * 1000 + Number(fraction.slice(0, 3).padEnd(3, '0'));
  return { earliestMs, latestMs: earliestMs + 10 ** Math.max(0, 3 - fraction.length) - 1 };
}

function isDate(year: number, month: number, day: number): boolean {
  const last = month === 2 ? (isLeap(year) ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
  return month >= 1 && month <= 12 && day >= 1 && day <= last;
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/**
 * Counts years from March, so that the leap day is the last day of its year. There are 719,468 days
 * before 1970-01-01.
 */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const marchYear = month <= 2 ? year - 1 : year;
  const leapDays =
    Math.floor(marchYear / 4) - Math.floor(marchYear / 100) + Math.floor(marchYear / 400);
  const dayOfYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return marchYear * 365 + leapDays + dayOfYear - 719_468;
}
