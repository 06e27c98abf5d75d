import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline/promises';
import type { Proposal } from '../protocol/license.ts';
import { renderNote } from '../protocol/note.ts';
import type { RenderOptions } from '../protocol/render-text.ts';
import { type Output, printable, type Tone, wrapMarked } from './output.ts';

const isTerminal = () => process.stdin.isTTY === true && process.stdout.isTTY === true;

/** Whether a person can answer: stdin and stdout are terminals, and --json was not given. */
export function canAsk({ json }: Output): boolean {
  return !json && isTerminal();
}

/**
 * Asks a question on the terminal. An empty answer accepts the default. Returns undefined on Ctrl-C
 * or the end of input.
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
 * Asks for confirmation; anything but yes is a no. If the text above was shortened, the answer
 * `all` shows all of it and asks again.
 */
export async function confirm(question: string, showAll?: () => Promise<void>): Promise<boolean> {
  for (;;) {
    const choices = showAll === undefined ? '[y/N]' : '[y/N/all]';
    const answer = (await ask(`${question} ${choices}`)) ?? '';
    if (showAll === undefined || !/^(?:a|all)$/i.test(answer)) return /^(?:y|yes)$/i.test(answer);
    await showAll();
  }
}

/** Prints a rendering like a diff, with colours for additions, changes and removals. */
export function printRendering(rendering: string, output: Output): void {
  for (const line of paintLines(rendering, output)) output.line(line);
}

/** Prints the unsigned part of a proposal: warnings, and what the agent says. */
export function printNote({ note }: Proposal, options: RenderOptions, output: Output): void {
  const text = renderNote(note, options);
  if (text === '') return;
  output.line();
  printRendering(text, output);
}

/** Prints text in a pager if there is a terminal: it can have fifty thousand lines. */
export async function pageThrough(rendering: string, output: Output): Promise<void> {
  const lines = paintLines(rendering, output);
  if (output.json || (await readInPager(lines))) return;
  for (const line of lines) output.line(line);
}

function paintLines(rendering: string, { paint, width }: Output): string[] {
  return printable(rendering)
    .split('\n')
    .flatMap((text) => wrapMarked(text, width).map((line) => paint(toneOfLine(text), line)));
}

function toneOfLine(text: string): Tone {
  const [, sign] = /^ +([+~-]) /.exec(text) ?? [];
  if (sign === '+') return 'good';
  if (sign === '-') return 'bad';
  const warns = sign === '~' || /^(?:Not compared:|Shortened:|Said by|Unverified)/.test(text);
  return warns || text.startsWith('  | Warning:') ? 'caution' : 'plain';
}

/**
 * Shows lines in the program that `PAGER` names, by default `less`, and waits until the reader
 * quits. Returns false if the text may not have been shown and must be printed: without a terminal,
 * if `PAGER` is empty or `cat`, if the text fits the screen, or if the program fails. Never
 * sign a text that was not shown.
 */
async function readInPager(lines: readonly string[]): Promise<boolean> {
  const command = process.env.PAGER ?? 'less';
  if (!isTerminal() || ['', 'cat'].includes(command.trim())) return false;
  if (lines.length < (process.stdout.rows ?? 24)) return false;
  // Use a shell, because PAGER may contain flags. LESS keeps colours and skips short texts.
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
