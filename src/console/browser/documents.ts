import { parseCountersignable } from '../../crypto/countersign.ts';
import { contentOfLicense } from '../../crypto/decision.ts';
import { writeLicense } from '../../crypto/license.ts';
import { parseProposal } from '../../crypto/proposal.ts';
import type { Proposal, SignedLicense } from '../../protocol/license.ts';
import type { ReadDocument } from './reading.ts';
import type { Signer } from './signers.ts';

/** A request that waits for a signature: the document to read, and a way to sign it. */
export interface Signable {
  readonly request: string;
  readonly document: ReadDocument;
  /** Who signed first, and until when that license is valid, if this is the second signature. */
  readonly first?: { readonly issuer: string; readonly expiresAt: string };
  sign(signer: Signer, expiresIn: string): Promise<SignedLicense>;
}

/** Fetches a request for the first signature. */
export async function fetchSignable(request: string): Promise<Signable> {
  const proposal = await fetchProposal(request);
  const { draft, approved, note } = proposal;
  return {
    ...{ request, document: { terms: draft, approved, note } },
    async sign({ issuer, key, sign }, expiresIn) {
      const drawNonce = () => crypto.randomUUID().replaceAll('-', '');
      const signer = { issuer, key, nowMs: Date.now(), drawNonce };
      const license = writeLicense(draft, signer, { expiresIn });
      return { license, approved, signature: await sign(contentOfLicense(license)) };
    },
  };
}

/** Fetches the license that another person signed, for the second signature. */
export async function fetchCountersignable(request: string): Promise<Signable> {
  const answer = await fetch(`/requests/${request}/license.json`);
  const { license, approved, signature } = parseCountersignable(await answer.text());
  if (license.task !== request) throw new Error('the server sent the license of another request');
  const { issuer: firstIssuer, expiresAt } = license;
  return {
    ...{ request, document: { terms: license, approved } },
    first: { issuer: firstIssuer, expiresAt },
    async sign({ issuer, key, sign }) {
      const second = { issuer, key, signature: await sign(contentOfLicense(license)) };
      return { license, approved, signature, second };
    },
  };
}

/** Fetches the proposal of a request, and checks that its parts belong together. */
export async function fetchProposal(request: string): Promise<Proposal> {
  const answer = await fetch(`/requests/${request}/proposal.json`);
  const proposal = parseProposal(await answer.text());
  if (proposal.draft.task !== request)
    throw new Error('the server sent the proposal of another request');
  return proposal;
}

/** Submits a signed license. */
export async function sendLicense(
  form: string,
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
