// What `npm test` prints: a mark per test (under CI a line per file), then everything that failed, every reason for
// which tests were skipped, counts and time. Under CI a skip fails the run unless its reason is in OPTIONAL_PARTS.
import { relative } from 'node:path';

/** Parts of the machine that tests may do without, by the reason that they give. */
const OPTIONAL_PARTS = [
  /^no public task data: /,
  /^PostgreSQL 15 is not installed/,
  /^there is no (python3|`script`) here/,
  /^strace is not installed here/,
  /^no mount namespace here/,
  /^no file system of its own here/,
  /^only root can /,
  /^root reads every file/,
  /^no file modes there/,
  /^no Node older than /,
  /^the store is declared as not /,
  /^the kit has no way /,
  /^actions of this adapter /,
];
const NO_REASON = 'no reason given';
const OUTPUT_MAX = 4_000;

/** What a run has shown so far. */
class Run {
  passed = 0;
  failures = [];
  skips = new Map();
  #started = performance.now();
  #names = new Map();
  #outputs = new Map();
  #files = new Map();

  enter({ file, nesting, name }) {
    this.#names.set(file, [...(this.#names.get(file) ?? []).slice(0, nesting), name]);
  }

  keepOutput({ file, message }) {
    this.#outputs.set(file, `${this.#outputs.get(file) ?? ''}${message}`.slice(-OUTPUT_MAX));
  }

  /** Takes in one ended test and returns its mark; a suite has none, unless it failed itself. */
  end(data, failed) {
    const { file, name, nesting, skip, details } = data;
    const error = details.error;
    if (failed && error?.failureType === 'subtestsFailed') return '';
    if (details.type === 'suite' && !failed && skip === undefined) return '';
    const counts = this.#files.get(file) ?? { passed: 0, failed: 0, skipped: 0 };
    this.#files.set(file, counts);
    const title = [...(this.#names.get(file) ?? []).slice(0, nesting), name].join(' › ');
    if (failed) {
      counts.failed += 1;
      this.failures.push({ file, title, error });
      return 'X';
    }
    if (skip !== undefined && skip !== false) {
      counts.skipped += 1;
      const reason = typeof skip === 'string' && skip !== '' ? skip : NO_REASON;
      this.skips.set(reason, [...(this.skips.get(reason) ?? []), `${shown(file)}: ${title}`]);
      return 's';
    }
    counts.passed += 1;
    this.passed += 1;
    return '.';
  }

  /** One line about a file that has ended. */
  fileLine({ file, duration_ms: ms }) {
    const { passed, failed, skipped } = this.#files.get(file) ?? { passed: 0, failed: 0, skipped: 0 };
    const others = [failed > 0 && `${failed} FAILED`, skipped > 0 && `${skipped} skipped`].filter(Boolean);
    return `${[`${passed} passed`, ...others].join(', ').padEnd(24)} ${seconds(ms)}  ${shown(file)}\n`;
  }

  refusedSkips() {
    if (!process.env.CI) return [];
    return [...this.skips].filter(([reason]) => !OPTIONAL_PARTS.some((part) => part.test(reason)));
  }

  *summary(isComplete) {
    yield '\n';
    for (const failure of this.failures) yield this.#describe(failure);
    const skipped = [...this.skips.values()].reduce((sum, names) => sum + names.length, 0);
    for (const [reason, names] of this.skips) yield `skipped ${names.length}: ${reason}\n`;
    for (const [reason, names] of this.refusedSkips())
      yield `FAILED: CI accepts no skip for "${reason}":\n${names.map((name) => `  ${name}\n`).join('')}`;
    for (const { file, title } of this.failures) yield `FAILED: ${shown(file)}: ${title}\n`;
    if (!isComplete) yield 'FAILED: the runner ended before every test had run\n';
    const files = `${this.#files.size} files`;
    const counts = `${this.passed} passed, ${this.failures.length} failed, ${skipped} skipped`;
    yield `${counts}, ${files}, ${seconds(performance.now() - this.#started)}\n`;
  }

  #describe({ file, title, error }) {
    const cause = error?.cause ?? error;
    const text = cause?.stack ?? cause?.message ?? String(cause);
    const output = this.#outputs.get(file);
    this.#outputs.delete(file);
    return `\n✖ ${shown(file)}: ${title}\n${indent(text)}${output === undefined ? '' : `  its output ends:\n${indent(output)}`}`;
  }
}

const shown = (file) => (file === undefined ? 'unknown file' : relative(process.cwd(), file) || file);
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`;
const indent = (text) => `${text.trimEnd().replace(/^/gm, '    ')}\n`;

export default async function* report(events) {
  const run = new Run();
  let isComplete = false;
  let column = 0;
  for await (const { type, data } of events) {
    if (type === 'test:start') run.enter(data);
    else if (type === 'test:stderr' || type === 'test:stdout') run.keepOutput(data);
    else if (type === 'test:summary' && data.file === undefined) isComplete = true;
    else if (type === 'test:summary' && process.env.CI) yield run.fileLine(data);
    else if (type === 'test:pass' || type === 'test:fail') {
      const mark = run.end(data, type === 'test:fail');
      if (process.env.CI || mark === '') continue;
      column += 1;
      yield column % 100 === 0 ? `${mark}\n` : mark;
    }
  }
  yield* run.summary(isComplete);
  if (!isComplete || run.refusedSkips().length > 0) process.exitCode = 1;
}
