import type { Random } from '../../../random.ts';

/** A column as the generator and the oracle need it. */
export interface ColumnSpec {
  readonly name: string;
  /** As SQL, quoted. */
  readonly sql: string;
  /** As a column definition names it. */
  readonly type: string;
  /** How the oracle turns the printed text into the value that E must have. */
  readonly reads: Reading;
  /** A literal that the column can hold. */
  literal(chance: Random): string;
}

/** What documentation says a printed value becomes. `text` stays as it is printed. */
export type Reading =
  | 'integer'
  | 'decimal'
  | 'real'
  | 'boolean'
  | 'bytes'
  | 'instant'
  | 'time'
  | 'text';

/** An SQL string literal; backslashes mean themselves under standard_conforming_strings. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Texts that a careless image, parser or quoting would mix up. */
export const AWKWARD_TEXTS = [
  '',
  ' ',
  'plain',
  'a,b',
  '(x)',
  '"quoted"',
  "it's",
  'back\\slash',
  '\\',
  '"',
  '","',
  ')(',
  'line\nbreak',
  'tab\there',
  'naïve ünïcode',
  '𝒳🙂',
  'NULL',
  '{}',
  '$$',
];

type TypeSpec = readonly [type: string, reads: Reading, literals: readonly string[]];

/** Column types with literals at their edges; the schema creates `mood`, `small` and `pair`. */
const TYPES: readonly TypeSpec[] = [
  ['text', 'text', AWKWARD_TEXTS],
  ['varchar(9)', 'text', ['', 'abc', 'a"b', 'x\\y']],
  ['char(4)', 'text', ['', 'ab', 'abcd', 'é']],
  ['bigint', 'integer', ['0', '9007199254740991', '9007199254740993', '-9223372036854775808']],
  ['smallint', 'integer', ['-32768', '7']],
  [
    'numeric',
    'decimal',
    ['0', '0.00', '1.50', '-0.001', '100', '1e30', '12345678901234567890.125', 'NaN', 'Infinity'],
  ],
  ['numeric(12, 3)', 'decimal', ['0', '7.5', '-120', '100.010']],
  ['float8', 'real', ['0', '-0', '1.5', '0.1', '1e300', '-2.5e-10', '1e21', 'NaN', '-Infinity']],
  ['float4', 'real', ['0', '0.1', '3e20', '-7']],
  ['boolean', 'boolean', ['t', 'f']],
  ['bytea', 'bytes', ['\\x', '\\x00', '\\x5c2c2228', '\\xffd8']],
  ['jsonb', 'text', ['null', '{}', '{"a": [1, "x,y", null]}', '"\\""', '1.50']],
  ['json', 'text', ['{"b" :1,"b":2}', '[ ]']],
  ['text[]', 'text', ['{}', '{a,"b c",NULL}', '{"q\\"x","\\\\"}', '{{a,b},{c,d}}']],
  ['integer[]', 'text', ['{}', '{1,NULL,3}']],
  ['date', 'text', ['2026-02-28', '0044-03-15 BC', 'infinity']],
  [
    'timestamptz',
    'instant',
    ['2026-01-02 03:04:05+02', '2026-01-02 03:04:05.678901+00', '-infinity', '10000-01-01+00'],
  ],
  ['timestamp', 'time', ['2026-01-02 03:04:05', '1999-12-31 23:59:59.5', '0001-01-01 00:00:00 BC']],
  ['interval', 'text', ['1 day', '24 hours', '1 mon -3 days 04:05:06.7']],
  ['int4range', 'text', ['empty', '[1,5)', '(,7]']],
  ['uuid', 'text', ['00000000-0000-0000-0000-000000000001']],
  ['inet', 'text', ['10.0.0.1', '10.0.0.0/8', '::1']],
  ['mood', 'text', ['glad', 'sad, very', '"so so"']],
  ['small', 'integer', ['0', '41']],
  ['pair', 'text', ['(1,)', '(,"a,b")', '(2,"(x)")']],
];

export const TYPE_DEFINITIONS = `
  create type mood as enum ('glad', 'sad, very', '"so so"');
  create domain small as integer check (value < 1000);
  create type pair as (one integer, two text);`;

/** A column of a random type under this name. */
export function randomColumn(chance: Random, name: string, sql: string): ColumnSpec {
  const [type, reads, literals] = chance.pick(TYPES);
  return {
    ...{ name, sql, type, reads },
    literal: (from) =>
      from.fraction() < 0.15 ? 'null' : `${quoted(from.pick(literals))}::${type}`,
  };
}
