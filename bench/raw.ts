import { hash } from 'node:crypto';
import {
  appendFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { collectFacts } from './facts.ts';
import type { Samples } from './statistics.ts';

/** The folder for results: EFFECTMATCH_BENCH_RESULTS, by default `bench/results`. */
export function resultsFolder(): string {
  return process.env.EFFECTMATCH_BENCH_RESULTS ?? 'bench/results';
}

/** The record of one run of a study: its name, then its results. */
export type RawRecord = { readonly run: string } & { readonly [fact: string]: unknown };

/**
 * The raw records of a study, one JSON object per line. Each is written as soon as its run ends. An
 * interrupted study continues where it stopped, unless its data or any code has changed. A finished
 * study starts from the beginning.
 */
export class RawRecords {
  readonly #file: string;
  readonly #records = new Map<string, RawRecord>();
  readonly #asked = new Set<string>();

  /**
   * `inputs` are the files that the study reads. `seed` is the seed of its random draws, if it has
   * any.
   */
  constructor(name: string, inputs: readonly string[], seed?: number) {
    this.#file = join(resultsFolder(), 'raw', `${name}.jsonl`);
    const fingerprint = fingerprintOf(inputs, { name, seed });
    const context = { fingerprint, ...(seed !== undefined && { seed }) };
    const lines = existsSync(this.#file)
      ? readFileSync(this.#file, 'utf8').split('\n').slice(0, -1)
      : [];
    const [head, ...kept] = lines.map((line) => JSON.parse(line) as RawRecord);
    const isSame = head?.run === 'head' && head.fingerprint === fingerprint && head.seed === seed;
    const isOpen = isSame && kept.at(-1)?.run !== 'finished';
    if (isOpen) for (const record of kept) this.#records.set(record.run, record);
    const begin = [{ run: 'head', ...context }, ...this.#records.values()];
    mkdirSync(dirname(this.#file), { recursive: true });
    // Rewrite the file, because its last line may be incomplete.
    writeFileSync(this.#file, begin.map((record) => `${JSON.stringify(record)}\n`).join(''));
  }

  /** Returns the existing record of this run, or runs it now. */
  async run<T extends object>(name: string, work: () => Promise<T>): Promise<T & RawRecord> {
    if (this.#asked.has(name))
      throw new Error(`two runs are called "${name}": the second would not be run`);
    this.#asked.add(name);
    const known = this.#records.get(name);
    if (known !== undefined) return known as T & RawRecord;
    const { result, facts } = await collectFacts(work);
    const record = { run: name, ...result, ...(facts.length > 0 && { kept: facts }) };
    this.#records.set(name, record);
    appendFileSync(this.#file, `${JSON.stringify(record)}\n`);
    // Yield: Ctrl-C is handled between event loop turns, and a run may never await anything.
    await nextTurn();
    return record;
  }

  finish(): void {
    appendFileSync(this.#file, `${JSON.stringify({ run: 'finished' })}\n`);
  }
}

/**
 * Writes the samples behind the measured figures, one figure per line. In a study without raw
 * records, a figure that was measured once is its own sample.
 */
export function writeSamples(
  study: string,
  cells: readonly { readonly name: string; readonly value: number; readonly samples?: object }[],
): void {
  const folder = join(resultsFolder(), 'raw');
  const hasRuns = existsSync(join(folder, `${study}.jsonl`));
  const lines = cells.flatMap(({ name, value, samples }) => {
    const own = samples ?? (hasRuns ? undefined : { statistic: 'median', of: [value] });
    return own === undefined ? [] : [JSON.stringify({ figure: name, ...own })];
  });
  if (lines.length === 0) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${study}-samples.jsonl`), `${lines.join('\n')}\n`);
}

/** The samples behind one figure. */
export type FigureSamples = Samples & { readonly figure: string };

/** The samples of a study's figures; undefined if it keeps none. */
export function readSamples(study: string, quick: boolean): readonly FigureSamples[] | undefined {
  const file = join(resultsFolder(), 'raw', `${study}${quick ? '-quick' : ''}-samples.jsonl`);
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as FigureSamples);
}

/** The runs of a finished study; undefined if it keeps none or was interrupted. */
export function readRaw(study: string, quick: boolean): readonly RawRecord[] | undefined {
  const file = join(resultsFolder(), 'raw', `${study}${quick ? '-quick' : ''}.jsonl`);
  if (!existsSync(file)) return undefined;
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  const records = lines.map((line) => JSON.parse(line) as RawRecord);
  return records.at(-1)?.run === 'finished' ? records.slice(1, -1) : undefined;
}

/**
 * Digest of everything that decides a study's figures: the project's code, the versions of its
 * dependencies and of Node.js, the contents of the `inputs` files, and the `options`.
 */
export function fingerprintOf(inputs: readonly string[], options: object = {}): string {
  const named = (files: readonly string[]) =>
    files.map((file) => `${file} ${hash('sha256', readFileSync(file), 'hex')}`);
  const data = inputs.map((file) => hash('sha256', readFileSync(file), 'hex'));
  const parts = [process.version, JSON.stringify(options), ...named(codeFiles()), ...data];
  return hash('sha256', parts.join('\n'), 'hex');
}

/** All code that a study can run: whole folders, and the test files that they import. */
export function codeFiles(): readonly string[] {
  // Publishing results must not make them look older than the code.
  const own = globSync('{src,bench,examples}/**/*.{ts,mjs,py,sql,json}').filter(
    (file) => !file.startsWith('bench/results/') && file !== 'bench/published.json',
  );
  const found = new Set([...own, 'package-lock.json']);
  for (const file of found) {
    if (!/\.(ts|mjs)$/.test(file)) continue;
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(
      /'(\.{1,2}\/[^'\n]+\.(?:ts|mjs|py|sql|json))'/g,
    )) {
      const imported = join(dirname(file), path);
      if (existsSync(imported)) found.add(imported);
    }
  }
  return [...found].sort();
}
