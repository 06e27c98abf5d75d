import type { ConnectionOptions as TlsOptions } from 'node:tls';

/** How to connect as one login: a connection string, or its parts. */
export type ConnectionOptions =
  | string
  | {
      readonly host?: string;
      readonly port?: number;
      readonly user?: string;
      readonly password?: string;
      readonly database?: string;
      readonly ssl?: boolean | TlsOptions;
    };
