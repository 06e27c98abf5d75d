import type { Random } from '../random.ts';

/** No damaged input is larger than its original by more than this. */
export const GROWTH_MAX = 64 * 1024;

type Damage = (bytes: Buffer, dice: Random, other: Buffer) => Buffer;

const span = (bytes: Buffer, dice: Random): readonly [number, number] => {
  const from = dice.below(bytes.length + 1);
  return [from, from + dice.below(Math.min(bytes.length - from, 400) + 1)];
};
const insert = (bytes: Buffer, at: number, part: Uint8Array | string): Buffer =>
  Buffer.concat([bytes.subarray(0, at), Buffer.from(part as string), bytes.subarray(at)]);

/**
 * Texts that parsers stumble over: numbers out of range, nesting, prototypes, surrogates, controls.
 */
const TOKENS = [
  '1e400',
  '-0',
  '9007199254740993',
  '1E1',
  '00',
  '0.1e-7',
  `${'9'.repeat(400)}`,
  '['.repeat(3000),
  '{"a":'.repeat(100),
  '[[[[[[[[]]]]]]]]',
  '{"__proto__":{"polluted":1}}',
  '"__proto__":1,',
  '"constructor":{"prototype":{}},',
  '\\ud800',
  '\\u0000',
  '\u0000',
  '\ufeff',
  'null',
  'true',
  ',',
  ':',
  '"',
  '\\',
  '}',
  ']',
  ' ',
  '\n',
  'x'.repeat(5000),
  '(((((((((',
  '{256}',
  '{1,256}{1,256}',
  '*',
];

const DAMAGES: readonly Damage[] = [
  function flipBits(bytes, dice) {
    const copy = Buffer.from(bytes);
    for (let flips = 1 + dice.below(3); flips > 0 && copy.length > 0; flips -= 1) {
      const at = dice.below(copy.length);
      copy[at] = (copy[at] ?? 0) ^ (1 << dice.below(8));
    }
    return copy;
  },
  function setByte(bytes, dice) {
    const copy = Buffer.from(bytes);
    if (copy.length > 0)
      copy[dice.below(copy.length)] = dice.pick([
        0,
        1,
        0x22,
        0x54,
        0x7f,
        0x80,
        0xff,
        dice.below(256),
      ]);
    return copy;
  },
  function cutEnd(bytes, dice) {
    return bytes.subarray(0, dice.below(bytes.length + 1));
  },
  function cutPart(bytes, dice) {
    const [from, to] = span(bytes, dice);
    return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
  },
  function repeatPart(bytes, dice) {
    const [from, to] = span(bytes, dice);
    const times = dice.pick([1, 1, 1, 2, 30]);
    return insert(
      bytes,
      to,
      Buffer.concat(Array.from({ length: times }, () => bytes.subarray(from, to))),
    );
  },
  function splice(bytes, dice, other) {
    const at = dice.below(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), other.subarray(dice.below(other.length + 1))]);
  },
  function transplant(bytes, dice, other) {
    const [from, to] = span(other, dice);
    return insert(bytes, dice.below(bytes.length + 1), other.subarray(from, to));
  },
  function insertToken(bytes, dice) {
    return insert(bytes, dice.below(bytes.length + 1), dice.pick(TOKENS));
  },
  function swapDigits(bytes, dice) {
    const text = bytes.toString('latin1');
    const digits = [...text.matchAll(/[0-9a-f]/g)];
    if (digits.length === 0) return bytes;
    const at = dice.pick(digits).index;
    return Buffer.from(
      `${text.slice(0, at)}${dice.pick([...'0123456789abcdef'])}${text.slice(at + 1)}`,
      'latin1',
    );
  },
  function replaceNumber(bytes, dice) {
    const text = bytes.toString('latin1');
    const numbers = [...text.matchAll(/(?<=[:[,])-?\d+/g)];
    if (numbers.length === 0) return bytes;
    const { index, 0: old } = dice.pick(numbers);
    const huge = dice.pick([
      '1e308',
      '-1',
      '0',
      '2',
      '9007199254740992',
      '1e21',
      '4294967296',
      '1.5',
      '1e-7',
    ]);
    return Buffer.from(`${text.slice(0, index)}${huge}${text.slice(index + old.length)}`, 'latin1');
  },
  function swapMembers(bytes, dice) {
    const text = bytes.toString('latin1');
    const members = [...text.matchAll(/"[A-Za-z]+":(?:"[^"\\]*"|\d+|true|false|null)/g)];
    if (members.length < 2) return bytes;
    const [one, two] = [dice.pick(members), dice.pick(members)].sort((a, b) => a.index - b.index);
    if (one === undefined || two === undefined || one === two) return bytes;
    const between = text.slice(one.index + one[0].length, two.index);
    const rest = text.slice(two.index + two[0].length);
    return Buffer.from(`${text.slice(0, one.index)}${two[0]}${between}${one[0]}${rest}`, 'latin1');
  },
];

/** One to three damages to one of the originals, or now and then bytes that never were one. */
export function damage(originals: readonly Buffer[], dice: Random): Buffer {
  if (dice.below(12) === 0) return dice.bytes(dice.below(200));
  let bytes = dice.pick(originals);
  const limit = bytes.length + GROWTH_MAX;
  for (let rounds = dice.pick([1, 1, 1, 2, 3]); rounds > 0; rounds -= 1) {
    bytes = dice.pick(DAMAGES)(bytes, dice, dice.pick(originals));
  }
  return bytes.subarray(0, limit);
}
