import { STEPS, type Step } from '../../src/contract/steps.ts';

/**
 * Steps of the remote path. A backend that holds its candidate never takes it, so no test here can
 * die there.
 */
export const REMOTE_STEPS: readonly Step[] = [
  'path:request-built',
  'path:permit-consumed',
  'adapter:connected',
  'adapter:response-read',
  'path:dispatched',
  'path:read-back',
];

/** Steps that recovery takes, the adapter's part in it included. */
export const RECOVERY_STEPS: readonly Step[] = STEPS.filter(
  (step) => step.startsWith('recovery:') || step.startsWith('adapter:void-'),
);

/** Steps between the verdict and the end of dependent work. */
export const RELEASE_STEPS: readonly Step[] = STEPS.filter((step) =>
  step.startsWith('continuation:'),
);

/** Steps of an execution against a backend that holds its candidate. */
export const EXECUTION_STEPS: readonly Step[] = STEPS.filter(
  (step) => ![...REMOTE_STEPS, ...RECOVERY_STEPS, ...RELEASE_STEPS].includes(step),
);
