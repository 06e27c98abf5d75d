import { createInterface } from 'node:readline/promises';
import type { Output } from './output.ts';

/**
 * Whether a person is there to answer: both ends are a terminal, and no document for a program is
 * asked for.
 */
export function canAsk({ json }: Output): boolean {
  return !json && process.stdin.isTTY === true && process.stdout.isTTY === true;
}

/**
 * Asks one question on the terminal; an empty answer is the one that is offered. Ctrl-C and the end
 * of input are none.
 */
export async function ask(question: string, offered = ''): Promise<string | undefined> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const hint = offered === '' ? '' : ` [${offered}]`;
    const ended = new Promise<undefined>((resolve) =>
      terminal.once('close', () => resolve(undefined)),
    );
    const answer = (await Promise.race([terminal.question(`${question}${hint} `), ended]))?.trim();
    if (answer === undefined) process.stdout.write('\n');
    return answer === '' ? offered : answer;
  } finally {
    terminal.close();
  }
}

/** Asks for a yes. Anything else, and no answer at all, is a no. */
export async function confirm(question: string): Promise<boolean> {
  return /^(?:y|yes)$/i.test((await ask(`${question} [y/N]`)) ?? '');
}

/**
 * The same about something that was shortened: `all` shows the whole of it, and the question comes
 * again.
 */
export async function confirmShortened(
  question: string,
  showAll: () => Promise<void>,
): Promise<boolean> {
  for (;;) {
    const answer = (await ask(`${question} [y/N/all]`)) ?? '';
    if (!/^(?:a|all)$/i.test(answer)) return /^(?:y|yes)$/i.test(answer);
    await showAll();
  }
}
