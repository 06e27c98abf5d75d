import { deniedOutlets, fingerprint, openOutlet } from '../../backend/setup.ts';
import type { Outlet, Remedy, Survey } from '../../protocol/boundary.ts';
import type { Definitions } from './definitions.ts';
import type { MysqlSettings } from './options.ts';
import { PROCEDURES } from './provision.ts';
import type { FixableOutlet } from './rights.ts';
import type { SERVER_SETTINGS, ServerState } from './server-state.ts';
import { quoteName } from './sql.ts';

/** Outlets that exist on every server, and what closes them. */
const CLOSED = deniedOutlets({
  'COMMIT, BEGIN, DDL, LOCK TABLES and their disguises':
    'refused in an active XA branch; statements are admitted by the parser of the server',
  'XA END and XA COMMIT': 'statements are admitted by the parser; the name of the branch is random',
  'CALL, DO, HANDLER, LOAD DATA, SET, SET STATEMENT, PREPARE':
    'statements are admitted by the parser of the server',
  'INTO OUTFILE and INTO DUMPFILE': 'the account has no FILE privilege',
  'LOAD DATA LOCAL': 'switched off on the connection',
  'several statements in one': 'switched off on the connection',
  'sequences, other tables, routines and events': 'the account has no rights on them',
  'temporary tables, user variables and user locks':
    'a session logs in again before it serves another candidate',
  'records, stages and markers': 'the account has no rights on them',
});

interface Demand {
  readonly must: RegExp;
  readonly remedy: string;
  /** The statement that fixes the setting, if it does not need a restart. */
  readonly fix?: string;
}

/** Server settings that a commit or the evidence depends on. */
const SERVER = {
  innodb_flush_log_at_trx_commit: {
    must: /^1$/,
    remedy: 'set it to 1: a commit must be flushed',
    fix: 'set global innodb_flush_log_at_trx_commit = 1',
  },
  innodb_doublewrite: { must: /^(?:1|ON)$/, remedy: 'switch it on: a torn page loses commits' },
  innodb_flush_method: {
    must: /^(?!.*(?:no_?f?sync|littlesync))/i,
    remedy: 'choose a method that flushes everything, such as O_DIRECT or fsync',
  },
  innodb_force_recovery: { must: /^0$/, remedy: 'set it to 0' },
  wsrep_on: { must: /^0$/, remedy: 'Galera has no XA; use a server without it' },
  init_connect: {
    must: /^$/,
    remedy: 'empty it: it runs SQL in every new session',
    fix: "set global init_connect = ''",
  },
} as const satisfies Partial<Record<(typeof SERVER_SETTINGS)[number], Demand>>;

/** The facts that a survey is made from. */
export interface SurveyFacts {
  readonly backend: string;
  readonly definitions: Definitions;
  readonly server: ServerState;
  /** The output of SHOW GRANTS for the execution account. */
  readonly grants: readonly string[];
}

/** Surveys everything that a certificate depends on. */
export function surveyDatabase(
  settings: MysqlSettings,
  { backend, definitions, server, grants }: SurveyFacts,
): Survey {
  const { outlets: defined, fingerprint: definition } = definitions;
  const findings: readonly FixableOutlet[] = [
    ...[...defined, ...surveyServer(server)],
    ...[...surveyRights(grants, settings), ...surveyUnmarked(server), ...CLOSED],
  ];
  const outlets = findings.map(({ outlet, disposition, by }) => ({ outlet, disposition, by }));
  return {
    backend,
    executor: `account ${settings.execution}, a session for each candidate, in an XA branch`,
    outlets,
    configuration: fingerprint([definition, outlets]),
    credentials: fingerprint([settings.control, settings.execution, settings.owner]),
    enforcement: fingerprint([CLOSED, settings.isolation]),
    remedies: findings.flatMap(readRemedy),
  };
}

function readRemedy({ outlet, by, fix }: FixableOutlet): readonly Remedy[] {
  if (fix === undefined) return [];
  return [{ outlet, object: outlet, why: by, fix: [fix].flat(), needs: 'an administrator' }];
}

function surveyServer({ settings }: ServerState): readonly FixableOutlet[] {
  const demands: readonly [string, Demand][] = Object.entries(SERVER);
  const open = demands.flatMap(([name, { must, remedy, fix }]) => {
    const value = String(settings.get(name));
    if (must.test(value)) return [];
    return [{ ...openOutlet(`${name} = ${value}`, remedy), fix }];
  });
  const flushes = settings.get('sync_binlog');
  if (settings.get('log_bin') === '0' || flushes === '1') return open;
  const remedy = 'set it to 1: with the binary log on, a commit can be lost with the machine';
  const fix = 'set global sync_binlog = 1';
  return [...open, { ...openOutlet(`sync_binlog = ${flushes}`, remedy), fix }];
}

/** The account must have exactly the rights that provisioning granted. */
function surveyRights(
  grants: readonly string[],
  settings: MysqlSettings,
): readonly FixableOutlet[] {
  const { business, controlDatabase, relations, reads, execution: account } = settings;
  const on = (schema: string, name: string) => `${quoteName(schema)}.${quoteName(name)}`;
  const expected = new Set([
    'USAGE ON *.*',
    `SELECT, INSERT ON ${on(controlDatabase, 'probe')}`,
    ...PROCEDURES.map((name) => `EXECUTE ON PROCEDURE ${on(controlDatabase, name)}`),
    ...relations.map(({ name }) => `SELECT, INSERT, UPDATE, DELETE ON ${on(business, name)}`),
    ...reads.map((name) => `SELECT ON ${on(business, name)}`),
  ]);
  const login = ` TO ${quoteName(account)}@\`%\``;
  const granted = grants.map((line) =>
    line
      .replace(LOGIN_TERMS, '$<option>')
      .replace(/^GRANT /, '')
      .replace(login, ''),
  );
  const extra = granted.filter((right) => !expected.has(right));
  const missing = [...expected].filter((right) => !granted.includes(right));
  return [
    ...extra.map((right) => ({
      ...openOutlet(`right ${right}`, `revoke it from ${account}`),
      fix: revocationOf(right, `${quoteName(account)}@'%'`),
    })),
    ...missing.map((right) => openOutlet(`right ${right}`, 'it is missing; provision again')),
  ];
}

/** The end of a grant line that says how an account logs in and how often. It grants no right. */
const LOGIN_TERMS =
  /(?: IDENTIFIED (?:BY PASSWORD '[^']*'|VIA \w+(?: USING '[^']*')?))?(?: REQUIRE (?:SSL|X509))?(?<option> WITH GRANT OPTION)?(?:(?: WITH)?(?: MAX_\w+ \d+)+)?$/;

/** The statement that revokes a right, from its line in SHOW GRANTS. */
function revocationOf(right: string, account: string): string {
  const isPublic = right.endsWith(' TO PUBLIC');
  const granted = right.replace(/(?: TO PUBLIC)?(?: WITH GRANT OPTION)?$/, '');
  const from = isPublic ? 'public' : account;
  if (!right.endsWith(' WITH GRANT OPTION')) return `revoke ${granted} from ${from}`;
  return `revoke grant option${granted.slice(granted.indexOf(' ON '))} from ${from}`;
}

/** A stage row that another session can see was committed without its marker. */
function surveyUnmarked({ unmarked }: ServerState): readonly Outlet[] {
  return unmarked.map((occurrence) =>
    openOutlet(
      `occurrence ${occurrence}`,
      'it was committed without a marker, past the gate; compare its records with the tables, then delete its row from `stage`',
    ),
  );
}
