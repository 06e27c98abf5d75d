/**
 * Signs in the browser. The browser renders the text from the bytes that it signs, so a server
 * cannot show one thing and have another signed.
 *
 * @module
 */
import { contentOfDecline, writeDecline } from '../../crypto/decision.ts';
import { offerBulk } from './bulk.ts';
import { fetchProposal, fetchSignable, readAndSign, sendLicense } from './documents.ts';
import { button, paragraph, type Say } from './elements.ts';
import { offerLogin } from './login.ts';
import { offerResolving } from './resolver.ts';
import { findSigners, keysHere, type Signer, signerButtons, siteOf } from './signers.ts';

/** What to offer if the page has an element with this id. */
const OFFERS: Readonly<Record<string, (box: HTMLElement) => unknown>> = {
  signer: offerSigning,
  'signed-decline': offerDeclining,
  bulk: offerBulk,
  resolver: offerResolving,
  login: offerLogin,
};

// Listen first: a refresh during the first offer would otherwise leave the new page without one.
document.addEventListener('refreshed', offerOnPage);
await offerOnPage();

async function offerOnPage(): Promise<void> {
  for (const [id, offer] of Object.entries(OFFERS)) {
    const box = document.getElementById(id);
    if (box !== null) await offer(box);
  }
}

/** Offers to sign with each key that this browser can use, and to create a key. */
async function offerSigning(box: HTMLElement): Promise<void> {
  const { first = '' } = box.dataset;
  const site = siteOf(box);
  const known = await findSigners(site);
  const signers = known.filter(({ issuer }) => issuer !== first);
  const buttons = signerButtons(signers, (signer, say) => sign(box, signer, say));
  const isOpen = known.length === 0;
  const parts = { isOpen, role: 'issuer', refresh: () => offerSigning(box) };
  const isFirst = known.length > 0 && signers.length === 0;
  const words = isFirst ? [paragraph('You signed this. Another person must sign too.')] : [];
  box.replaceChildren(...buttons, ...words, await keysHere(site, parts));
}

async function sign(box: HTMLElement, signer: Signer, say: Say): Promise<void> {
  const { request = '', first = '' } = box.dataset;
  const signed = await readAndSign(await fetchSignable(request, first, say), signer);
  if (signed === undefined) return;
  await sendLicense({ form: siteOf(box).form, request, say }, signed);
  location.reload();
}

/** Offers to sign a decline. It is then recorded under the issuer and not under the login. */
async function offerDeclining(box: HTMLElement): Promise<void> {
  const signing = document.getElementById('signer');
  const form = box.closest('form');
  if (signing === null || form === null) return;
  const signers = await findSigners(siteOf(signing));
  const offered = signers.map((signer) =>
    button(
      `Decline and sign as ${signer.label}`,
      (say) => decline({ form, signing, say }, signer),
      'danger',
    ),
  );
  box.replaceChildren(...offered);
}

interface Declining {
  readonly form: HTMLFormElement;
  readonly signing: HTMLElement;
  readonly say: Say;
}

async function decline({ form, signing, say }: Declining, signer: Signer): Promise<void> {
  if (!form.reportValidity()) return;
  const body = new FormData(form);
  const { draft } = await fetchProposal(signing.dataset.request ?? '', say);
  const { task: request, planRevision: generation, approved } = draft;
  const reason = String(body.get('reason'));
  const decider = { name: signer.issuer, key: signer.key, nowMs: Date.now() };
  const decided = writeDecline(decider, { request, generation, approved, reason });
  const signature = await signer.sign(contentOfDecline(decided));
  body.set('decline', JSON.stringify({ ...decided, signature }));
  await fetch(form.action, { method: 'POST', body, redirect: 'manual' });
  location.reload();
}
