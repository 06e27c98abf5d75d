import { COMMON_FLAGS, type Flag } from './arguments.ts';
import { EXIT } from './exit-code.ts';
import { usageError } from './guided-error.ts';
import type { Verb } from './verb.ts';

/**
 * Prints a script that teaches a shell to complete verbs and flags. It is made from the same table
 * as the help.
 */
export function completionOf(verbs: () => readonly Verb[]): Verb {
  const shells: Readonly<Record<string, () => string>> = {
    bash: () => bashScript(verbs()),
    fish: () => fishScript(verbs()),
    zsh: () => `autoload -U +X bashcompinit && bashcompinit\n${bashScript(verbs())}`,
  };
  const names = Object.keys(shells);
  return {
    name: 'completion',
    summary: 'print a script that completes verbs and flags in your shell',
    about: `Prints a completion script for ${names.join(', ')}. Load it where your shell starts; the examples show how.`,
    positionals: ['shell'],
    flags: {},
    examples: [
      'source <(effectmatch completion bash)',
      'effectmatch completion fish > ~/.config/fish/completions/effectmatch.fish',
    ],
    async run(args, output) {
      const [shell = ''] = args.positionals;
      const script = Object.hasOwn(shells, shell) ? shells[shell]?.() : undefined;
      if (script === undefined)
        throw usageError(`the shells are ${names.join(', ')}, not "${shell}"`, 'completion');
      output.document({ shell, script });
      output.line(script.trimEnd());
      return EXIT.done;
    },
  };
}

const flagsOf = ({ flags }: Verb) => Object.entries<Flag>({ ...flags, ...COMMON_FLAGS });

/** Where no word fits, bash completes file names. */
function bashScript(verbs: readonly Verb[]): string {
  const cases = verbs.map(
    (verb) =>
      `    ${verb.name}) words="${flagsOf(verb)
        .map(([name]) => `--${name}`)
        .join(' ')}" ;;`,
  );
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

function fishScript(verbs: readonly Verb[]): string {
  const quote = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;
  return verbs
    .flatMap((verb) => [
      `complete -c effectmatch -n __fish_use_subcommand -a ${verb.name} -d ${quote(verb.summary)}`,
      ...flagsOf(verb).map(
        ([name, { value, about }]) =>
          `complete -c effectmatch -n '__fish_seen_subcommand_from ${verb.name}' -l ${name}${value === undefined ? '' : ' -r'} -d ${quote(about)}`,
      ),
    ])
    .join('\n');
}
