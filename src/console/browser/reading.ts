import type { License, Proposal, SignedLicense } from '../../protocol/license.ts';
import type { Note } from '../../protocol/note.ts';
import { renderNote } from '../../protocol/note.ts';
import { renderLicense } from '../../protocol/render-license.ts';
import { button, linesOf, paragraph, preformatted } from './elements.ts';

const VALID = { '10m': '10 minutes', '1h': '1 hour', '1d': '1 day' };
/** More changes than this are summarised first, and listed when asked for. */
const MAX_LISTED = 2000;

/** What is read before it is signed. */
export interface Reading {
  readonly title: string;
  /** What else there is to know, such as who signed already. */
  readonly aside?: string;
  readonly documents: readonly ReadDocument[];
  /** Whether the reader decides how long the license is valid. */
  readonly asksLifetime: boolean;
}

/** One text that is signed. */
export interface ReadDocument {
  readonly terms: Proposal['draft'] | License;
  readonly approved: SignedLicense['approved'];
  readonly note?: Note | undefined;
}

/** Shows what will be signed; resolves to how long it is valid, or to nothing if it is not signed. */
export async function confirmReading(reading: Reading): Promise<string | undefined> {
  const { title, aside, documents, asksLifetime } = reading;
  const choice = document.createElement('select');
  choice.setAttribute('aria-label', 'valid for');
  for (const [value, words] of Object.entries(VALID))
    choice.append(new Option(`valid for ${words}`, value));
  const words = aside === undefined ? [] : [paragraph(aside)];
  const content = [...words, ...documents.flatMap(show)];
  const isSigned = await confirm({ title, content, ...(asksLifetime && { choice }) });
  return isSigned ? choice.value : undefined;
}

/** Shows content in a dialog, and asks whether it is signed. */
export function confirm(parts: {
  readonly title: string;
  readonly content: readonly HTMLElement[];
  /** Stands next to the answer. */
  readonly choice?: HTMLElement;
}): Promise<boolean> {
  const { title, content, choice } = parts;
  const dialog = document.createElement('dialog');
  const heading = document.createElement('h2');
  heading.textContent = title;
  heading.id = 'reading';
  dialog.setAttribute('aria-labelledby', heading.id);
  return new Promise((resolve) => {
    const answer = (isSigned: boolean) => {
      resolve(isSigned);
      dialog.remove();
    };
    dialog.onclose = () => answer(false);
    const row = document.createElement('p');
    row.className = 'answer';
    row.append(...(choice === undefined ? [] : [choice, ' ']));
    row.append(
      button('Sign', () => answer(true), 'primary'),
      ' ',
    );
    row.append(button('Cancel', () => dialog.close()));
    dialog.append(heading, ...content, row);
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** The text, rendered here from the bytes that are signed, and below it what is not signed. */
function show({ terms, approved, note }: ReadDocument): readonly HTMLElement[] {
  const unsigned = preformatted(renderNote(note, { full: true }));
  unsigned.className = 'unsigned';
  const isLong = approved.effects.length > MAX_LISTED;
  const shown = preformatted(renderLicense(terms, approved, { full: !isLong }));
  const all = button(`Show all ${approved.effects.length} changes`, () => {
    shown.replaceChildren(...linesOf(renderLicense(terms, approved, { full: true })));
    all.remove();
  });
  return [shown, ...(isLong ? [all] : []), ...(note === undefined ? [] : [unsigned])];
}
