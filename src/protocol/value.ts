/**
 * A value as it is compared and stored: plain JSON, plus tagged scalars for what JSON numbers and strings
 * cannot carry. A tag is an object with exactly one key that starts with one `$`:
 *
 * - `{ $int: '9223372036854775807' }` an integer beyond the safe range,
 * - `{ $real: '1.5' }` a binary floating-point number in shortest round-trip form (`-0.0`, `Infinity` included),
 * - `{ $dec: '35' }` an exact decimal without trailing zeros,
 * - `{ $bytes: 'c0ffee' }` binary data, lower-case hex,
 * - `{ $text: 'ff' }` text whose bytes are not valid UTF-8, lower-case hex,
 * - `{ $digest: '…' }` a keyed digest that stands for a value that must not be stored.
 *
 * Application data whose own keys start with `$` has them doubled, so data never reads as a tag.
 */
export type Value = null | boolean | number | string | readonly Value[] | { readonly [key: string]: Value };

/** Column (or field) name to value. */
export type Row = { readonly [column: string]: Value };
