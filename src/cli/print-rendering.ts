import { type Output, printable } from './output.ts';

/** Prints what there is to approve like a diff: additions, changes and removals in their colours, cautions marked. */
export function printRendering(rendering: string, { line, paint }: Output): void {
  for (const text of printable(rendering).split('\n')) {
    const [, sign] = /^ +([+~-]) /.exec(text) ?? [];
    if (sign === '+') line(paint('good', text));
    else if (sign === '-') line(paint('bad', text));
    else if (sign === '~' || /^(?:Not compared|Shortened):/.test(text)) line(paint('caution', text));
    else line(text);
  }
}
