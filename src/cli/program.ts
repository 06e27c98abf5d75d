import { approve } from './approve.ts';
import { EXIT, type ExitCode, readArguments, unknownWord, type Verb } from './command.ts';
import { continuations } from './continuations.ts';
import { demo } from './demo.ts';
import { doctor } from './doctor.ts';
import { exportReceipts } from './export.ts';
import { describeFault, usageError } from './fault.ts';
import { completionOf, printOverview, printVerbHelp } from './help.ts';
import { init } from './init.ts';
import { journal } from './journal.ts';
import { keygen } from './keygen.ts';
import { ledger } from './ledger.ts';
import { mcp } from './mcp.ts';
import { createOutput, type Output, printable, type Tone, wrap } from './output.ts';
import { plan } from './plan.ts';
import { silenceProgress } from './progress.ts';
import { provision } from './provision.ts';
import { recover } from './recover.ts';
import { decline, renew, requests } from './requests.ts';
import { resolve } from './resolve.ts';
import { run } from './run.ts';
import { serve } from './serve.ts';
import { shadow } from './shadow.ts';
import { show } from './show.ts';
import { token } from './token.ts';
import { types } from './types.ts';
import { verify } from './verify.ts';
import { packageVersion } from './version.ts';
import { wait } from './wait.ts';
import { workflow } from './workflow.ts';

const VERBS: readonly Verb[] = [
  ...[demo, init, keygen, types, provision, doctor],
  ...[plan, approve, run, shadow],
  ...[requests, decline, renew, wait, workflow, serve, token, mcp],
  ...[journal, show, continuations, recover, resolve],
  ...[exportReceipts, verify, ledger],
  completionOf(() => VERBS),
];
/** Flags that may precede the verb: they change what is printed, not what is done. */
const LEADING = ['--json', '--no-color'];

/** Runs one command line, and ends the process with its exit code once everything is printed. */
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
  // A configuration file may have opened something that would keep the process alive.
  process.stdout.write('', () => process.exit());
}

/** A reader that stops early (`| head`) changes neither what a verb does nor its exit code. */
function ignoreAbsentReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') process.exit(EXIT.fault);
}

async function runCommand(argv: readonly string[], output: Output): Promise<ExitCode> {
  const start = argv.findIndex((word) => !LEADING.includes(word));
  const words = start === -1 ? [] : argv.slice(start);
  const [name, ...rest] = words;
  if (name === undefined) {
    if (output.json) throw usageError('name a verb');
    printOverview(VERBS, output);
    return EXIT.fault;
  }
  if (name === '--version') return printVersion(rest, output);
  if (name === 'help' || name === '--help' || name === '-h') return explain(rest, output);
  if (name.startsWith('-'))
    throw usageError(`the verb comes first, and "${name}" stands before it`);
  const verb = findVerb(name);
  const args = readArguments(verb.name, rest, verb);
  if (args.has('help')) {
    printVerbHelp(verb, output);
    return EXIT.done;
  }
  return await verb.run(args, output);
}

function findVerb(name: string): Verb {
  const verb = VERBS.find((candidate) => candidate.name === name);
  if (verb !== undefined) return verb;
  const known = VERBS.map((candidate) => candidate.name);
  throw usageError(unknownWord('verb', name, [...known, 'help', '--version']));
}

function explain(words: readonly string[], output: Output): ExitCode {
  const name = readArguments('help', words, { optional: ['verb'] }).first;
  if (name === '' || name === 'help') printOverview(VERBS, output);
  else printVerbHelp(findVerb(name), output);
  return EXIT.done;
}

function printVersion(words: readonly string[], output: Output): ExitCode {
  readArguments('--version', words, {});
  const version = packageVersion();
  output.document({ version });
  output.line(version);
  return EXIT.done;
}

/** Wide enough for the longest code. */
const NARROWEST = 60;

/** Prints code, message and next step: as a document on stdout in JSON mode, else on stderr. */
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
