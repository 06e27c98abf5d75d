/**
 * How the examples print what happens, and the folder they work in. Nothing here is specific to
 * EffectMatch.
 *
 * @module
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { renderTerminal, type Terminal } from 'effectmatch';

process.stdout.on('error', () => process.exit(1)); // the reader has closed the pipe

/** Begins a part of the story. */
export function chapter(title: string): void {
  console.log(`\n${title}`);
}

/** Prints text with a label in front of its first line. */
export function tell(about: string, text: string): void {
  for (const [index, line] of text.split('\n').entries()) {
    console.log(`   ${(index === 0 ? about : '').padEnd(11)}${line}`.trimEnd());
  }
}

/** Prints a verdict as recorded, and stops the example unless it is the expected one. */
export function expectVerdict(terminal: Terminal, expected: string): void {
  tell('verdict', renderTerminal(terminal));
  const found = terminal.kind === 'rejected' ? `rejected (${terminal.reason})` : terminal.kind;
  assert.equal(found, expected);
}

/** Prints what is visible without EffectMatch, and stops the example unless it is as expected. */
export function expectDurable(
  about: string,
  found: string | readonly string[],
  expected: string | readonly string[] | undefined,
): void {
  tell(about, Array.isArray(found) ? found.join('\n') || 'nothing' : String(found));
  assert.deepEqual(found, expected);
}

/** Where an example works. */
export interface Workplace extends Disposable {
  readonly folder: string;
  /** Whether the files stay when the example ends. */
  readonly kept: boolean;
}

/**
 * A temporary folder that is removed however the example ends, or the new folder that `--keep`
 * names, which stays.
 */
export function openWorkplace(): Workplace {
  const options = { keep: { type: 'string' } } as const;
  const { keep } = parseArgs({ options, allowPositionals: true }).values;
  if (keep !== undefined) {
    if (existsSync(keep)) {
      console.error(`${resolve(keep)} exists already; name a folder that does not`);
      process.exit(1);
    }
    mkdirSync(keep);
    return {
      folder: resolve(keep),
      kept: true,
      [Symbol.dispose]: () => tell('kept', resolve(keep)),
    };
  }
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-example-'));
  const remove = () => rmSync(folder, { recursive: true, force: true });
  process.on('exit', remove);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => process.exit(128 + constants.signals[signal]));
  }
  return { folder, kept: false, [Symbol.dispose]: remove };
}
