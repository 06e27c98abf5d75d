import { parseCountersignable } from '../../crypto/countersign.ts';
import { contentOfLicense } from '../../crypto/decision.ts';
import { writeLicense } from '../../crypto/license.ts';
import { parseProposal } from '../../crypto/proposal.ts';
import type { Proposal, SignedLicense } from '../../protocol/license.ts';
import type { Say } from './elements.ts';
import type { ReadDocument } from './reading.ts';
import type { Signer } from './signers.ts';

/** Checking or sending a longer text takes long enough to say so. */
const LONG = 500_000;

/** A request that waits for a signature: the document to read, and a way to sign it. */
export interface Signable {
  readonly request: string;
  readonly document: ReadDocument;
  /** Who signed first, and until when that license is valid, if this is the second signature. */
  readonly first?: { readonly issuer: string; readonly expiresAt: string };
  sign(signer: Signer, expiresIn: string): Promise<SignedLicense>;
}

/** Fetches a request for the first signature. */
export async function fetchSignable(request: string, say: Say): Promise<Signable> {
  const proposal = await fetchProposal(request, say);
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
export async function fetchCountersignable(request: string, say: Say): Promise<Signable> {
  const text = await fetchText(`/requests/${request}/license.json`, say);
  const { license, approved, signature } = parseCountersignable(text);
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
export async function fetchProposal(request: string, say: Say): Promise<Proposal> {
  const proposal = parseProposal(await fetchText(`/requests/${request}/proposal.json`, say));
  if (proposal.draft.task !== request)
    throw new Error('the server sent the proposal of another request');
  return proposal;
}

/** Fetches what will be checked next. */
async function fetchText(path: string, say: Say): Promise<string> {
  const text = await (await fetch(path)).text();
  if (text.length > LONG) await say(`Checking ${megabytes(text)}…`);
  return text;
}

/** Submits a signed license. */
export async function sendLicense(
  { form, request, say }: { readonly form: string; readonly request: string; readonly say: Say },
  signed: SignedLicense,
  accept = 'text/html',
): Promise<Response> {
  const text = JSON.stringify(signed);
  if (text.length > LONG) await say(`Sending ${megabytes(text)}…`);
  const body = new FormData();
  body.set('form', form);
  body.set('license', new Blob([text]), 'license.json');
  const init = { method: 'POST', body, redirect: 'manual', headers: { accept } } as const;
  return await fetch(`/requests/${request}/license`, init);
}

function megabytes({ length }: string): string {
  return `${(length / 1_000_000).toFixed(1)} MB`;
}
