import { EXIT, type ExitCode, readArguments, unknownWord, type Verb } from './command.ts';
import { describeFault, usageError } from './fault.ts';
import { completionOf, printOverview, printVerbHelp } from './help.ts';
import { createOutput, type Output, printable, type Tone, wrap } from './output.ts';
import { silenceProgress } from './progress.ts';
import { packageVersion } from './version.ts';

/** Verbs are loaded when named: a command needs only one, and loading all takes twice as long. */
const VERBS: Readonly<Record<string, () => Promise<Verb>>> = {
  demo: async () => (await import('./demo.ts')).demo,
  init: async () => (await import('./init.ts')).init,
  keygen: async () => (await import('./keygen.ts')).keygen,
  types: async () => (await import('./types.ts')).types,
  provision: async () => (await import('./provision.ts')).provision,
  doctor: async () => (await import('./doctor.ts')).doctor,
  plan: async () => (await import('./plan.ts')).plan,
  approve: async () => (await import('./approve.ts')).approve,
  run: async () => (await import('./run.ts')).run,
  shadow: async () => (await import('./shadow.ts')).shadow,
  requests: async () => (await import('./requests.ts')).requests,
  decline: async () => (await import('./requests.ts')).decline,
  renew: async () => (await import('./requests.ts')).renew,
  wait: async () => (await import('./wait.ts')).wait,
  workflow: async () => (await import('./workflow.ts')).workflow,
  serve: async () => (await import('./serve.ts')).serve,
  token: async () => (await import('./token.ts')).token,
  mcp: async () => (await import('./mcp.ts')).mcp,
  journal: async () => (await import('./journal.ts')).journal,
  show: async () => (await import('./show.ts')).show,
  continuations: async () => (await import('./continuations.ts')).continuations,
  recover: async () => (await import('./recover.ts')).recover,
  resolve: async () => (await import('./resolve.ts')).resolve,
  export: async () => (await import('./export.ts')).exportReceipts,
  verify: async () => (await import('./verify.ts')).verify,
  ledger: async () => (await import('./ledger.ts')).ledger,
  completion: async () => completionOf(loadVerbs),
};

const loadVerbs = () => Promise.all(Object.values(VERBS).map((load) => load()));

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
  const words = start === -1 ? [] : argv.slice(start);
  const [name, ...rest] = words;
  if (name === undefined) {
    if (output.json) throw usageError('name a verb');
    printOverview(await loadVerbs(), output);
    return EXIT.fault;
  }
  if (name === '--version') return printVersion(rest, output);
  if (name === 'help' || name === '--help' || name === '-h') return explain(rest, output);
  if (name.startsWith('-'))
    throw usageError(`the verb comes first, and "${name}" stands before it`);
  const verb = await findVerb(name);
  const args = readArguments(verb.name, rest, verb);
  if (args.has('help')) {
    printVerbHelp(verb, output);
    return EXIT.done;
  }
  return await verb.run(args, output);
}

async function findVerb(name: string): Promise<Verb> {
  const load = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (load !== undefined) return await load();
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
