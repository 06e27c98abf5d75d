import { sortedColumns, valueText } from './bag.ts';
import { numberText } from './decimal-sum.ts';
import type { ApprovedEffect, Cell } from './effect.ts';
import type { Value } from './value.ts';

/**
 * Effects in the order in which people look for them: grouped by table and operation, then sorted
 * by key, so that 9 comes before 10. Otherwise the order is unchanged.
 */
export function inKeyOrder(effects: readonly ApprovedEffect[]): readonly ApprovedEffect[] {
  const groups = new Map<string, number>();
  const groupOf = new Uint32Array(effects.length);
  // Most keys have one column. The other columns are looked at only if the first is the same.
  const first = effects.map((effect, index) => {
    const name = `${effect.op} ${effect.target}`;
    const group = groups.get(name) ?? groups.size;
    groups.set(name, group);
    groupOf[index] = group;
    return keyParts(effect)[0] ?? '';
  });
  const compare = (a: number, b: number): number =>
    (groupOf[a] ?? 0) - (groupOf[b] ?? 0) ||
    comparePart(first[a] ?? '', first[b] ?? '') ||
    compareParts(keyParts(effects[a]), keyParts(effects[b]));
  const order = Array.from(effects.keys()).sort(compare);
  return order.map((index) => effects[index] as ApprovedEffect);
}

type Part = number | string;

function keyParts({ key = {} }: Pick<ApprovedEffect, 'key'> = {}): readonly Part[] {
  return sortedColumns(key).map((column) => partOf(key[column]));
}

function partOf(cell: Cell | undefined): Part {
  if (cell === undefined) return '';
  if ('generated' in cell) return cell.generated;
  if (!('is' in cell)) return valueText(cell as unknown as Value);
  if (typeof cell.is === 'string' || typeof cell.is === 'number') return cell.is;
  const number = numberText(cell.is);
  return number === undefined ? valueText(cell.is) : Number(number);
}

function compareParts(a: readonly Part[], b: readonly Part[]): number {
  for (const [index, part] of a.entries()) {
    const order = comparePart(part, b[index] ?? '');
    if (order !== 0) return order;
  }
  return 0;
}

function comparePart(a: Part, b: Part): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'number' || typeof b === 'number') return typeof a === 'number' ? -1 : 1;
  return a === b ? 0 : compareNumbered(a, b);
}

/** Compares texts that differ only in their final number by that number: `T9` before `T10`. */
function compareNumbered(a: string, b: string): number {
  const [headA, digitsA] = splitNumber(a);
  const [headB, digitsB] = splitNumber(b);
  if (headA === headB && digitsA.length !== digitsB.length) return digitsA.length - digitsB.length;
  return a < b ? -1 : 1;
}

function splitNumber(text: string): readonly [head: string, digits: string] {
  let start = text.length;
  while (start > 0 && text.charCodeAt(start - 1) >= 0x30 && text.charCodeAt(start - 1) <= 0x39)
    start -= 1;
  return [text.slice(0, start), text.slice(start)];
}
