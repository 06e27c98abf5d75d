import { readTag, type Value } from './value.ts';

/** Exponents beyond this would need more digits than anybody reads. */
const EXPONENT_MAX = 40;

/** The decimal text of a finite number of any kind; undefined for every other value. */
export function numberText(value: Value): string | undefined {
  if (typeof value === 'number') return String(value);
  if (typeof value !== 'object' || value === null) return undefined;
  const tagged = readTag(value);
  if (tagged === undefined || !['$int', '$dec', '$real'].includes(tagged.tag)) return undefined;
  return tagged.text.endsWith('Infinity') ? undefined : tagged.text;
}

/** Adds up numbers without rounding: 0.1 and 0.2 are 0.3. */
export class DecimalSum {
  /** Sums by the number of digits behind the point. */
  readonly #sums = new Map<number, bigint>();
  /** What fits into doubles exactly: most numbers are small integers. */
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

  /** The sum; undefined if a number was too large or too small to be added exactly. */
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
