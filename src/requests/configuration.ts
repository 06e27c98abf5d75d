import type { RequestsOptions } from './requests.ts';

/** The part of {@link RequestsOptions} that the configuration sets. */
export type RequestsConfig = Pick<
  RequestsOptions,
  'store' | 'link' | 'expiresIn' | 'run' | 'rules' | 'webhooks'
>;
