import type { RequestsOptions } from './requests.ts';

/** How the requests of a deployment are kept, as the configuration says it. */
export type RequestsConfig = Pick<
  RequestsOptions,
  'store' | 'link' | 'expiresIn' | 'run' | 'rules' | 'webhooks'
>;
