/** The console of a deployment that a team uses, as the configuration says it. */
export interface ConsoleConfig {
  /**
   * Where browsers reach it, such as `https://approve.example.com`; this machine alone unless said
   * otherwise. Passkeys belong to this address.
   */
  readonly origin?: string;
  /** Who may sign in. Without it a link that `effectmatch serve` prints signs in one user. */
  readonly people?: Readonly<Record<string, PersonConfig>>;
  /** Signs people in with your identity provider. */
  readonly oidc?: OidcConfig;
}

/**
 * A person who may sign in. The name is the one that the identity provider vouches for: an email
 * address, unless `oidc.claim` says otherwise.
 */
export interface PersonConfig {
  /** What they may do in addition to reading; `['answer']` unless said otherwise. */
  readonly may?: readonly ('answer' | 'operate')[];
  /** The issuers whose keys they have; the console offers only those for signing. */
  readonly issuers?: readonly string[];
  /** The adapters whose requests and verdicts they see; all unless said otherwise. */
  readonly adapters?: readonly string[];
  /** The operations whose requests and verdicts they see; everything unless said otherwise. */
  readonly operations?: readonly string[];
  /** Passkeys that sign them in, never the ones that sign licenses. */
  readonly passkey?: string | readonly string[];
}

/** An identity provider that speaks OpenID Connect. */
export interface OidcConfig {
  /** Its address, as its discovery document states it. */
  readonly issuer: string;
  readonly clientId: string;
  /** For a confidential client. Public clients have PKCE alone. */
  readonly clientSecret?: string;
  /** Which claim names a person; `email`, which must be verified, unless said otherwise. */
  readonly claim?: string;
}
