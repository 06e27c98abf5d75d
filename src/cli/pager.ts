import { spawn } from 'node:child_process';

const DEFAULT = 'less';

/**
 * Shows lines in the program that `PAGER` names, `less` unless it says otherwise, and waits until
 * the reader is done. False where nobody sits at a terminal, where `PAGER` is empty or `cat`, or
 * where the program failed or there is none: then print them, because nobody may be asked to sign
 * what was perhaps not shown.
 */
export async function readInPager(lines: readonly string[]): Promise<boolean> {
  const command = process.env.PAGER ?? DEFAULT;
  if (
    !process.stdout.isTTY ||
    !process.stdin.isTTY ||
    command.trim() === '' ||
    command.trim() === 'cat'
  )
    return false;
  if (lines.length < (process.stdout.rows ?? 24)) return false;
  // As a shell would read it, because PAGER may hold flags; and with colours, ending by itself
  // where all of it fits.
  const child = spawn(command, {
    shell: true,
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: '-FRX', ...process.env },
  });
  child.stdin.on('error', () => {}); // a reader who has seen enough
  child.stdin.end(`${lines.join('\n')}\n`);
  const code = await new Promise<number | null>((resolve) => {
    child.once('error', () => resolve(null));
    child.once('close', resolve);
  });
  return code === 0;
}
