import { invariant } from '../../errors.ts';
import type { MysqlConnection } from './connection.ts';
import type { MysqlSettings } from './options.ts';
import { quoteName } from './sql.ts';

/** Server settings that a survey checks. */
export const SERVER_SETTINGS = [
  ...['innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'innodb_flush_method'],
  ...['innodb_force_recovery', 'wsrep_on', 'init_connect', 'log_bin', 'sync_binlog'],
] as const;

/** What every survey reads, in one round trip. */
export interface ServerState {
  /** Unchanged until the server counts a statement that could have changed a definition. */
  readonly counted: string;
  readonly settings: ReadonlyMap<string, string>;
  /** Occurrences whose stage row is visible to other sessions: committed without a marker. */
  readonly unmarked: readonly string[];
  /** The whole state as one text. */
  readonly text: string;
}

/** Statements that change no definition, by the names of the server's counters. */
const HARMLESS = [
  ...['select', 'insert', 'insert_select', 'update', 'update_multi', 'delete', 'delete_multi'],
  ...['replace', 'replace_select', 'load', 'do', 'call_procedure', 'begin', 'commit', 'rollback'],
  ...['savepoint', 'release_savepoint', 'rollback_to_savepoint', 'lock_tables', 'unlock_tables'],
  ...['set_option', 'change_db', 'kill', 'checksum', 'admin_commands', 'empty_query', 'signal'],
  ...['create_temporary_table', 'drop_temporary_table', 'prepare_sql', 'execute_sql'],
  ...['execute_immediate', 'dealloc_sql', 'compound_sql', 'get_diagnostics', 'resignal'],
  ...['show_.*', 'stmt_.*', 'xa_.*', 'ha_.*'],
].join('|');

const COUNTED = `select group_concat(variable_value)
  from information_schema.global_status
  where variable_name like 'COM\\_%' and variable_name not rlike '^COM_(?:${HARMLESS})$'`;

/** Routines can also be written directly, which counts as a plain INSERT or UPDATE. */
const ROUTINES = `select concat_ws(' ', count(*), sum(conv(left(sha1(concat_ws(char(10),
    db, name, type, param_list, body, body_utf8, definer, security_type, sql_mode)), 15), 16, 10)))
  from mysql.proc`;

/** Reads the current state of the server. */
export class ServerWatch {
  readonly #question: string;

  constructor({ controlDatabase }: MysqlSettings) {
    const stage = `${quoteName(controlDatabase)}.stage`;
    const stages = `select group_concat(occurrence separator ' ') from ${stage}`;
    const parts = [COUNTED, ROUTINES, stages].map((part) => `(${part})`);
    const settings = SERVER_SETTINGS.map((name) => `@@global.${name}`);
    this.#question = `select ${[...parts, ...settings].join(', ')}`;
  }

  async read(control: MysqlConnection): Promise<ServerState> {
    const [row = []] = await control.texts(this.#question);
    const [counted, routines, unmarked, ...values] = row;
    invariant(counted, 'the server counts statements');
    return {
      counted: `${counted} ${routines}`,
      settings: new Map(SERVER_SETTINGS.map((name, index) => [name, values[index] ?? ''])),
      unmarked: unmarked?.split(' ') ?? [],
      text: row.join('\n'),
    };
  }
}
