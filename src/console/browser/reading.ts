import type { License, Proposal, SignedLicense } from '../../protocol/license.ts';
import type { Note } from '../../protocol/note.ts';
import { renderNote } from '../../protocol/note.ts';
import { renderLicense } from '../../protocol/render-license.ts';
import { button, linesOf, paragraph, preformatted } from './elements.ts';

const VALID = ['10m', '1h', '1d'];
/** More changes than this are summarised first, and listed when asked for. */
const MAX_LISTED = 2000;

/** What is read before it is signed. */
export interface Reading {
  readonly title: string;
  /** What else there is to know, such as who signed already. */
  readonly aside?: string;
  readonly documents: readonly Document[];
  /** Whether the reader decides how long the license is valid. */
  readonly asksLifetime: boolean;
}

/** One text that is signed. */
interface Document {
  readonly terms: Proposal['draft'] | License;
  readonly approved: SignedLicense['approved'];
  readonly note?: Note | undefined;
}

/** Shows what will be signed; resolves to how long it is valid, or to nothing if it is not signed. */
export function confirmReading(reading: Reading): Promise<string | undefined> {
  const { title, aside, documents, asksLifetime } = reading;
  const dialog = document.createElement('dialog');
  const heading = document.createElement('h2');
  heading.textContent = title;
  const choice = document.createElement('select');
  choice.setAttribute('aria-label', 'valid for');
  choice.append(...VALID.map((text) => new Option(`valid for ${text}`, text)));
  return new Promise((resolve) => {
    const sign = () => {
      resolve(choice.value);
      dialog.remove();
    };
    dialog.onclose = () => {
      resolve(undefined);
      dialog.remove();
    };
    const row = document.createElement('p');
    row.append(...(asksLifetime ? [choice, ' '] : []), button('Sign', sign, 'primary'), ' ');
    row.append(button('Do not sign', () => dialog.close()));
    dialog.append(heading, ...(aside === undefined ? [] : [paragraph(aside)]));
    dialog.append(...documents.flatMap(show), row);
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** The text, rendered here from the bytes that are signed, and below it what is not signed. */
function show({ terms, approved, note }: Document): readonly HTMLElement[] {
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
