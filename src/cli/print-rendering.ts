import { usageError } from './guided-error.ts';
import { type Output, printable } from './output.ts';
import { readInPager } from './pager.ts';

/**
 * Prints what there is to approve like a diff: additions, changes and removals in their colours,
 * cautions marked.
 */
export function printRendering(rendering: string, output: Output): void {
  for (const line of paintLines(rendering, output)) output.line(line);
}

/**
 * The same, in the reader's pager where a person sits at a terminal: fifty thousand lines are for
 * leafing through.
 */
export async function leafThrough(rendering: string, output: Output): Promise<void> {
  const lines = paintLines(rendering, output);
  if (output.json || (await readInPager(lines))) return;
  for (const line of lines) output.line(line);
}

const PAGE_LINES = 200;

/** One page of a long text, counted from 1, with where it stands. */
export interface Page {
  readonly page: number;
  readonly pages: number;
  readonly text: string;
}

/** The page asked for; one that there is not is refused with how many there are. */
export function pageOf(rendering: string, page: number, verb: string): Page {
  const lines = rendering.split('\n');
  const pages = Math.ceil(lines.length / PAGE_LINES);
  if (page > pages)
    throw usageError(`there is no page ${page}: it has ${pages} of ${PAGE_LINES} lines`, verb);
  return { page, pages, text: lines.slice((page - 1) * PAGE_LINES, page * PAGE_LINES).join('\n') };
}

function paintLines(rendering: string, { paint }: Output): string[] {
  return printable(rendering)
    .split('\n')
    .map((text) => {
      const [, sign] = /^ +([+~-]) /.exec(text) ?? [];
      if (sign === '+') return paint('good', text);
      if (sign === '-') return paint('bad', text);
      return sign === '~' || /^(?:Not compared|Shortened):/.test(text)
        ? paint('caution', text)
        : text;
    });
}
