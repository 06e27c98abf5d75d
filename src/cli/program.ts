import {
  EXIT,
  type ExitCode,
  type NamedVerb,
  readArguments,
  unknownWord,
  type Verb,
} from './command.ts';
import { describeFault, usageError } from './fault.ts';
import { completionOf, printOverview, printVerbHelp } from './help.ts';
import { createOutput, type Output, printable, type Tone, wrap } from './output.ts';
import { silenceProgress } from './progress.ts';
import { packageVersion } from './version.ts';

/**
 * The files of the verbs, which are loaded when named: a command needs only one, and loading all of
 * them takes twice as long.
 */
const VERBS: Readonly<Record<string, () => Promise<{ readonly verb: Verb }>>> = {
  demo: () => import('./demo.ts'),
  init: () => import('./init.ts'),
  keygen: () => import('./keygen.ts'),
  types: () => import('./types.ts'),
  provision: () => import('./provision.ts'),
  doctor: () => import('./doctor.ts'),
  plan: () => import('./plan.ts'),
  approve: () => import('./approve.ts'),
  run: () => import('./run.ts'),
  shadow: () => import('./shadow.ts'),
  requests: () => import('./requests.ts'),
  decline: () => import('./decline.ts'),
  renew: () => import('./renew.ts'),
  wait: () => import('./wait.ts'),
  workflow: () => import('./workflow.ts'),
  serve: () => import('./serve.ts'),
  token: () => import('./token.ts'),
  mcp: () => import('./mcp.ts'),
  journal: () => import('./journal.ts'),
  show: () => import('./show.ts'),
  continuations: () => import('./continuations.ts'),
  recover: () => import('./recover.ts'),
  resolve: () => import('./resolve.ts'),
  export: () => import('./export.ts'),
  verify: () => import('./verify.ts'),
  ledger: () => import('./ledger.ts'),
  completion: async () => ({ verb: completionOf(loadVerbs) }),
};

/** Flags that may precede the verb. They affect only what is printed. */
const LEADING = ['--json', '--no-color'];

/** Runs a command line, then exits with its code after all output is written. */
export async function runProgram(argv: readonly string[]): Promise<void> {
  const flags = argv.includes('--') ? argv.slice(0, argv.indexOf('--')) : argv;
  const noColor = flags.includes('--no-color');
  const output = createOutput(process.stdout, { json: flags.includes('--json'), noColor });
  if (output.json) silenceProgress();
  const complaints = createOutput(process.stderr, { json: false, noColor });
  process.stdout.on('error', ignoreAbsentReader);
  process.stderr.on('error', ignoreAbsentReader);
  process.exitCode = await runCommand(argv, output).catch((error: unknown) =>
    reportFault(error, output, complaints),
  );
  // Exit explicitly: a configuration file may have opened something that keeps the process alive.
  process.stdout.write('', () => process.exit());
}

/** A reader that stops early (`| head`) affects neither the verb nor its exit code. */
function ignoreAbsentReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') process.exit(EXIT.fault);
}

async function runCommand(argv: readonly string[], output: Output): Promise<ExitCode> {
  const start = argv.findIndex((word) => !LEADING.includes(word));
  const [name, ...rest] = start === -1 ? [] : argv.slice(start);
  if (name === undefined) {
    if (output.json) throw usageError('name a verb');
    printOverview(await loadVerbs(), output);
    return EXIT.fault;
  }
  if (name === '--version') return printVersion(rest, output);
  if (name === 'help' || name === '--help' || name === '-h') return explain(rest, output);
  if (name.startsWith('-')) throw usageError(`the verb must come first, but "${name}" precedes it`);
  const verb = await findVerb(name);
  const args = readArguments(name, rest, verb);
  if (!args.has('help')) return (await verb.run(args, output)) ?? EXIT.done;
  printVerbHelp(verb, output);
  return EXIT.done;
}

const loadVerbs = () => Promise.all(Object.keys(VERBS).map(findVerb));

async function findVerb(name: string): Promise<NamedVerb> {
  const load = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (load !== undefined) return { name, ...(await load()).verb };
  throw usageError(unknownWord('verb', name, [...Object.keys(VERBS), 'help', '--version']));
}

async function explain(words: readonly string[], output: Output): Promise<ExitCode> {
  const name = readArguments('help', words, { optional: ['verb'] }).first;
  if (name === '' || name === 'help') printOverview(await loadVerbs(), output);
  else printVerbHelp(await findVerb(name), output);
  return EXIT.done;
}

function printVersion(words: readonly string[], output: Output): ExitCode {
  readArguments('--version', words, {});
  const version = packageVersion();
  output.document({ version });
  output.line(version);
  return EXIT.done;
}

/** Fits the longest error code. */
const NARROWEST = 60;

/** Prints the code, message and next step: as JSON on stdout in JSON mode, else on stderr. */
function reportFault(error: unknown, output: Output, { line, paint, width }: Output): ExitCode {
  const { code, message, next } = describeFault(error);
  output.document({ error: { code, message, next } });
  const print = (tone: Tone, label: string, text: string) => {
    const lines = wrap(`${label} ${printable(text)}`, Math.max(width, NARROWEST));
    line([paint(tone, label), lines.join('\n').slice(label.length)].join(''));
  };
  if (!output.json) {
    print('bad', `error ${code}:`, message);
    print('strong', 'next:', next);
  }
  if ((process.env.EFFECTMATCH_DEBUG ?? '') !== '') console.error(error);
  return EXIT.fault;
}
