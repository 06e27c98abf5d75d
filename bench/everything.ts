import { fork } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runAll, type Summary } from './all.ts';
import { measuresTime, mediumFor, STUDY_NAMES } from './catalogue.ts';
import { findFolder } from './data/folder.ts';
import { readPublished } from './published.ts';
import { fingerprintOf, RawRecords } from './raw.ts';
import { describeContext, readResult, writeResult } from './results.ts';
import { DEFAULT_SEED, NotRun } from './study.ts';
import { endInOrder, type Folders, type Medium, makeTemporary } from './temporary.ts';

/** The options of the command line. */
export interface How {
  readonly quick: boolean;
  readonly data: string | undefined;
  /** From the command line. By default each study uses its own seed. */
  readonly seed: number | undefined;
  readonly json: boolean;
  readonly strict: boolean;
}

/**
 * The exit code of a strict run whose study missed a target or could not run. It is neither a
 * success nor a failure.
 */
export const MISSED = 3;

const MAIN = fileURLToPath(new URL('./main.ts', import.meta.url));
/** Studies that count also wait: for locks, for servers, for processes that are started. */
const LANES = Math.max(2, Math.min(availableParallelism(), 4));
/** What an ended study has written arrives within this time, unless something else holds the pipe. */
const DRAIN_MS = 2000;

/** A study in a separate process, so that no heap or crash carries over to the next. */
type Child = ReturnType<typeof fork>;

/**
 * Starts a study. Its progress appears line by line with its name; what it prints in the end appears
 * in one piece, because another study may be printing too.
 */
function startChild(name: string, given: readonly string[], folders: Folders): Child {
  const env = { ...process.env, ...folders };
  const stdio = ['inherit', 'pipe', 'pipe', 'ipc'] as const;
  const child = fork(MAIN, [name, ...given], { env, stdio: [...stdio] });
  let printed = '';
  child.stdout?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  child.once('close', () => process.stdout.write(printed));
  if (child.stderr !== null)
    createInterface({ input: child.stderr }).on('line', (line) =>
      process.stderr.write(`… ${name}: ${line.replace(/^… /, '')}\n`),
    );
  return child;
}

/** Runs the studies, each in a process, and says how they ended. */
export async function runEverything(
  names: readonly string[],
  how: How,
  report: () => Promise<void>,
): Promise<void> {
  const { quick, data, seed } = how;
  const folder = findFolder(data);
  const children = new Set<Child>();
  let interrupted = false;
  const folders = new Map<Medium, Folders>();
  const foldersOn = (medium: Medium) => {
    const made = folders.get(medium) ?? makeTemporary(medium);
    folders.set(medium, made);
    return made;
  };
  endInOrder(async (signal) => {
    interrupted = true;
    const isAlive = ({ exitCode, signalCode }: Child) => exitCode === null && signalCode === null;
    const ended = [...children].filter(isAlive).map(async (child) => {
      child.kill(signal);
      await once(child, 'exit');
    });
    await Promise.all(ended);
  });
  const code = fingerprintOf([]);
  const start = async (name: string) => {
    const child = startChild(name, argumentsOf(how), foldersOn(mediumFor(name)));
    children.add(child);
    const closed = once(child, 'close');
    const [status, signal] = await once(child, 'exit');
    // An interrupted study has not failed, and no other study may start after it.
    if (interrupted) await new Promise(() => {});
    children.delete(child);
    await Promise.race([closed, sleep(DRAIN_MS)]);
    judgeEnd(name, status ?? signal, { ...how, code });
  };
  const known = new Map(readPublished().map(({ study, run }) => [study, run?.seconds ?? 0]));
  const course = {
    ...{ start, isAlone: measuresTime, lanes: LANES },
    seconds: (name: string) => known.get(name) ?? 0,
    say: (line: string) => console.error(`\n=== ${line}`),
  };
  const inputs = globSync('**/*', { cwd: folder, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  const files = inputs.map(({ parentPath, name }) => join(parentPath, name)).sort();
  const part = names.length === STUDY_NAMES.length ? [] : names;
  const done = new RawRecords(['all', ...part, ...(quick ? ['quick'] : [])].join('-'), files, seed);
  const begun = performance.now();
  const summary = await runAll(names, course, done);
  await report();
  printSummary(summary, seed, (performance.now() - begun) / 60_000);
}

function argumentsOf({ quick, data, seed, strict }: How): readonly string[] {
  return [
    ...(seed === undefined ? [] : ['--seed', String(seed)]),
    ...(quick ? ['--quick'] : []),
    ...(strict ? ['--strict'] : []),
    ...(data === undefined ? [] : ['--data', data]),
  ];
}

/** Returns if the study ended well. `status` is its exit code or the signal that ended it. */
function judgeEnd(
  name: string,
  status: number | string,
  { quick, seed = DEFAULT_SEED, code }: How & { readonly code: string },
): void {
  const ended = readResult(name, quick);
  if (status === MISSED && ended !== undefined && 'cells' in ended)
    throw new Error('a figure missed its target');
  if (status !== 0 && status !== MISSED) {
    const message = `it ended with ${status}`;
    // A killed process wrote no result. Record the failure, so that the report does not show older
    // figures.
    if (ended === undefined || !('failed' in ended)) {
      const context = describeContext({ quick, seed, seeded: null, seconds: 0, code });
      writeResult({ study: name, context, failed: message });
    }
    throw new Error(message);
  }
  if (ended !== undefined && 'notRun' in ended) throw new NotRun(ended.notRun);
}

function printSummary(
  { ran, kept, notRun, failed }: Summary,
  seed: number | undefined,
  minutes: number,
): void {
  console.log(
    `\nall: ${minutes.toFixed(1)} min; seed ${seed ?? DEFAULT_SEED}; ran ${ran.length}, kept from before ${kept.length}`,
  );
  if (notRun.length > 0) console.log(`not run: ${notRun.join(', ')}`);
  if (failed.length > 0) {
    console.log(`FAILED: ${failed.join(', ')}; the same command tries only these again`);
    process.exitCode = 1;
  }
}
