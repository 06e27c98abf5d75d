import type { WorkflowsOptions } from './workflows.ts';

/** The workflows of a deployment, as written in its configuration. */
export type WorkflowsConfig = Pick<WorkflowsOptions, 'plans' | 'engine' | 'schedules'>;
