import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline/promises';
import type { Proposal } from '../protocol/license.ts';
import { renderNote } from '../protocol/note.ts';
import type { RenderOptions } from '../protocol/render-text.ts';
import { type Output, printable } from './output.ts';

const isTerminal = () => process.stdin.isTTY === true && process.stdout.isTTY === true;

/** Whether a person can answer: stdin and stdout are a terminal, and JSON was not asked for. */
export function canAsk({ json }: Output): boolean {
  return !json && isTerminal();
}

/**
 * Asks one question on the terminal; an empty answer takes the offered one. Ctrl-C and the end of
 * input give undefined.
 */
export async function ask(question: string, offered = ''): Promise<string | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const hint = offered === '' ? '' : ` [${offered}]`;
    const { promise: ended, resolve } = Promise.withResolvers<undefined>();
    terminal.once('close', () => resolve(undefined));
    const answer = (await Promise.race([terminal.question(`${question}${hint} `), ended]))?.trim();
    if (answer === undefined) process.stdout.write('\n');
    return answer === '' ? offered : answer;
  } finally {
    terminal.close();
  }
}

/**
 * Asks for a yes; anything else is a no. If the text above was shortened, the answer `all` shows
 * the whole text and asks again.
 */
export async function confirm(question: string, showAll?: () => Promise<void>): Promise<boolean> {
  for (;;) {
    const choices = showAll === undefined ? '[y/N]' : '[y/N/all]';
    const answer = (await ask(`${question} ${choices}`)) ?? '';
    if (showAll === undefined || !/^(?:a|all)$/i.test(answer)) return /^(?:y|yes)$/i.test(answer);
    await showAll();
  }
}

/** Prints a rendering like a diff: additions, changes and removals each in their colour. */
export function printRendering(rendering: string, output: Output): void {
  for (const line of paintLines(rendering, output)) output.line(line);
}

/** Prints what comes with a proposal and is not signed: warnings, and what the agent says. */
export function printNote({ note }: Proposal, options: RenderOptions, output: Output): void {
  const text = renderNote(note, options);
  if (text === '') return;
  output.line();
  for (const line of printable(text).split('\n'))
    output.line(/^(?:Warning|Unverified)/.test(line) ? output.paint('caution', line) : line);
}

/** The same as `printRendering` in a pager if there is a terminal: the full text can be fifty thousand lines. */
export async function pageThrough(rendering: string, output: Output): Promise<void> {
  const lines = paintLines(rendering, output);
  if (output.json || (await readInPager(lines))) return;
  for (const line of lines) output.line(line);
}

function paintLines(rendering: string, { paint }: Output): string[] {
  return printable(rendering)
    .split('\n')
    .map((text) => {
      const [, sign] = /^ +([+~-]) /.exec(text) ?? [];
      if (sign === '+') return paint('good', text);
      if (sign === '-') return paint('bad', text);
      const warns = sign === '~' || /^(?:Not compared|Shortened):/.test(text);
      return warns ? paint('caution', text) : text;
    });
}

/**
 * Shows lines in the program that `PAGER` names, `less` by default, and waits until the reader is
 * done. Returns false if the text was perhaps not shown and must be printed: without a terminal,
 * if `PAGER` is empty or `cat`, or if the program fails. No one may sign what was not shown.
 */
async function readInPager(lines: readonly string[]): Promise<boolean> {
  const command = process.env.PAGER ?? 'less';
  if (!isTerminal() || ['', 'cat'].includes(command.trim())) return false;
  if (lines.length < (process.stdout.rows ?? 24)) return false;
  // Through a shell, because PAGER may hold flags. LESS keeps colours and skips short texts.
  const child = spawn(command, {
    shell: true,
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: '-FRX', ...process.env },
  });
  child.stdin.on('error', () => {}); // the reader quit before the end
  child.stdin.end(`${lines.join('\n')}\n`);
  const { promise, resolve } = Promise.withResolvers<number | null>();
  child.once('error', () => resolve(null));
  child.once('close', resolve);
  return (await promise) === 0;
}
