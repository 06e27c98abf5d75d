import type { Random } from '../random.ts';

type Holder = Record<string, unknown>;

/** Values that no JSON text carries, or that a careless check takes for something else. */
const STRANGE: readonly ((dice: Random) => unknown)[] = [
  () => undefined,
  () => null,
  () => Number.NaN,
  () => Number.POSITIVE_INFINITY,
  () => -0,
  () => 2 ** 53,
  () => 1e308,
  () => -1,
  () => 10n ** 40n,
  () => Symbol('strange'),
  () => () => 'called',
  () => new Date(0),
  () => new Map([['a', 1]]),
  () => Buffer.from('bytes'),
  () => Object('boxed'),
  () => new Array(5),
  () => [],
  () => ({}),
  () => '',
  () => 'x'.repeat(5000),
  () => '\ud800',
  () => true,
  () => JSON.parse('{"__proto__":{"polluted":1}}'),
  () => Object.create({ inherited: 1 }),
  () => Object.assign(Object.create(null), { a: 1 }),
  () => Object.defineProperty({}, 'version', { enumerable: true, get: () => 1 }),
  () => Object.assign([1], { named: 2 }),
  () => ({ [Symbol('hidden')]: 1 }),
  () => nest(200),
  (dice) => nest(60 + dice.below(10)),
  () => cycle(),
];

function nest(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = level % 2 === 0 ? [value] : { a: value };
  return value;
}

function cycle(): unknown {
  const self: Holder = {};
  self.self = self;
  return self;
}

function holdersOf(value: unknown): Holder[] {
  if (typeof value !== 'object' || value === null) return [];
  return [value as Holder, ...Object.values(value).flatMap(holdersOf)];
}

const CHANGES: readonly ((holder: Holder, key: string, dice: Random) => void)[] = [
  (holder, key, dice) => {
    holder[key] = dice.pick(STRANGE)(dice);
  },
  (holder, key) => {
    delete holder[key];
  },
  (holder, _key, dice) => {
    const [one, two] = [dice.pick(Object.keys(holder)), dice.pick(Object.keys(holder))];
    [holder[one], holder[two]] = [holder[two], holder[one]];
  },
  (holder, key, dice) => {
    const name = dice.pick([
      'unknown',
      '',
      'constructor',
      'prototype',
      'toString',
      `${key} `,
      '$int',
      '__proto__',
    ]);
    Object.defineProperty(holder, name, {
      value: holder[key],
      enumerable: true,
      configurable: true,
      writable: true,
    });
  },
  (holder, key) => {
    holder[key] = [holder[key]];
  },
  (holder) => {
    if (Array.isArray(holder))
      for (let copies = 0; copies < 20; copies += 1) holder.push(holder[0]);
  },
];

/**
 * A copy of an original with one or two changes somewhere in it, or something strange in its place.
 */
export function damageValue(originals: readonly object[], dice: Random): unknown {
  if (dice.below(25) === 0) return dice.pick(STRANGE)(dice);
  const copy = structuredClone(dice.pick(originals));
  const holders = holdersOf(copy).filter((holder) => Object.keys(holder).length > 0);
  for (let rounds = dice.pick([1, 1, 2]); rounds > 0; rounds -= 1) {
    const holder = dice.pick(holders);
    const keys = Object.keys(holder);
    if (keys.length > 0) dice.pick(CHANGES)(holder, dice.pick(keys), dice);
  }
  return copy;
}
