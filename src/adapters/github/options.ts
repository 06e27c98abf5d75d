import type { Registration } from '../../protocol/registration.ts';

/** One repository whose issues are changed. */
export interface GithubOptions {
  readonly owner: string;
  readonly repo: string;
  /** A token that may write issues; a function is asked for every request. */
  readonly token: string | (() => string);
  /**
   * `https://api.github.com` unless said otherwise; for GitHub Enterprise Server
   * `https://<host>/api/v3`.
   */
  readonly url?: string;
  readonly values?: Registration['values'];
  readonly timeoutMs?: number;
  /** Certificates to trust in place of the ones of Node.js, as PEM. */
  readonly ca?: string;
}
