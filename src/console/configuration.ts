/** Configures the console for a team. */
export interface ConsoleConfig {
  /**
   * The console's origin, such as `https://approve.example.com`. By default only this machine can
   * reach the console. Passkeys are bound to this address.
   */
  readonly origin?: string;
  /** Who may sign in. Without it, the link that `effectmatch serve` prints signs in one user. */
  readonly people?: Readonly<Record<string, PersonConfig>>;
  /** Signs people in with your identity provider. */
  readonly oidc?: OidcConfig;
}

/**
 * A person who may sign in. The person's key in `people` is the name that the identity provider
 * returns: an email address, unless `oidc.claim` names another claim.
 */
export interface PersonConfig {
  /** What they may do besides reading. Defaults to `['answer']`. */
  readonly may?: readonly ('answer' | 'operate')[];
  /** The issuers whose keys they hold. The console offers only those for signing. */
  readonly issuers?: readonly string[];
  /** The adapters whose requests and verdicts they see. Defaults to all. */
  readonly adapters?: readonly string[];
  /** The operations whose requests and verdicts they see. Defaults to everything. */
  readonly operations?: readonly string[];
  /** Passkeys for signing in. They must differ from the passkeys that sign licenses. */
  readonly passkey?: string | readonly string[];
}

/** An identity provider that speaks OpenID Connect. */
export interface OidcConfig {
  /** The provider's issuer URL, exactly as its discovery document states it. */
  readonly issuer: string;
  readonly clientId: string;
  /** For a confidential client. A public client relies on PKCE alone. */
  readonly clientSecret?: string;
  /** The claim that names a person. Defaults to `email`, which the provider must have verified. */
  readonly claim?: string;
}
