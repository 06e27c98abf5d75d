// A page of documentation as the tests see it: its code blocks, in order, with the notes that stand
// before them.
//
// Notes are HTML comments on a line of their own, so readers of the page do not see them:
//   <!-- not run: why -->            the block after it is not executed, and here is why
// <!-- folder: name --> what follows happens in a new, empty folder; `name, PostgreSQL x` gives it
// a database x
//   <!-- program -->                 all `ts` blocks of the page are one program, which is run
//   <!-- save as: file -->           the block after it is written to this file of the folder
// <!-- printed --> the lines of the block after it were printed by the commands before it; … is
// anything
//   <!-- quoted: file file -->       the `ts` blocks of the page are quoted from these files
//   <!-- given … -->                 code that the block after it takes for granted
//   <!-- generated … -->             the page is made by a script
//   <!-- figures: name -->           a table that `npm run bench -- publish` writes, until
//   <!-- end of figures -->          this one
// In a block of commands, a comment `# prints "…"` at the end of a line says what was printed.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** One fenced block. */
export interface Block {
  readonly kind: 'block';
  readonly page: string;
  readonly line: number;
  /** Empty where the fence names none: text that is shown. */
  readonly language: string;
  readonly text: string;
  /** The notes right before it. */
  readonly notes: readonly Note[];
}

/** One comment of the kinds listed above. */
export interface Note {
  readonly kind: 'note';
  readonly name: string;
  readonly value: string;
}

/** A page, as a sequence of notes and blocks. */
export interface Page {
  readonly file: string;
  readonly text: string;
  readonly items: readonly (Block | Note)[];
  readonly blocks: readonly Block[];
}

const NOTES = [
  'not run',
  'folder',
  'program',
  'save as',
  'printed',
  'quoted',
  'given',
  'generated',
  'figures',
  'end of figures',
];

/** Every page of the documentation, README first. */
export function readPages(): readonly Page[] {
  return ['README.md', ...globSync('docs/**/*.md').sort()].map((file) =>
    parsePage(file, readFileSync(file, 'utf8')),
  );
}

/** Reads a page; a fence that is not closed and a note of an unknown kind are errors. */
export function parsePage(file: string, text: string): Page {
  const items: (Block | Note)[] = [];
  const lines = text.split('\n');
  let before: Note[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    const fence = /^( *)(`{3,})(\w*)/.exec(line);
    if (fence !== null) {
      const [, indent = '', ticks = '', language = ''] = fence;
      const end = lines.findIndex(
        (other, index) => index > at && other.trimEnd() === indent + ticks,
      );
      if (end === -1) throw new Error(`${file}:${at + 1}: the block is not closed`);
      const body = lines.slice(at + 1, end).map((inner) => `${inner.slice(indent.length)}\n`);
      items.push({
        kind: 'block',
        page: file,
        line: at + 1,
        language,
        text: body.join(''),
        notes: before,
      });
      at = end;
      before = [];
    } else if (line.startsWith('<!--')) {
      const end = lines.findIndex((other, index) => index >= at && other.trimEnd().endsWith('-->'));
      if (end === -1) throw new Error(`${file}:${at + 1}: the comment is not closed`);
      const note = readNote(`${file}:${at + 1}`, lines.slice(at, end + 1).join('\n'));
      items.push(note);
      before.push(note);
      at = end;
    } else if (line.trim() !== '') {
      before = [];
    }
  }
  return { file, text, items, blocks: items.filter((item) => item.kind === 'block') };
}

function readNote(place: string, comment: string): Note {
  const inside = comment.trim().slice('<!--'.length, -'-->'.length).trim();
  const name = NOTES.find(
    (known) =>
      inside === known ||
      inside.startsWith(`${known}:`) ||
      (/^(given|generated)\s/.test(inside) && inside.startsWith(known)),
  );
  if (name === undefined)
    throw new Error(`${place}: the tests know no comment like this: ${inside.slice(0, 60)}`);
  return { kind: 'note', name, value: inside.slice(name.length).replace(/^:/, '').trim() };
}

/** The note of this kind before a block. */
export function noteOf(block: Block, name: string): string | undefined {
  return block.notes.find((note) => note.name === name)?.value;
}

/** Text of a page without its blocks and comments. */
export function proseOf({ text }: Page): string {
  return text.replace(/^( *)```[\s\S]*?^\1```$/gm, '').replace(/<!--[\s\S]*?-->/g, '');
}

/** Anchors of a page's headings, as GitHub makes them. */
export function anchorsOf(page: Page): ReadonlySet<string> {
  const seen = new Map<string, number>();
  return new Set(
    [...proseOf(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, title = '']) => {
      const base = title
        .toLowerCase()
        .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replace(/ /g, '-');
      const count = seen.get(base) ?? 0;
      seen.set(base, count + 1);
      return count === 0 ? base : `${base}-${count}`;
    }),
  );
}

/** Where the links and pictures of a page lead: file from the root of the project, and anchor. Other sites are left out. */
export function linksOf(page: Page): readonly { readonly file: string; readonly anchor: string }[] {
  const prose = proseOf(page).replace(/`[^`\n]*`/g, '`');
  const targets = [
    ...[...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target),
    ...[...prose.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, target = '']) => target),
  ];
  return targets
    .filter((target) => !/^[a-z]+:/.test(target))
    .map((target) => {
      const [path = '', anchor = ''] = target.split('#');
      return { file: path === '' ? page.file : normalize(join(dirname(page.file), path)), anchor };
    });
}
