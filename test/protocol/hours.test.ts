// Goal: a window of hours means what the clocks on the wall of its zone say, over midnight and when
// they are changed. Method: instants worked out by hand from the rules of Europe/Berlin, and
// arithmetic on the epoch as oracle for UTC.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DAYS, isWithin, type Window, windowSchema } from '../../src/protocol/hours.ts';
import { findUntimely } from '../../src/protocol/limits.ts';
import { copyOnce } from '../../src/protocol/schema.ts';

const berlin = (from: string, to: string, ...days: Window['days'] & {}): Window => ({
  from,
  to,
  zone: 'Europe/Berlin',
  ...(days.length > 0 && { days }),
});

function assertHours(window: Window, inside: readonly string[], outside: readonly string[]): void {
  for (const at of inside) assert.ok(isWithin(window, Date.parse(at)), `${at} is inside`);
  for (const at of outside) assert.ok(!isWithin(window, Date.parse(at)), `${at} is outside`);
}

test('office hours begin and end by the clock on the wall, in winter and in summer', () => {
  // 5 January and 6 July 2026 are Mondays; Berlin is one hour ahead of UTC in winter and two in
  // summer.
  assertHours(
    berlin('08:00', '18:00', 'mon'),
    [
      '2026-01-05T07:00:00.000Z',
      '2026-01-05T16:59:59.999Z',
      '2026-07-06T06:00:00.000Z',
      '2026-07-06T15:59:59.999Z',
    ],
    [
      '2026-01-05T06:59:59.999Z',
      '2026-01-05T17:00:00.000Z',
      '2026-07-06T05:59:59.999Z',
      '2026-07-06T16:00:00.000Z',
    ],
  );
});

test('days are those of the zone, not of UTC', () => {
  // Sunday 23:30 in UTC is Monday 00:30 in Berlin.
  assertHours(
    berlin('00:00', '24:00', 'mon'),
    ['2026-01-04T23:30:00Z'],
    ['2026-01-05T23:30:00Z', '2026-01-04T22:30:00Z'],
  );
});

test('a window over midnight belongs to the day on which it begins', () => {
  // 9 January 2026 is a Friday.
  assertHours(
    berlin('22:00', '06:00', 'fri'),
    ['2026-01-09T21:00:00Z', '2026-01-09T23:30:00Z', '2026-01-10T04:59:59.999Z'],
    [
      '2026-01-09T20:59:59.999Z',
      '2026-01-10T05:00:00Z',
      '2026-01-10T21:30:00Z',
      '2026-01-09T04:30:00Z',
    ],
  );
  // Sunday night goes over into Monday: the week has no seam.
  assertHours(berlin('22:00', '06:00', 'sun'), ['2026-01-12T03:00:00Z'], ['2026-01-11T03:00:00Z']);
});

test('an hour that is skipped in spring never comes, and one that comes twice in autumn counts twice', () => {
  const night = berlin('02:00', '03:00');
  assertHours(
    night,
    [],
    ['2026-03-29T00:59:59.999Z', '2026-03-29T01:00:00Z', '2026-03-29T01:59:59Z'],
  );
  assertHours(
    night,
    [
      '2026-10-25T00:00:00Z',
      '2026-10-25T00:59:59Z',
      '2026-10-25T01:00:00Z',
      '2026-10-25T01:59:59Z',
    ],
    ['2026-10-24T23:59:59Z', '2026-10-25T02:00:00Z'],
  );
});

test('property: in UTC a window is arithmetic on the epoch', () => {
  const minute = fc.integer({ min: 0, max: 1439 });
  const clock = (at: number) =>
    `${String(Math.floor(at / 60)).padStart(2, '0')}:${String(at % 60).padStart(2, '0')}`;
  fc.assert(
    fc.property(
      fc.tuple(minute, minute).filter(([a, b]) => a !== b),
      fc.subarray([...DAYS], { minLength: 1 }),
      fc.integer({ min: 0, max: 4_102_444_800_000 }),
      ([from, to], days, atMs) => {
        const minutes = Math.floor(atMs / 60_000);
        // The window began at most a day ago: at `from` of today or of yesterday. The epoch was a
        // Thursday.
        const began = [0, 1].map((ago) => (Math.floor(minutes / 1440) - ago) * 1440 + from);
        const lasts = (to - from + 1440) % 1440;
        const expected = began.some((start) => {
          const day = DAYS[(Math.floor(start / 1440) + 3) % 7] ?? 'mon';
          return days.includes(day) && minutes >= start && minutes < start + lasts;
        });
        assert.equal(
          isWithin({ from: clock(from), to: clock(to), zone: 'UTC', days }, atMs),
          expected,
        );
      },
    ),
  );
});

test('a refusal says what time it is there, and when it would be allowed', () => {
  const hours = [
    berlin('08:00', '18:00', 'mon', 'tue'),
    { from: '09:00', to: '12:00', zone: 'UTC' },
  ];
  assert.equal(
    findUntimely({ hours }, Date.parse('2026-01-05T16:00:00Z')),
    undefined,
    'any window will do',
  );
  assert.deepEqual(findUntimely({ hours }, Date.parse('2026-01-05T21:07:00Z')), {
    reason: 'limit-hours',
    detail:
      'it is mon 22:07 in Europe/Berlin, mon 21:07 in UTC; approvals of this issuer run only ' +
      'mon tue 08:00-18:00 (Europe/Berlin), daily 09:00-12:00 (UTC)',
  });
  assert.equal(findUntimely({}, 0), undefined);
});

test('what is no window is refused: other times, none at all, no zone', () => {
  const good = { from: '08:00', to: '18:00', zone: 'Europe/Berlin' };
  assert.ok('copy' in copyOnce(windowSchema, good, 10));
  for (const wrong of [
    { from: '8:00' },
    { to: '24:01' },
    { from: '25:00' },
    { to: '08:00' },
    { zone: '' },
    { zone: undefined },
    { days: [] },
    { days: ['Mon'] },
  ]) {
    const found = copyOnce(windowSchema, { ...good, ...wrong }, 10);
    assert.ok('why' in found, JSON.stringify(wrong));
  }
});
