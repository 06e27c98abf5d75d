import { createHash, randomBytes } from 'node:crypto';

const TOKEN = /^Bearer (emt_[\w-]{43})$/;

/** A new bearer token, and its digest for the configuration. */
export function newToken(): { readonly token: string; readonly digest: string } {
  const token = `emt_${randomBytes(32).toString('base64url')}`;
  return { token, digest: digestToken(token) };
}

/** The digest of the token in an `Authorization` header; undefined unless it is one of ours. */
export function digestOfHeader(header: string | undefined): string | undefined {
  const [, token] = TOKEN.exec(header ?? '') ?? [];
  return token === undefined ? undefined : digestToken(token);
}

/** A token has 256 random bits, so guessing cannot reverse a plain digest. */
function digestToken(token: string): string {
  return `sha256:${createHash('sha256').update(token).digest('hex')}`;
}
