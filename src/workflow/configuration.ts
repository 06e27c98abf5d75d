import type { WorkflowsOptions } from './workflows.ts';

/** The workflows of a deployment, as the configuration names them. */
export type WorkflowsConfig = Pick<WorkflowsOptions, 'plans' | 'engine' | 'schedules'>;
