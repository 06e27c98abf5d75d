import { invariant } from '../../errors.ts';
import { type MysqlConnection, type TextCells, textsOf } from './connection.ts';
import type { MysqlSettings } from './options.ts';
import { quoteName, quotePlain } from './sql.ts';

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

/** The names of all other counters. Only another server can have others. */
const COUNTERS = `select variable_name from information_schema.global_status
  where variable_name like 'COM\\_%' and variable_name not rlike '^COM_(?:${HARMLESS})$'`;

/** Routines can also be written directly, which counts as a plain INSERT or UPDATE. */
const ROUTINES = `select concat_ws(' ', count(*), sum(conv(left(sha1(concat_ws(char(10),
    db, name, type, param_list, body, body_utf8, definer, security_type, sql_mode)), 15), 16, 10)))
  from mysql.proc`;

/** Reads the current state of the server. */
export class ServerWatch {
  readonly #controlDatabase: string;
  /** The question for each session, because a session belongs to one start of the server. */
  readonly #questions = new WeakMap<MysqlConnection, string>();

  constructor({ controlDatabase }: MysqlSettings) {
    this.#controlDatabase = controlDatabase;
  }

  async read(control: MysqlConnection): Promise<ServerState> {
    const known = this.#questions.get(control);
    const question = known ?? this.#questionAbout(await control.texts(COUNTERS));
    this.#questions.set(control, question);
    const [rows = []] = await control.queryAgain([question]);
    const [row = []] = textsOf(rows);
    const [counted, routines, unmarked, ...values] = row;
    invariant(counted, 'the server counts statements');
    return {
      counted: `${counted} ${routines}`,
      settings: new Map(SERVER_SETTINGS.map((name, index) => [name, values[index] ?? ''])),
      unmarked: unmarked?.split(' ') ?? [],
      text: row.join('\n'),
    };
  }

  /** Naming the counters is cheaper than a pattern, which the server applies to every counter. */
  #questionAbout(counters: readonly TextCells[]): string {
    const names = counters.map(([name]) => quotePlain(String(name))).join(', ');
    const counted = `select group_concat(variable_value) from information_schema.global_status
      where variable_name in (${names})`;
    const stage = `${quoteName(this.#controlDatabase)}.stage`;
    const stages = `select group_concat(occurrence separator ' ') from ${stage}`;
    const parts = [counted, ROUTINES, stages].map((part) => `(${part})`);
    const settings = SERVER_SETTINGS.map((name) => `@@global.${name}`);
    return `select ${[...parts, ...settings].join(', ')}`;
  }
}
