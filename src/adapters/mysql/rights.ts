import { openOutlet } from '../../backend/setup.ts';
import type { Outlet } from '../../protocol/boundary.ts';
import type { MysqlConnection } from './connection.ts';
import type { MysqlSettings } from './options.ts';
import { quoteText } from './sql.ts';

/** An outlet, with the statements that close it, if there are any. */
export type FixableOutlet = Outlet & { readonly fix?: string | readonly string[] | undefined };

/** What the trusted account must see everywhere: without these, definitions are hidden from it. */
const SEES_ALL = ['SELECT', 'SHOW VIEW', 'TRIGGER', 'PROCESS'];

/**
 * The trusted account must have its rights on the whole server. If one is missing, its session is
 * closed, because a session does not notice a right on `*.*` that is granted later.
 */
export async function surveyControlRights(control: MysqlConnection): Promise<readonly Outlet[]> {
  const rows = await control.texts(
    `select privilege_type from information_schema.user_privileges
      where grantee = concat('''', replace(current_user(), '@', '''@'''), '''')`,
  );
  const missing = SEES_ALL.filter((right) => !rows.some(([found]) => found === right));
  if (missing.length > 0) control.close();
  return missing.map((right) =>
    openOutlet(`right ${right} ON *.* of the control account`, 'missing; provision again'),
  );
}

/**
 * Rights that apply to the execution account although SHOW GRANTS does not show them: those on a
 * database that have no account apply to all accounts, and those of an account with the same name
 * and another host apply where that host matches.
 */
export async function surveyHiddenRights(
  control: MysqlConnection,
  { execution }: MysqlSettings,
): Promise<readonly FixableOutlet[]> {
  const other = `user = ${quoteText(execution)} and host <> '%'`;
  const rows = await control.texts(
    `select 'db', host, user, db from mysql.db where user = '' or ${other}
      union all
      select 'tables_priv', host, user, concat(db, '.', table_name) from mysql.tables_priv where ${other}
      union all
      select 'procs_priv', host, user, concat(db, '.', routine_name) from mysql.procs_priv where ${other}`,
  );
  return rows.map(([table, host, user, place]) => {
    const row = `user = '${user}' and host = '${host}'`;
    return {
      ...openOutlet(
        `rights of '${user}'@'${host}' on ${place}`,
        `they apply to ${execution} too, although SHOW GRANTS does not show them`,
      ),
      fix: [`delete from mysql.${table} where ${row}`, 'flush privileges'],
    };
  });
}
