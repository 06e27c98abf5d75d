import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { Hono } from 'hono';
import { EffectMatchError } from '../errors.ts';
import type { Console, Env } from './app.ts';
import { html } from './html.ts';

const KEYS = '<textarea id="keys" rows="3" spellcheck="false">';

/** Adds the pages that people save and then open without this server. */
export function addSavedPages(app: Hono<Env>, { runtime }: Console): void {
  app.get('/verifier.html', () => {
    const keys = html`${runtime.receiptKeys.join('\n')}`.text;
    return saved('verifier.html', (text) => text.replace(KEYS, () => KEYS + keys));
  });
  app.get('/signer.html', () => saved('signer.html'));
}

/**
 * SHA-256 of the offline signing page, to compare with a saved copy; undefined if the package was
 * not built.
 */
export function signerDigest(): string | undefined {
  const file = new URL('./assets/signer.html', import.meta.url);
  if (!existsSync(file)) return undefined;
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

function saved(name: string, change = (text: string) => text): Response {
  const file = new URL(`./assets/${name}`, import.meta.url);
  if (!existsSync(file))
    throw new EffectMatchError(
      'ERR_EM_NOT_FOUND',
      'this page is missing because the package was not built',
    );
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    'content-disposition': `attachment; filename="effectmatch-${name}"`,
  };
  return new Response(change(readFileSync(file, 'utf8')), { headers });
}

/** Responds with a JSON file to save. */
export function download(name: string, content: unknown): Response {
  const headers = {
    'content-type': 'application/json',
    'content-disposition': `attachment; filename="${name}"`,
  };
  return new Response(JSON.stringify(content), { headers });
}
