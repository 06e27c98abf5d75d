/**
 * Signs a proposal in the browser. What is shown is rendered here, from the bytes that are signed: a
 * server that shows one thing and asks to sign another is found out.
 *
 * @module
 */
import { signedText, writeLicense } from '../../crypto/license.ts';
import { parseProposal } from '../../crypto/proposal.ts';
import type { Proposal } from '../../protocol/license.ts';
import { renderNote } from '../../protocol/note.ts';
import { renderLicense } from '../../protocol/render-license.ts';
import { type BrowserKey, findKey, makeKey, sign } from './key.ts';

/** What the page says about the request and about who may sign. */
interface Site {
  readonly request: string;
  readonly form: string;
  /** Public keys of the configuration, and whose they are. */
  readonly issuers: Readonly<Record<string, string>>;
}

// First, or a refresh during the first offer would leave the new page without one.
document.addEventListener('refreshed', offerOnPage);
await offerOnPage();

async function offerOnPage(): Promise<void> {
  const box = document.querySelector<HTMLElement>('#signer');
  if (box !== null) await offer(box);
}

/** Offers to make a key, or to sign with the one that is here. */
async function offer(box: HTMLElement): Promise<void> {
  const { request = '', form = '', issuers = '{}' } = box.dataset;
  const site: Site = { request, form, issuers: JSON.parse(issuers) };
  const key = await findKey();
  if (key === undefined) {
    const words = 'This browser has no key yet. Its private half will never leave it.';
    box.replaceChildren(
      paragraph(words),
      button('Make a key here', async () => {
        await makeKey();
        await offer(box);
      }),
    );
    return;
  }
  const issuer = site.issuers[key.text];
  if (issuer === undefined) {
    const words = 'The key of this browser is in no issuer of the configuration. Have it added:';
    box.replaceChildren(paragraph(words), preformatted(key.text));
    return;
  }
  const label = `Read and sign as ${issuer}`;
  const read = button(label, () => readAndSign(site, key, issuer));
  read.className = 'primary';
  box.replaceChildren(read);
}

async function readAndSign(site: Site, key: BrowserKey, issuer: string): Promise<void> {
  const answer = await fetch(`/requests/${site.request}/proposal.json`);
  const proposal = parseProposal(await answer.text());
  if (proposal.draft.task !== site.request)
    throw new Error('the server sent the proposal of another request');
  const expiresIn = await confirmReading(proposal, issuer);
  if (expiresIn === undefined) return;
  const drawNonce = () => crypto.randomUUID().replaceAll('-', '');
  const signer = { issuer, key: key.id, nowMs: Date.now(), drawNonce };
  const license = writeLicense(proposal.draft, signer, { expiresIn });
  const signature = await sign(key, signedText(license));
  const content = JSON.stringify({ license, approved: proposal.approved, signature });
  const body = new FormData();
  body.set('form', site.form);
  body.set('license', new Blob([content]), 'license.json');
  await fetch(`/requests/${site.request}/license`, { method: 'POST', body, redirect: 'manual' });
  location.reload();
}

const VALID = ['10m', '1h', '1d'];
/** More changes than this are summarised first, and listed when asked for. */
const MAX_LISTED = 2000;

/** Shows what will be signed; resolves to how long it is valid, or to nothing if it is not signed. */
function confirmReading(proposal: Proposal, issuer: string): Promise<string | undefined> {
  const dialog = document.createElement('dialog');
  const heading = document.createElement('h2');
  heading.textContent = `Sign this as ${issuer}?`;
  const choice = document.createElement('select');
  choice.setAttribute('aria-label', 'valid for');
  choice.append(...VALID.map((text) => new Option(`valid for ${text}`, text)));
  const { draft, approved, note } = proposal;
  const unsigned = preformatted(renderNote(note, { full: true }));
  unsigned.className = 'unsigned';
  const isLong = approved.effects.length > MAX_LISTED;
  const shown = preformatted(renderLicense(draft, approved, { full: !isLong }));
  const all = button(`Show all ${approved.effects.length} changes`, () => {
    shown.replaceChildren(...linesOf(renderLicense(draft, approved, { full: true })));
    all.remove();
  });
  return new Promise((resolve) => {
    const yes = button('Sign', () => {
      resolve(choice.value);
      dialog.remove();
    });
    yes.className = 'primary';
    const no = button('Do not sign', () => dialog.close());
    dialog.onclose = () => {
      resolve(undefined);
      dialog.remove();
    };
    const row = document.createElement('p');
    row.append(choice, ' ', yes, ' ', no);
    dialog.append(heading, shown, ...(isLong ? [all] : []), unsigned, row);
    document.body.append(dialog);
    dialog.showModal();
  });
}

function paragraph(text: string): HTMLElement {
  const element = document.createElement('p');
  element.className = 'aside';
  element.textContent = text;
  return element;
}

function preformatted(text: string): HTMLElement {
  const element = document.createElement('pre');
  element.append(...linesOf(text));
  return element;
}

/** Each line by itself: where a long one wraps, it is indented and cannot pass for another line. */
function linesOf(text: string): readonly HTMLElement[] {
  return text.split('\n').map((line) => {
    const element = document.createElement('span');
    element.className = 'text-line';
    element.textContent = line;
    return element;
  });
}

/** A button whose failure is shown next to it. */
function button(label: string, work: () => unknown): HTMLButtonElement {
  const element = document.createElement('button');
  element.type = 'button';
  element.textContent = label;
  element.onclick = async () => {
    element.disabled = true;
    try {
      await work();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const problem = paragraph(`Not signed: ${why}`);
      problem.className = 'problem';
      element.after(problem);
    } finally {
      element.disabled = false;
    }
  };
  return element;
}
