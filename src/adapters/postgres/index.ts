/**
 * PostgreSQL: agent SQL in a held transaction, observed by recorders and the server's own counters.
 * @module
 */
import '../../node-version.ts';

import type { AdapterFactory } from '../../contract/adapter.ts';
import type { CheckedPostgresAction } from './action.ts';
import { openAdapter } from './adapter.ts';
import type { PostgresOptions } from './options.ts';
import { planProvisioning } from './provision/apply.ts';

export type { ConnectionOptions } from '../../postgres/options.ts';
export type { ProvisionStep } from '../../postgres/provisioning.ts';
export type {
  CheckedPostgresAction,
  PostgresAction,
  PostgresStatement,
  PostgresValue,
} from './action.ts';
export type { Review } from './certify/facts.ts';
export type {
  BoundaryTier,
  PostgresOptions,
  PostgresRelationOption,
  SessionOptions,
} from './options.ts';
export { planProvisioning } from './provision/apply.ts';

/**
 * Protects writes to a PostgreSQL database. Agent SQL runs as a restricted login in a held
 * transaction. Recorders and the server's counters report what it wrote, and exactly that
 * transaction commits together with its marker.
 */
export function postgres(options: PostgresOptions): AdapterFactory<CheckedPostgresAction> {
  return {
    open: async (context) => await openAdapter(options, context),
    provisioning: (admin, what) => planProvisioning(admin, options, what),
  };
}
