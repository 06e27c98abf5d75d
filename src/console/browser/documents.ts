import { parseCountersignable } from '../../crypto/countersign.ts';
import { contentOfLicense } from '../../crypto/decision.ts';
import { writeLicense } from '../../crypto/license.ts';
import { parseProposal } from '../../crypto/proposal.ts';
import type { Proposal, SignedLicense } from '../../protocol/license.ts';
import { type Say, submit } from './elements.ts';
import { confirmReading, type ReadDocument } from './reading.ts';
import type { Signer } from './signers.ts';

/** Checking or sending a longer text takes long enough to say so. */
const LONG = 500_000;

/** What waits for a signature: the document to read, and a way to sign it. */
export interface Signable {
  readonly request: string;
  readonly document: ReadDocument;
  /** Who signed first, and until when that license is valid, if this is the second signature. */
  readonly first?: { readonly issuer: string; readonly expiresAt: string };
  sign(signer: Signer, expiresIn: string): Promise<SignedLicense>;
}

/** A proposal, for the first signature. Checks that its parts belong together. */
export function readProposal(text: string): Signable & { readonly draft: Proposal['draft'] } {
  const { draft, approved, note } = parseProposal(text);
  return {
    request: draft.task,
    draft,
    document: { terms: draft, approved, note },
    async sign({ issuer, key, sign }, expiresIn) {
      const drawNonce = () => crypto.randomUUID().replaceAll('-', '');
      const signer = { issuer, key, nowMs: Date.now(), drawNonce };
      const license = writeLicense(draft, signer, { expiresIn });
      return { license, approved, signature: await sign(contentOfLicense(license)) };
    },
  };
}

/** The license that another person signed, for the second signature. */
export function readLicense(text: string): Signable {
  const { license, approved, signature } = parseCountersignable(text);
  const { issuer: firstIssuer, expiresAt } = license;
  return {
    request: license.task,
    document: { terms: license, approved },
    first: { issuer: firstIssuer, expiresAt },
    async sign({ issuer, key, sign }) {
      const second = { issuer, key, signature: await sign(contentOfLicense(license)) };
      return { license, approved, signature, second };
    },
  };
}

/** Fetches what is to be signed next for a request; `first` is the issuer who has signed. */
export async function fetchSignable(request: string, first: string, say: Say): Promise<Signable> {
  if (first === '') return await fetchProposal(request, say);
  const signable = readLicense(await fetchText(`/requests/${request}/license.json`, say));
  if (signable.request === request) return signable;
  throw new Error('the server sent the license of another request');
}

/** Fetches the proposal of a request. */
export async function fetchProposal(request: string, say: Say) {
  const proposal = readProposal(await fetchText(`/requests/${request}/proposal.json`, say));
  if (proposal.request === request) return proposal;
  throw new Error('the server sent the proposal of another request');
}

/** Shows a document to an issuer and signs it; undefined if the issuer cancels. */
export async function readAndSign(
  signable: Signable,
  signer: Signer,
): Promise<SignedLicense | undefined> {
  const { first, document } = signable;
  const { issuer } = signer;
  const words =
    first === undefined
      ? { title: `Sign this as ${issuer}?` }
      : {
          title: `Sign this too, as ${issuer}?`,
          aside: `${first.issuer} signed this. The license expires at ${first.expiresAt}.`,
        };
  const asksLifetime = first === undefined;
  const expiresIn = await confirmReading({ ...words, documents: [document], asksLifetime });
  return expiresIn === undefined ? undefined : await signable.sign(signer, expiresIn);
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
  const license = new File([text], 'license.json');
  const init = { redirect: 'manual', headers: { accept } } as const;
  return await submit(`/requests/${request}/license`, { form, license }, init);
}

function megabytes({ length }: string): string {
  return `${(length / 1_000_000).toFixed(1)} MB`;
}
