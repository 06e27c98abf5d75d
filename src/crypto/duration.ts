import { EffectMatchError } from '../errors.ts';

const UNIT_MS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/**
 * Converts `30s`, `10m`, `1h` or `2d` to milliseconds; a number is taken as milliseconds. Throws
 * `ERR_EM_USAGE` for anything else, for zero and for more than `maxMs`: a misread duration could
 * extend an approval.
 */
export function parseDuration(input: string | number, maxMs: number): number {
  const ms = typeof input === 'number' ? input : parseText(input);
  if (!Number.isSafeInteger(ms) || ms <= 0) {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      'a duration is a number with a unit, such as 30s, 10m, 1h or 2d',
    );
  }
  if (ms > maxMs) {
    throw new EffectMatchError(
      'ERR_EM_USAGE',
      `the duration is longer than the ${maxMs / 86_400_000} days allowed`,
    );
  }
  return ms;
}

function parseText(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? [];
  return Number(count) * (UNIT_MS[unit ?? ''] ?? Number.NaN);
}
