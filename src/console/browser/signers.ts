import type { SignedContent } from '../../crypto/decision.ts';
import { digestText } from '../../crypto/digest.ts';
import { readPasskeyText } from '../../crypto/passkey-text.ts';
import type { Digest } from '../../protocol/record.ts';
import { button, paragraph, preformatted, type Say, submit } from './elements.ts';
import { findKey, makeKey, sign } from './key.ts';
import { canUsePasskeys, registerPasskey, signWithPasskey } from './passkey.ts';

/** What a page tells its script about who may sign. */
export interface Site {
  readonly form: string;
  /** Who is signed in. */
  readonly user: string;
  /** Configured issuers or operators, by public key. */
  readonly issuers: Readonly<Record<string, string>>;
  /** Whether the server accepts a new key from this page. */
  readonly acceptsKeys: boolean;
}

/** A key that can sign on this page, and its issuer. */
export interface Signer {
  readonly issuer: string;
  /** `bob`, or `bob with a passkey`. */
  readonly label: string;
  readonly key: Digest;
  sign(content: SignedContent): Promise<string>;
}

/** Reads the site from an element's attributes. */
export function siteOf({ dataset }: HTMLElement): Site {
  const { form = '', user = '', issuers = '{}', accepts } = dataset;
  return { form, user, issuers: JSON.parse(issuers), acceptsKeys: accepts !== undefined };
}

/** Finds the keys that this browser can use and that belong to one of the page's issuers. */
export async function findSigners(site: Site): Promise<readonly Signer[]> {
  return [...(await browserSigners(site)), ...passkeySigners(site)];
}

/** One button for each key that can sign. */
export function signerButtons(
  signers: readonly Signer[],
  work: (signer: Signer, say: Say) => unknown,
): readonly HTMLElement[] {
  return signers.map((signer, index) => {
    const label = `Read and sign as ${signer.label}`;
    return button(label, (say) => work(signer, say), index === 0 ? 'primary' : '');
  });
}

async function browserSigners({ issuers }: Site): Promise<readonly Signer[]> {
  const found = await findKey();
  const issuer = found === undefined ? undefined : issuers[found.text];
  if (found === undefined || issuer === undefined) return [];
  const signText = ({ domain, text }: SignedContent) => sign(found, `${domain}\n${text}`);
  return [{ issuer, label: issuer, key: found.id, sign: signText }];
}

/** The configured passkeys for this origin, on this device or on another one. */
function passkeySigners({ issuers }: Site): readonly Signer[] {
  if (!canUsePasskeys()) return [];
  return Object.entries(issuers).flatMap(([text, issuer], _index, all): readonly Signer[] => {
    const passkey = readPasskeyText(text);
    if (passkey?.origin !== location.origin) return [];
    const others = all.filter(([, name]) => name === issuer).map(([known]) => known);
    const which = others.length > 1 ? ` (key ${others.indexOf(text) + 1})` : '';
    const label = `${issuer} with a passkey${which}`;
    const key = digestText('effectmatch/approver-key/v1', text);
    const signDigest = async (content: SignedContent) => {
      const digest = digestText(content.domain, content.text);
      return (await signWithPasskey([passkey.credential], digest)).signature;
    };
    return [{ issuer, label, key, sign: signDigest }];
  });
}

/** Explains how to get a key. `role` is the part of the configuration that lists it. */
export async function keysHere(
  site: Site,
  { isOpen, role, refresh }: { isOpen: boolean; role: string; refresh: () => Promise<void> },
): Promise<HTMLElement> {
  const details = document.createElement('details');
  details.open = isOpen;
  const summary = document.createElement('summary');
  summary.textContent = 'Keys on this device';
  details.append(summary);
  const known = await findKey();
  if (known !== undefined && site.issuers[known.text] === undefined) {
    const words = `Ask an administrator to add this browser's key to an ${role} in the configuration:`;
    details.append(paragraph(words), preformatted(known.text));
    const use = () => useKey(site, known.text);
    if (site.acceptsKeys) details.append(button('Use this key', use, '', 'Not accepted'));
  }
  details.append(...passkeyParts(site, role));
  if (known === undefined) {
    const about = 'A browser key never leaves this browser. It signs without asking who you are.';
    const make = async () => {
      const { text } = await makeKey();
      await (site.acceptsKeys ? useKey(site, text) : refresh());
    };
    details.append(paragraph(about), button('Create a browser key', make, '', 'Not created'));
  }
  return details;
}

function passkeyParts(site: Site, role: string): readonly HTMLElement[] {
  if (!canUsePasskeys()) {
    const about = 'Passkeys need a host name: they do not work at an IP address.';
    return [paragraph(about)];
  }
  const about = 'A passkey asks for your fingerprint, face or PIN at every signature.';
  const create = async () => {
    const text = await registerPasskey(site.user || 'approver');
    if (site.acceptsKeys) return await useKey(site, text);
    const shown = preformatted(text);
    shown.id = 'new-passkey';
    register.after(
      paragraph(`Ask an administrator to add it to an ${role} in the configuration:`),
      shown,
    );
  };
  const register = button('Register a passkey', create, '', 'Not registered');
  return [paragraph(about), register];
}

/** Sends a new key to a server that accepts keys for trials, then opens the page it names. */
async function useKey({ form }: Site, key: string): Promise<void> {
  const answer = await submit('/keys', { form, key, to: location.pathname });
  if (!answer.ok) throw new Error('this server accepts no new keys');
  const { to } = (await answer.json()) as { to: string };
  location.href = to;
}
