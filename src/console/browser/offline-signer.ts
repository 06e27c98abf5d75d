/**
 * Signs with a key file in a saved page. No server is involved, so none can change what is shown or
 * signed.
 *
 * @module
 */
import { parseCountersignable } from '../../crypto/countersign.ts';
import { contentOfLicense } from '../../crypto/decision.ts';
import { digestText } from '../../crypto/digest.ts';
import { writeLicense } from '../../crypto/license.ts';
import { parseProposal } from '../../crypto/proposal.ts';
import type { License, SignedLicense } from '../../protocol/license.ts';
import type { Digest } from '../../protocol/record.ts';
import { button, paragraph } from './elements.ts';
import { base64url } from './key.ts';
import { confirmReading } from './reading.ts';

/** A parsed key file: its issuer, and a way to sign with it. */
interface FileKey {
  readonly issuer: string;
  readonly id: Digest;
  sign(license: License): Promise<string>;
}

/** The fixed PKCS #8 prefix of an Ed25519 seed (RFC 8410). */
const FRAME = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

const results = element<HTMLElement>('results');
element<HTMLElement>('actions').append(button('Read and sign', readAndSign, 'primary'));

async function readAndSign(): Promise<void> {
  const key = await readKey(await textOf('key', 'choose your key file'));
  const text = await textOf('files', 'choose a proposal');
  const isSigned = Object.hasOwn(Object(JSON.parse(text)), 'signature');
  const signed = await (isSigned ? signSecond(text, key) : signFirst(text, key));
  if (signed === undefined) return;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([JSON.stringify(signed)], { type: 'application/json' }));
  link.download = isSigned ? 'signed-twice.json' : 'license.json';
  link.textContent = `Save ${link.download}`;
  results.replaceChildren(paragraph(`Signed by ${key.issuer}.`, 'state'), link);
}

async function signFirst(text: string, key: FileKey): Promise<SignedLicense | undefined> {
  const { draft, approved, note } = parseProposal(text);
  const expiresIn = await confirmReading({
    title: `Sign this as ${key.issuer}?`,
    documents: [{ terms: draft, approved, note }],
    asksLifetime: true,
  });
  if (expiresIn === undefined) return undefined;
  const drawNonce = () => crypto.randomUUID().replaceAll('-', '');
  const signer = { issuer: key.issuer, key: key.id, nowMs: Date.now(), drawNonce };
  const license = writeLicense(draft, signer, { expiresIn });
  return { license, approved, signature: await key.sign(license) };
}

async function signSecond(text: string, key: FileKey): Promise<SignedLicense | undefined> {
  const { license, approved, signature } = parseCountersignable(text);
  if (license.issuer === key.issuer)
    throw new Error('you signed this first; another person must sign second');
  const isRead = await confirmReading({
    title: `Sign this too, as ${key.issuer}?`,
    aside: `${license.issuer} signed this. The license expires at ${license.expiresAt}.`,
    documents: [{ terms: license, approved }],
    asksLifetime: false,
  });
  if (isRead === undefined) return undefined;
  const second = { issuer: key.issuer, key: key.id, signature: await key.sign(license) };
  return { license, approved, signature, second };
}

async function readKey(text: string): Promise<FileKey> {
  const { issuer, publicKey, privateKey } = Object(JSON.parse(text)) as Record<string, unknown>;
  const [, seed] = /^ed25519-private:([\w-]{43})$/.exec(String(privateKey)) ?? [];
  if (typeof issuer !== 'string' || seed === undefined)
    throw new Error('this is not a key file of `effectmatch keygen`');
  const binary = atob(seed.replaceAll('-', '+').replaceAll('_', '/'));
  const bytes = Uint8Array.from([...FRAME, ...[...binary].map((one) => one.charCodeAt(0))]);
  const key = await crypto.subtle.importKey('pkcs8', bytes, 'Ed25519', false, ['sign']);
  return {
    issuer,
    id: digestText('effectmatch/approver-key/v1', String(publicKey)),
    sign: async (license) => {
      const { domain, text: content } = contentOfLicense(license);
      const signed = new TextEncoder().encode(`${domain}\n${content}`);
      return base64url(await crypto.subtle.sign('Ed25519', key, signed));
    },
  };
}

async function textOf(id: string, missing: string): Promise<string> {
  const [file] = element<HTMLInputElement>(id).files ?? [];
  if (file === undefined) throw new Error(missing);
  return await file.text();
}

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found as T;
}
