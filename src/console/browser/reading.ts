import type { License, Proposal, SignedLicense } from '../../protocol/license.ts';
import type { Note } from '../../protocol/note.ts';
import { renderNote } from '../../protocol/note.ts';
import { renderLicense } from '../../protocol/render-license.ts';
import { button, linesOf, paragraph, preformatted } from './elements.ts';

const VALID = { '10m': '10 minutes', '1h': '1 hour', '1d': '1 day' };
/** Longer outcomes are summarised, with a button that lists all changes. */
const MAX_LISTED = 2000;

/** What the approver reads before signing. */
export interface Reading {
  readonly title: string;
  /** Further information, such as who has already signed. */
  readonly aside?: string;
  readonly documents: readonly ReadDocument[];
  /** Whether the approver chooses how long the license is valid. */
  readonly asksLifetime: boolean;
}

/** One text to sign. */
export interface ReadDocument {
  readonly terms: Proposal['draft'] | License;
  readonly approved: SignedLicense['approved'];
  readonly note?: Note | undefined;
}

/** Shows what will be signed. Resolves to the chosen lifetime, or to undefined if cancelled. */
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

/** Shows content in a dialog and asks whether to sign it. */
export function confirm(parts: {
  readonly title: string;
  readonly content: readonly HTMLElement[];
  /** Shown next to the buttons. */
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
    if (choice !== undefined) row.append(choice);
    row.append(button('Sign', () => answer(true), 'primary'));
    row.append(button('Cancel', () => dialog.close()));
    dialog.append(heading, ...content, row);
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Renders the text from the bytes that will be signed. The unsigned note comes below it. */
function show({ terms, approved, note }: ReadDocument): readonly HTMLElement[] {
  const unsigned = preformatted(renderNote(note, { full: true }));
  unsigned.className = 'unsigned';
  const isLong = approved.effects.length > MAX_LISTED;
  const shown = preformatted(renderLicense(terms, approved, { full: !isLong }));
  const all = button(`Show all ${approved.effects.length} changes`, async (say) => {
    await say(`Listing ${approved.effects.length} changes…`);
    shown.replaceChildren(...linesOf(renderLicense(terms, approved, { full: true })));
    all.remove();
  });
  return [shown, ...(isLong ? [all] : []), ...(note === undefined ? [] : [unsigned])];
}
