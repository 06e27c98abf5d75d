// What `npm test` prints: a mark per test (under CI a line per file), each failure as soon as its
// file has ended, and at the end the names of what failed, every reason for which tests were
// skipped, counts and time. Under CI a skip fails the run unless its reason is in OPTIONAL_PARTS.
import { relative, resolve } from 'node:path';
import { inspect } from 'node:util';

/** Parts of the machine that tests may do without, by the reason that they give. */
const OPTIONAL_PARTS = [
  /^no public task data: /,
  /^there is no (python3|gcc|`script`) here/,
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
  /^it holds no tasks/,
  /^the marker is written and made durable in one step/,
];
const NO_REASON = 'no reason given';
const OUTPUT_MAX = 4_000;

/**
 * What a run has shown so far. Events come file by file; a test may be defined in a module that its
 * file imports.
 */
class Run {
  #ended = [];
  #started = performance.now();
  #path = [];
  #outputs = new Map();
  #files = 0;
  /** From here on, ended tests are those of the current file. */
  #current = 0;

  enter({ nesting, name }) {
    this.#path = [...this.#path.slice(0, nesting), name];
  }

  keepOutput({ file: path, message }) {
    const file = resolve(path);
    this.#outputs.set(file, `${this.#outputs.get(file) ?? ''}${message}`.slice(-OUTPUT_MAX));
  }

  /**
   * Takes in one ended test and returns its mark; a suite has none, unless it was skipped or failed
   * itself.
   */
  end({ file: path, name, nesting, skip, details: { error, type } }, failed) {
    const file = path && resolve(path);
    if (failed && error?.failureType === 'subtestsFailed') return '';
    const isSkipped = skip !== undefined && skip !== false;
    if (type === 'suite' && !failed && !isSkipped) return '';
    const title = [...this.#path.slice(0, nesting), name].join(' › ');
    const ended = {
      file,
      title,
      kind: failed ? 'failed' : isSkipped ? 'skipped' : 'passed',
      error,
    };
    if (isSkipped) ended.reason = typeof skip === 'string' && skip !== '' ? skip : NO_REASON;
    this.#ended.push(ended);
    if (failed && resolve(name) === file) {
      ended.title = 'the file could not be run';
      this.#name(file);
    }
    return { failed: 'X', skipped: 's', passed: '.' }[ended.kind];
  }

  /**
   * Everything since the file before was this file's; returns a line about it and what failed in
   * it.
   */
  endFile({ file: path, duration_ms: ms }) {
    const file = resolve(path);
    const own = this.#name(file);
    const count = (kind) => own.filter((ended) => ended.kind === kind).length;
    const words = [`${count('passed')} passed`];
    if (count('failed') > 0) words.push(`${count('failed')} FAILED`);
    if (count('skipped') > 0) words.push(`${count('skipped')} skipped`);
    const failures = own
      .filter(({ kind }) => kind === 'failed')
      .map((ended) => this.#describe(ended));
    return {
      line: `${words.join(', ').padEnd(24)} ${seconds(ms).padStart(8)}  ${shown(file)}\n`,
      failures,
    };
  }

  #name(file) {
    const own = this.#ended.slice(this.#current);
    for (const ended of own) ended.file = file;
    this.#current = this.#ended.length;
    this.#files += 1;
    return own;
  }

  #of(kind) {
    return this.#ended.filter((ended) => ended.kind === kind);
  }

  refusedSkips() {
    if (!process.env.CI) return [];
    return this.#of('skipped').filter(
      ({ reason }) => !OPTIONAL_PARTS.some((part) => part.test(reason)),
    );
  }

  *summary(isComplete) {
    const [passed, failed, skipped] = ['passed', 'failed', 'skipped'].map((kind) => this.#of(kind));
    yield '\n';
    // Without a summary of their file they were not described yet.
    for (const ended of failed) if (!ended.isDescribed) yield this.#describe(ended);
    for (const [reason, tests] of Map.groupBy(skipped, (ended) => ended.reason))
      yield `skipped ${tests.length}: ${reason}\n`;
    for (const { file, title, reason } of this.refusedSkips())
      yield `FAILED: ${shown(file)}: ${title}: CI accepts no skip because "${reason}"\n`;
    for (const { file, title } of failed) yield `FAILED: ${shown(file)}: ${title}\n`;
    if (!isComplete) yield 'FAILED: the runner ended before every test had run\n';
    const counts = `${passed.length} passed, ${failed.length} failed, ${skipped.length} skipped`;
    yield `${counts}, ${this.#files} ${this.#files === 1 ? 'file' : 'files'}, ${seconds(performance.now() - this.#started)}\n`;
  }

  #describe(ended) {
    const { file, title, error } = ended;
    ended.isDescribed = true;
    const cause = error?.cause ?? error;
    const text = describeThrown(cause);
    const output = this.#outputs.get(file);
    this.#outputs.delete(file);
    const printed = output === undefined ? '' : `  its output ends:\n${indent(output)}`;
    return `\n✖ ${shown(file)}: ${title}\n${indent(text)}${printed}`;
  }
}

/** Anything can be thrown. A SuppressedError hides the error of the test and that of the disposal. */
function describeThrown(thrown) {
  if (typeof thrown === 'string') return thrown;
  if (thrown?.name !== 'SuppressedError') return inspect(thrown);
  return [thrown, thrown.suppressed, thrown.error].map((one) => inspect(one)).join('\n');
}

const shown = (file) =>
  file === undefined ? 'unknown file' : relative(process.cwd(), file) || file;
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
    else if (type === 'test:summary') {
      const { line, failures } = run.endFile(data);
      if (process.env.CI) yield line;
      yield* failures;
    } else if (type === 'test:pass' || type === 'test:fail') {
      const mark = run.end(data, type === 'test:fail');
      if (process.env.CI || mark === '') continue;
      column += 1;
      yield column % 100 === 0 ? `${mark}\n` : mark;
    }
  }
  yield* run.summary(isComplete);
  if (!isComplete || run.refusedSkips().length > 0) process.exitCode = 1;
}
