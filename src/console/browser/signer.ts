/**
 * Signs a proposal in the browser. What is shown is rendered here, from the bytes that are signed: a
 * server that shows one thing and asks to sign another is found out.
 *
 * @module
 */
import { parseCountersignable } from '../../crypto/countersign.ts';
import { digestRecord, digestText } from '../../crypto/digest.ts';
import { signedText, writeLicense } from '../../crypto/license.ts';
import { readPasskeyText } from '../../crypto/passkey-text.ts';
import { parseProposal } from '../../crypto/proposal.ts';
import {
  type License,
  licenseRecord,
  type Proposal,
  type SignedLicense,
} from '../../protocol/license.ts';
import type { Digest } from '../../protocol/record.ts';
import { button, paragraph, preformatted } from './elements.ts';
import { findKey, makeKey, sign } from './key.ts';
import { offerLogin } from './login.ts';
import { canUsePasskeys, registerPasskey, signWithPasskey } from './passkey.ts';
import { confirmReading } from './reading.ts';

/** What the page says about the request and about who may sign. */
interface Site {
  readonly request: string;
  readonly form: string;
  /** Who is signed in. */
  readonly user: string;
  /** Who signed already, if a second person has to sign. */
  readonly first: string;
  /** Public keys of the configuration, and whose they are. */
  readonly issuers: Readonly<Record<string, string>>;
}

/** A key that signs here, and the issuer it belongs to. */
interface Signer {
  readonly issuer: string;
  readonly label: string;
  readonly key: Digest;
  sign(license: License): Promise<string>;
}

// First, or a refresh during the first offer would leave the new page without one.
document.addEventListener('refreshed', offerOnPage);
await offerOnPage();

async function offerOnPage(): Promise<void> {
  const box = document.querySelector<HTMLElement>('#signer');
  if (box !== null) await offer(box);
  const bulk = document.querySelector<HTMLElement>('#bulk');
  if (bulk !== null) await offerBulk(bulk);
  const login = document.querySelector<HTMLElement>('#login');
  if (login !== null) offerLogin(login);
}

function siteOf({ dataset }: HTMLElement): Site {
  const { request = '', form = '', user = '', first = '', issuers = '{}' } = dataset;
  return { request, form, user, first, issuers: JSON.parse(issuers) };
}

/** Offers to sign with every key that is known here, and to make one. */
async function offer(box: HTMLElement): Promise<void> {
  const site = siteOf(box);
  const { first } = site;
  const signers = [...(await browserSigners(site)), ...passkeySigners(site)];
  const offered = signers.filter(({ issuer }) => issuer !== first);
  const buttons = offered.map((signer, index) =>
    button(signer.label, () => readAndSign(site, signer), index === 0 ? 'primary' : ''),
  );
  box.replaceChildren(...buttons, await keysHere(site, offered.length === 0, box));
}

async function browserSigners({ issuers }: Site): Promise<readonly Signer[]> {
  const found = await findKey();
  const issuer = found === undefined ? undefined : issuers[found.text];
  if (found === undefined || issuer === undefined) return [];
  const label = `Read and sign as ${issuer}`;
  return [{ issuer, label, key: found.id, sign: (license) => sign(found, signedText(license)) }];
}

/** The passkeys of the configuration that sign for this page, here or on another device. */
function passkeySigners({ issuers }: Site): readonly Signer[] {
  if (!canUsePasskeys()) return [];
  return Object.entries(issuers).flatMap(([text, issuer], _index, all): readonly Signer[] => {
    const passkey = readPasskeyText(text);
    if (passkey?.origin !== location.origin) return [];
    const others = all.filter(([, name]) => name === issuer).map(([known]) => known);
    const which = others.length > 1 ? ` (key ${others.indexOf(text) + 1})` : '';
    const label = `Read and sign as ${issuer} with a passkey${which}`;
    const key = digestText('effectmatch/approver-key/v1', text);
    const signDigest = async (license: License) => {
      const digest = digestRecord(licenseRecord, license);
      return (await signWithPasskey([passkey.credential], digest)).signature;
    };
    return [{ issuer, label, key, sign: signDigest }];
  });
}

/** How a key comes to be here. */
async function keysHere(site: Site, isOpen: boolean, box: HTMLElement): Promise<HTMLElement> {
  const details = document.createElement('details');
  details.open = isOpen;
  const summary = document.createElement('summary');
  summary.textContent = 'Keys on this device';
  details.append(summary);
  const known = await findKey();
  const unregistered = known !== undefined && site.issuers[known.text] === undefined;
  const words = 'The key of this browser is in no issuer of the configuration. Have it added:';
  if (unregistered) details.append(paragraph(words), preformatted(known.text));
  if (canUsePasskeys()) {
    const about = 'A passkey asks for your fingerprint, face or PIN at every signature.';
    details.append(
      paragraph(about),
      button('Register a passkey', () => showNew(site, details)),
    );
  } else {
    const about = 'Passkeys need a host name: they cannot be used at an address made of numbers.';
    details.append(paragraph(about));
  }
  if (known === undefined) {
    const about = 'A browser key never leaves this browser, and signs without asking who you are.';
    const make = async () => {
      await makeKey();
      await offer(box);
    };
    details.append(paragraph(about), button('Make a key here', make));
  }
  return details;
}

