/**
 * Signs with a key file in a saved page. No server is involved, so none can change what is shown or
 * signed.
 *
 * @module
 */
import { digestText } from '../../crypto/digest.ts';
import { readAndSign, readLicense, readProposal } from './documents.ts';
import { button, field, paragraph } from './elements.ts';
import { base64url, bytesOf } from './key.ts';
import type { Signer } from './signers.ts';

/** The fixed PKCS #8 prefix of an Ed25519 seed (RFC 8410). */
const FRAME = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

const results = field('results');
field('actions').append(button('Read and sign', signFile, 'primary'));

async function signFile(): Promise<void> {
  const signer = await readKey(await textOf('key', 'choose your key file'));
  const text = await textOf('files', 'choose a proposal');
  const isSigned = Object.hasOwn(Object(JSON.parse(text)), 'signature');
  const signable = isSigned ? readLicense(text) : readProposal(text);
  if (signable.first?.issuer === signer.issuer)
    throw new Error('you signed this first; another person must sign second');
  const signed = await readAndSign(signable, signer);
  if (signed === undefined) return;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([JSON.stringify(signed)], { type: 'application/json' }));
  link.download = isSigned ? 'signed-twice.json' : 'license.json';
  link.textContent = `Save ${link.download}`;
  results.replaceChildren(paragraph(`Signed by ${signer.issuer}.`, 'state'), link);
}

/** Reads a key file. */
async function readKey(text: string): Promise<Signer> {
  const { issuer, publicKey, privateKey } = Object(JSON.parse(text)) as Record<string, unknown>;
  const [, seed] = /^ed25519-private:([\w-]{43})$/.exec(String(privateKey)) ?? [];
  if (typeof issuer !== 'string' || seed === undefined)
    throw new Error('this is not a key file of `effectmatch keygen`');
  const bytes = Uint8Array.from([...FRAME, ...bytesOf(seed)]);
  const key = await crypto.subtle.importKey('pkcs8', bytes, 'Ed25519', false, ['sign']);
  return {
    issuer,
    label: issuer,
    key: digestText('effectmatch/approver-key/v1', String(publicKey)),
    sign: async ({ domain, text: content }) => {
      const signed = new TextEncoder().encode(`${domain}\n${content}`);
      return base64url(await crypto.subtle.sign('Ed25519', key, signed));
    },
  };
}

async function textOf(id: string, missing: string): Promise<string> {
  const [file] = field<HTMLInputElement>(id).files ?? [];
  if (file === undefined) throw new Error(missing);
  return await file.text();
}
