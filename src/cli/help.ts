import { EXIT, type Flags, flagsOf, type NamedVerb, type Verb } from './command.ts';
import { fold, type Output } from './output.ts';

const EXIT_CODES =
  `Exit codes: ${EXIT.done} committed or done, ${EXIT.fault} usage or fault, ${EXIT.rejected} rejected, ` +
  `${EXIT.diverged} diverged, ${EXIT.indeterminate} indeterminate, ${EXIT.halted} halted.`;

/** Prints the overview: what EffectMatch is, its verbs, and where to start. */
export function printOverview(verbs: readonly NamedVerb[], output: Output): void {
  output.document({ verbs: verbs.map(describeVerb), exitCodes: EXIT });
  const { line, paint } = output;
  printParagraph(
    'EffectMatch lets a change commit only if its actual effects are exactly those that were approved.',
    output,
  );
  line();
  line(`${paint('strong', 'Usage:')} effectmatch <verb> [flags]`);
  line();
  const rows = verbs.map((verb) => [verb.name, verb.summary] as const);
  printRows([...rows, ['help', 'explain one verb: effectmatch help <verb>']], output);
  line();
  printFlags({ ...flagsOf({}), version: { about: 'print the version' } }, output);
  line();
  printParagraph(EXIT_CODES, output);
  line();
  line(
    `${paint('strong', 'New here?')} Run \`effectmatch demo\`: it needs no set-up and leaves nothing behind.`,
  );
  line('In a project, not installed globally? Type `npx effectmatch` instead.');
}

/** Prints the help of one verb. */
export function printVerbHelp(verb: NamedVerb, output: Output): void {
  output.document(describeVerb(verb));
  const { line, paint } = output;
  line(`${paint('strong', 'Usage:')} effectmatch ${usageOf(verb)} [flags]`);
  line();
  printParagraph(verb.about, output);
  line();
  const flags = flagsOf(verb);
  printFlags(flags, output);
  line();
  line(paint('strong', 'Examples:'));
  for (const example of examplesOf(verb)) line(breakCommand(example));
  for (const { title, text } of verb.blocks ?? []) {
    line();
    line(paint('strong', title));
    for (const part of text.split('\n')) line(`  ${part}`.trimEnd());
  }
  if (Object.hasOwn(flags, 'config')) {
    line();
    line('`effectmatch init` writes a configuration; its help shows an example.');
  }
  line();
  printParagraph(EXIT_CODES, output);
}

function printFlags(flags: Flags, output: Output): void {
  output.line(output.paint('strong', 'Flags:'));
  const rows = Object.entries(flags).map(([name, { value, about }]) => {
    const argument = value === undefined ? '' : ` ${value}`;
    return [`--${name}${argument}`, about] as const;
  });
  printRows(rows, output);
}

function printRows(rows: readonly (readonly [string, string])[], { line }: Output): void {
  const width = Math.max(...rows.map(([left]) => left.length));
  for (const [left, right] of rows) {
    fold(right, WIDTH - width - 4).forEach((part, index) => {
      line(`  ${(index === 0 ? left : '').padEnd(width)}  ${part}`);
    });
  }
}

/** The width of help texts, in columns. */
const WIDTH = 80;

function printParagraph(text: string, { line }: Output): void {
  for (const part of fold(text, WIDTH)) line(part);
}

/** Breaks a long command before its flags, with backslashes as in a shell. */
function breakCommand(command: string): string {
  const [first = '', ...flags] = command.split(/ (?=--)/);
  const lines: string[] = [];
  let line = `  ${first}`;
  for (const [index, flag] of flags.entries()) {
    const ending = index === flags.length - 1 ? '' : ' \\';
    if (`${line} ${flag}${ending}`.length > WIDTH) {
      lines.push(`${line} \\`);
      line = '   ';
    }
    line += ` ${flag}`;
  }
  return [...lines, line].join('\n');
}

function describeVerb(verb: NamedVerb) {
  const { name, summary, about, blocks } = verb;
  const flags = Object.entries(flagsOf(verb)).map(([flag, { value, about }]) => {
    return { flag: `--${flag}`, ...(value !== undefined && { value }), about };
  });
  return {
    verb: name,
    usage: usageOf(verb),
    summary,
    about,
    flags,
    examples: examplesOf(verb),
    ...(blocks && { blocks }),
  };
}

function examplesOf({ name, examples }: NamedVerb): readonly string[] {
  return examples.map((words) => `effectmatch ${name} ${words}`.trimEnd());
}

function usageOf({ name, positionals = [], optional = [] }: NamedVerb): string {
  const words = [...positionals.map((word) => `<${word}>`), ...optional.map((word) => `[${word}]`)];
  return [name, ...words].join(' ');
}

/** Creates the verb that prints a completion script, from the same descriptions as the help. */
export function completionOf(verbs: () => Promise<readonly NamedVerb[]>): Verb {
  const shells = ['bash', 'fish', 'zsh'] as const;
  return {
    summary: 'print a script that completes verbs and flags in your shell',
    about: `Prints a completion script for ${shells.join(', ')}. Load it where your shell starts; the examples show how.`,
    positionals: ['shell'],
    examples: ['bash', 'fish > ~/.config/fish/completions/effectmatch.fish'],
    async run(args, output) {
      const shell = shells.find((known) => known === args.first);
      if (shell === undefined)
        throw args.wrong(`the shells are ${shells.join(', ')}, not "${args.first}"`);
      const script = shell === 'fish' ? fishScript(await verbs()) : bashScript(await verbs());
      const setUp = shell === 'zsh' ? 'autoload -U +X bashcompinit && bashcompinit\n' : '';
      output.document({ shell, script: setUp + script });
      output.line((setUp + script).trimEnd());
    },
  };
}

/** The script makes Bash complete file names if no word matches. */
function bashScript(verbs: readonly NamedVerb[]): string {
  const cases = verbs.map((verb) => {
    const words = Object.keys(flagsOf(verb)).map((name) => `--${name}`);
    return `    ${verb.name}) words="${words.join(' ')}" ;;`;
  });
  return `_effectmatch() {
  local word="\${COMP_WORDS[COMP_CWORD]}" words=""
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then words="${[...verbs.map(({ name }) => name), 'help'].join(' ')}"; fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _effectmatch effectmatch
`;
}

function fishScript(verbs: readonly NamedVerb[]): string {
  const quote = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  const lines = verbs.flatMap((verb) => {
    const seen = `complete -c effectmatch -n '__fish_seen_subcommand_from ${verb.name}'`;
    const flags = Object.entries(flagsOf(verb)).map(([name, { value, about }]) => {
      const takesValue = value === undefined ? '' : ' -r';
      return `${seen} -l ${name}${takesValue} -d ${quote(about)}`;
    });
    const summary = `-a ${verb.name} -d ${quote(verb.summary)}`;
    return [`complete -c effectmatch -n __fish_use_subcommand ${summary}`, ...flags];
  });
  return lines.join('\n');
}
