/**
 * Every point in execution, recovery and continuation at which a process may die. Crash tests
 * iterate over this list; a test compares it with the calls of `reached` in the source.
 */
export const STEPS = [
  'path:validated',
  'path:claimed',
  'path:certified',
  'path:staged',
  'path:observed',
  'path:discarded',
  'path:permit-bound',
  'path:gate-passed',
  'path:promoted',
  'path:request-built',
  'path:permit-consumed',
  'path:dispatched',
  'path:read-back',
  'path:terminal-recorded',
  'adapter:connected',
  'adapter:response-read',
  'adapter:stage-opened',
  'adapter:action-done',
  'adapter:marker-written',
  'adapter:commit-returned',
  'adapter:void-written',
  'adapter:void-committed',
  'recovery:found',
  'recovery:settled',
  'recovery:terminal-recorded',
  'continuation:checked',
  'continuation:acknowledged',
  'continuation:work-done',
] as const;

/** One of {@link STEPS}. */
export type Step = (typeof STEPS)[number];

/**
 * Called when a step is complete. Production uses {@link unobserved}; crash tests kill the process
 * in it.
 */
export type Reached = (step: Step) => void;

/** Does nothing. Used outside of tests. */
export const unobserved: Reached = () => {};
