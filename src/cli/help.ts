import { COMMON_FLAGS, CONFIG_FLAG, type Flags } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import type { Output } from './output.ts';
import type { Verb } from './verb.ts';

const EXIT_CODES =
  `Exit codes: ${EXIT.done} committed or done, ${EXIT.fault} usage or fault, ${EXIT.rejected} rejected, ` +
  `${EXIT.diverged} diverged, ${EXIT.indeterminate} indeterminate, ${EXIT.halted} halted.`;

/** What a configuration file looks like, for everyone who has none yet. */
export const CONFIG_EXAMPLE = `import { defineConfig } from 'effectmatch';
import { sqlite } from 'effectmatch/adapters/sqlite';

export default defineConfig({
  store: 'effectmatch.db',
  keyring: 'effectmatch.keys.json',
  issuers: { 'ap-team': { key: 'ed25519:…', may: ['books'] } },
  adapters: { books: sqlite({ file: 'books.db', relations: ['invoice', 'vendor'] }) },
});`;

/** The overview: what this is, the verbs, and where to begin. */
export function printOverview(verbs: readonly Verb[], output: Output): void {
  output.document({ verbs: verbs.map(describeVerb), exitCodes: EXIT });
  const { line, paint } = output;
  line(
    'EffectMatch holds a change, compares what it would leave behind with what was approved, and only then',
  );
  line('commits it.');
  line();
  line(`${paint('strong', 'Usage:')} effectmatch <verb> [flags]`);
  line();
  for (const [left, right] of pad([...verbs.map(summaryOf), ['help [verb]', 'explain a verb']]))
    line(`  ${left}  ${right}`);
  line();
  printFlags({ ...COMMON_FLAGS, version: { about: 'print the version' } }, output);
  line();
  line(EXIT_CODES);
  line();
  line(
    `${paint('strong', 'New here?')} Run \`effectmatch demo\`: it needs no set-up and leaves nothing behind.`,
  );
}

/** The help of one verb. */
export function printVerbHelp(verb: Verb, output: Output): void {
  output.document(describeVerb(verb));
  const { line, paint } = output;
  line(`${paint('strong', 'Usage:')} effectmatch ${usageOf(verb)} [flags]`);
  line();
  line(verb.about);
  line();
  printFlags({ ...verb.flags, ...COMMON_FLAGS }, output);
  if (verb.examples.length > 0) {
    line();
    line(paint('strong', 'Examples:'));
    for (const example of verb.examples) line(`  ${example}`);
  }
  if (Object.hasOwn(verb.flags, Object.keys(CONFIG_FLAG)[0] ?? '')) {
    line();
    line(
      `${paint('strong', 'Configuration:')} relative paths in it count from the folder of the configuration file.`,
    );
    for (const example of CONFIG_EXAMPLE.split('\n')) line(`  ${example}`.trimEnd());
  }
  line();
  line(EXIT_CODES);
}

function printFlags(flags: Flags, { line, paint }: Output): void {
  line(paint('strong', 'Flags:'));
  const rows = Object.entries(flags).map(([name, { value, about }]): [string, string] => [
    `--${name}${value === undefined ? '' : ` ${value}`}`,
    about,
  ]);
  for (const [left, right] of pad(rows)) line(`  ${left}  ${right}`);
}

function describeVerb(verb: Verb) {
  const { name, summary, about, examples } = verb;
  const flags = Object.entries({ ...verb.flags, ...COMMON_FLAGS }).map(([flag, rest]) => ({
    flag: `--${flag}`,
    ...rest,
  }));
  return { verb: name, usage: usageOf(verb), summary, about, flags, examples };
}

const usageOf = ({ name, positionals, optional = [] }: Verb): string =>
  [name, ...positionals.map((what) => `<${what}>`), ...optional.map((what) => `[${what}]`)].join(
    ' ',
  );
const summaryOf = (verb: Verb): [string, string] => [usageOf(verb), verb.summary];

function pad(rows: readonly (readonly [string, string])[]): [string, string][] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => [left.padEnd(width), right]);
}
