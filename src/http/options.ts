/**
 * The one service an adapter talks to. Nothing is ever sent to another host, whatever a response
 * says.
 */
export interface ServiceOptions {
  /** For example `https://pay.example`, with a path where the service has one. */
  readonly url: string;
  /** Which account or tenant this is, in your words: a license for one does not fit another. */
  readonly backend: string;
  /**
   * What only the gateway has. A function is asked for every request, so that a credential can be
   * rotated.
   */
  readonly credential: { readonly header: string; readonly value: string | (() => string) };
  /** Certificates to trust in place of the ones of Node.js, as PEM. */
  readonly ca?: string;
  /** For one request, everything included; 10 s unless said otherwise. */
  readonly timeoutMs?: number;
  /** Of a response; 1 MiB unless said otherwise. */
  readonly maxBytes?: number;
}