async function showNew(site: Site, details: HTMLElement): Promise<void> {
  const text = preformatted(await registerPasskey(site.user || 'approver'));
  text.id = 'new-passkey';
  details.append(paragraph('Have it added to an issuer of the configuration:'), text);
}

async function readAndSign(site: Site, signer: Signer): Promise<void> {
  const signed = await (site.first === '' ? signFirst(site, signer) : signSecond(site, signer));
  if (signed === undefined) return;
  await send(site, site.request, signed);
  location.reload();
}

async function send(
  { form }: Site,
  request: string,
  signed: SignedLicense,
  accept = 'text/html',
): Promise<Response> {
  const body = new FormData();
  body.set('form', form);
  body.set('license', new Blob([JSON.stringify(signed)]), 'license.json');
  const init = { method: 'POST', body, redirect: 'manual', headers: { accept } } as const;
  return await fetch(`/requests/${request}/license`, init);
}

async function fetchProposal(request: string): Promise<Proposal> {
  const answer = await fetch(`/requests/${request}/proposal.json`);
  const proposal = parseProposal(await answer.text());
  if (proposal.draft.task !== request)
    throw new Error('the server sent the proposal of another request');
  return proposal;
}

async function signProposal(
  { draft, approved }: Proposal,
  { issuer, key, sign: signWith }: Signer,
  expiresIn: string,
): Promise<SignedLicense> {
  const drawNonce = () => crypto.randomUUID().replaceAll('-', '');
  const license = writeLicense(draft, { issuer, key, nowMs: Date.now(), drawNonce }, { expiresIn });
  return { license, approved, signature: await signWith(license) };
}

async function signFirst({ request }: Site, signer: Signer): Promise<SignedLicense | undefined> {
  const proposal = await fetchProposal(request);
  const { draft, approved, note } = proposal;
  const expiresIn = await confirmReading({
    title: `Sign this as ${signer.issuer}?`,
    documents: [{ terms: draft, approved, note }],
    asksLifetime: true,
  });
  return expiresIn === undefined ? undefined : await signProposal(proposal, signer, expiresIn);
}

/** Offers to sign what is chosen on the page: each is read, and each gets its own license. */
async function offerBulk(box: HTMLElement): Promise<void> {
  const site = siteOf(box);
  const signers = [...(await browserSigners(site)), ...passkeySigners(site)];
  const buttons = signers.map((signer, index) =>
    button(signer.label, () => signChosen(box, signer), index === 0 ? 'primary' : ''),
  );
  const none = paragraph('No key on this device can sign this. Open one request to make one.');
  box.replaceChildren(...(buttons.length === 0 ? [none] : buttons));
}

async function signChosen(box: HTMLElement, signer: Signer): Promise<void> {
  const chosen = [...document.querySelectorAll<HTMLInputElement>('input[name=id]:checked')];
  const ids = chosen.filter(({ dataset }) => (dataset.first ?? '') === '').map((one) => one.value);
  if (ids.length === 0) throw new Error('choose at least one request that is not signed yet');
  const proposals = await Promise.all(ids.map(fetchProposal));
  const expiresIn = await confirmReading({
    title: `Sign these ${ids.length} as ${signer.issuer}?`,
    aside: 'Each of them gets its own license. What stands out comes first.',
    documents: proposals.map(({ draft, approved, note }) => ({ terms: draft, approved, note })),
    asksLifetime: true,
  });
  if (expiresIn === undefined) return;
  const refused: string[] = [];
  for (const proposal of proposals) {
    const { task } = proposal.draft;
    const signed = await signProposal(proposal, signer, expiresIn);
    const answer = await send(siteOf(box), task, signed, 'application/json');
    const { tone, text } = (await answer.json()) as { tone: string; text: string };
    if (tone !== 'good') refused.push(`${task.slice(0, 12)}: ${text}`);
  }
  const done = `${ids.length - refused.length} of ${ids.length} approved.`;
  box.replaceChildren(
    paragraph(done, 'notice'),
    ...refused.map((line) => paragraph(line, 'problem')),
  );
  const back = document.createElement('a');
  back.href = '/';
  back.textContent = 'Back to the inbox';
  box.append(back);
}

/** Signs what another person signed, after reading the same text. */
async function signSecond(
  { request }: Site,
  { issuer, key, sign: signWith }: Signer,
): Promise<SignedLicense | undefined> {
  const answer = await fetch(`/requests/${request}/license.json`);
  const { license, approved, signature } = parseCountersignable(await answer.text());
  if (license.task !== request) throw new Error('the server sent the license of another request');
  const isRead = await confirmReading({
    title: `Sign this too, as ${issuer}?`,
    aside: `${license.issuer} signed it; the license ends at ${license.expiresAt}.`,
    documents: [{ terms: license, approved }],
    asksLifetime: false,
  });
  if (isRead === undefined) return undefined;
  return {
    license,
    approved,
    signature,
    second: { issuer, key, signature: await signWith(license) },
  };
}
