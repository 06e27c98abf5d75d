import { readTag, type Value } from './value.ts';

/** Larger exponents would need more digits than anyone reads. */
const EXPONENT_MAX = 40;

/** The decimal text of a finite number of any type, else undefined. */
export function numberText(value: Value): string | undefined {
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'object' || value === null) return undefined;
  const tagged = readTag(value);
  if (tagged === undefined || !['$int', '$dec', '$real'].includes(tagged.tag)) return undefined;
  return tagged.text.endsWith('Infinity') ? undefined : tagged.text;
}

/** Adds numbers without rounding: 0.1 + 0.2 is 0.3. */
export class DecimalSum {
  /** Sums by number of decimal places. */
  readonly #sums = new Map<number, bigint>();
  /** The part that a double holds exactly: most numbers are small integers. */
  #small = 0;
  #isExact = true;

  add(value: Value, times: number): void {
    const product = typeof value === 'number' ? value * times : Number.NaN;
    if (Number.isSafeInteger(product) && Number.isSafeInteger(this.#small + product)) {
      this.#small += product;
      return;
    }
    const text = numberText(value) ?? '';
    const [, whole = '', fraction = '', exponent = '0'] =
      /^(-?\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text) ?? [];
    if (whole === '' || Math.abs(Number(exponent)) > EXPONENT_MAX) {
      this.#isExact = false;
      return;
    }
    const digits = fraction.length - Number(exponent);
    this.#put(
      Math.max(digits, 0),
      BigInt(whole + fraction) * 10n ** BigInt(Math.max(-digits, 0)),
      times,
    );
  }

  #put(digits: number, scaled: bigint, times: number): void {
    this.#sums.set(digits, (this.#sums.get(digits) ?? 0n) + scaled * BigInt(times));
  }

  /** The sum, or undefined if a value could not be added exactly. */
  get text(): string | undefined {
    if (!this.#isExact) return undefined;
    const digits = Math.max(0, ...this.#sums.keys());
    let total = BigInt(this.#small) * 10n ** BigInt(digits);
    for (const [own, sum] of this.#sums) total += sum * 10n ** BigInt(digits - own);
    const sign = total < 0n ? '-' : '';
    const all = String(total < 0n ? -total : total).padStart(digits + 1, '0');
    const whole = all.slice(0, all.length - digits);
    const fraction = all.slice(all.length - digits).replace(/0+$/, '');
    return `${sign}${whole}${fraction === '' ? '' : `.${fraction}`}`;
  }
}
