/**
 * Adapter for MariaDB, over the MySQL protocol. Agent SQL runs in a held XA branch, and recorders
 * and InnoDB's count of undo entries report what it wrote. Tested on MariaDB 10.11.
 * @module
 */
import '../../node-version.ts';

import type { AdapterFactory } from '../../contract/adapter.ts';
import type { CheckedMysqlAction } from './action.ts';
import { openAdapter } from './adapter.ts';
import type { MysqlOptions } from './options.ts';
import { planProvisioning } from './provision.ts';

export type { CheckedMysqlAction, MysqlAction, MysqlStatement, MysqlValue } from './action.ts';
export type { MysqlConnectionOptions, MysqlOptions, MysqlRelationOption } from './options.ts';
export { planProvisioning } from './provision.ts';

/**
 * Protects writes to a MariaDB database. Agent SQL runs as a restricted account in a held XA
 * branch, recorders and InnoDB's undo entries report what it wrote, and exactly that branch commits
 * together with its marker.
 */
export function mysql(options: MysqlOptions): AdapterFactory<CheckedMysqlAction> {
  return {
    open: async (context) => await openAdapter(options, context),
    provisioning: (admin, what) => planProvisioning(admin, options, what),
  };
}
