import { openOutlet } from '../../backend/setup.ts';
import type { Outlet } from '../../protocol/boundary.ts';
import type { MysqlConnection } from './connection.ts';
import type { MysqlSettings } from './options.ts';
import { PROCEDURES, SQL_MODE } from './provision.ts';
import { quoteText, SQL } from './sql.ts';

/**
 * The tables that provisioning creates, as the catalogue describes them. With another engine a
 * marker would outlive a rollback; without its key there could be two.
 */
const TABLES: Readonly<Record<string, string>> = {
  deployment: `InnoDB: version int(11) NO PRI, backend varchar(64) utf8mb4_bin NO,
    inner_pad binary(64) NO, outer_pad binary(64) NO`,
  marker: `InnoDB: occurrence varchar(255) ascii_bin NO PRI,
    disposition enum('committed','void') utf8mb4_bin NO, text longtext utf8mb4_bin NO,
    seal_key varchar(255) utf8mb4_bin NO, seal_mac varchar(255) utf8mb4_bin NO`,
  stage: `InnoDB: connection bigint(20) unsigned NO PRI, token bigint(20) unsigned NO,
    occurrence varchar(255) ascii_bin NO`,
  record: `InnoDB: id bigint(20) unsigned NO PRI, stage bigint(20) unsigned NO MUL,
    relation varchar(64) utf8mb4_bin NO,
    op enum('insert','update','delete','chosen') utf8mb4_bin NO, before_image longblob YES,
    after_image longblob YES`,
  probe: 'InnoDB: token varchar(255) utf8mb4_bin NO PRI',
};

/** The tables of the control database must be as provisioning creates them. */
export async function surveyControlTables(
  control: MysqlConnection,
  { controlDatabase }: MysqlSettings,
): Promise<readonly Outlet[]> {
  const rows = await control.texts(
    `select t.table_name, concat(t.engine, ': ', group_concat(concat_ws(' ', c.column_name,
        c.column_type, c.collation_name, c.is_nullable, nullif(c.column_key, ''))
        order by c.ordinal_position separator ', '))
      from information_schema.tables t join information_schema.columns c using (table_schema, table_name)
      where t.table_schema = ${quoteText(controlDatabase)} group by t.table_name`,
  );
  const found = new Map(rows.map(([name, text]) => [String(name), text]));
  return Object.entries(TABLES)
    .filter(([name, text]) => found.get(name) !== text.replace(/\s+/g, ' '))
    .map(([name]) =>
      openOutlet(`table ${name} of records`, 'missing or changed; remove, then provision again'),
    );
}

/** The procedures must match what this release installs. */
export async function surveyProcedures(
  control: MysqlConnection,
  { controlDatabase: database, owner }: MysqlSettings,
): Promise<readonly Outlet[]> {
  const rows = await control.texts(
    `select name, body_utf8, body, definer, security_type, sql_mode from mysql.proc where db = ${quoteText(database)}`,
  );
  const changed = PROCEDURES.filter((name) => {
    const text = SQL.get(`create_${name}`, { database, owner });
    const body = text.slice(text.indexOf('\nbegin') + 1);
    const found = rows.find(([found]) => found === name);
    const expected = [body, body, `${owner}@localhost`, 'DEFINER', SQL_MODE];
    return JSON.stringify(found?.slice(1)) !== JSON.stringify(expected);
  });
  return changed.map((name) =>
    openOutlet(`procedure ${name}`, 'missing or changed; provision again'),
  );
}
