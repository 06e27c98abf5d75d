import type { ErrorCode } from '../errors.ts';
import type { Terminal, TerminalOf } from '../protocol/terminal.ts';
import { shortId } from './output.ts';

const SEVERAL =
  'repeat --sql for each statement, or put them into a file and use --file; leave out BEGIN and COMMIT';
const ROOM = 'free some disk space';
const PROVISION = 'prepare the database with `effectmatch provision`';
const LOGIN =
  'if this database was not prepared yet, run `effectmatch provision`, which creates the two logins; otherwise correct the password in the address, or let `effectmatch provision` set both passwords again';
const NO_DATABASE = 'correct the name of the database in the address, or create it';
const NO_CONNECTION = 'the server accepts no more connections: close some, then try again';
const MARIADB_ADMIN =
  'use an administrator with SUPER or SET USER, ideally one with ALL PRIVILEGES on *.* WITH GRANT OPTION; managed services that grant neither right are not supported';
const HOST = 'correct the host in the address, or check the network';

/** What to do about a fault, by its error code or by the system or database code of its cause. */
const ADVICE: Readonly<Record<ErrorCode, string> & Partial<Record<string, string>>> = {
  ERR_EM_ACCESS_REFUSED:
    'send a valid token, for example one of `effectmatch token new`; nothing was done',
  ERR_EM_ACTION_INVALID: 'correct the action; nothing was run',
  ERR_EM_ADAPTER_REFUSED:
    'do what the message says; `effectmatch doctor` shows the boundary, `effectmatch provision` prepares a database server',
  ERR_EM_ADAPTER_UNAVAILABLE:
    'check that the backend can be reached and is not locked, then run the command again',
  ERR_EM_ATTEMPT_OPEN: 'run the command again later: it returns the verdict once there is one',
  ERR_EM_BOUNDARY_OPEN: 'run `effectmatch doctor`, close what it lists, and try again',
  ERR_EM_CANON_UNSUPPORTED: 'pass plain JSON values at the place named above',
  ERR_EM_CHANGESET_INVALID:
    'this should not happen: report it with the versions of Node and SQLite',
  ERR_EM_CLAIM_LOST:
    'compare the ledger with the backend: `effectmatch show <occurrence>`; after a restore, run `effectmatch recover`',
  ERR_EM_CONFIG_INVALID:
    'correct the configuration and run the command again; `effectmatch init --help` shows an example',
  ERR_EM_HAND_OVER_FAILED:
    "give the ledger's login the right to insert the job, and hand it over again",
  ERR_EM_INPUT_INVALID: 'correct the input at the places named above',
  ERR_EM_INVARIANT:
    'this is a defect of EffectMatch: run again with EFFECTMATCH_DEBUG=1 and report what it prints',
  ERR_EM_JOURNAL_TAMPERED:
    'stop using this store, keep a copy as evidence, and restore it from a backup',
  ERR_EM_KEYRING_INVALID:
    'restore the keyring from a backup; a new keyring cannot read what the old one sealed',
  ERR_EM_KEYRING_PERMISSIONS:
    'make the file readable only by its owner (chmod 600) and run the command again',
  ERR_EM_KEY_UNKNOWN:
    'put the missing key generation back into the keyring; old records need the old keys',
  ERR_EM_LICENSE_REFUSED:
    'sign what the request shows now; a stale one is proposed again with `effectmatch renew`',
  ERR_EM_MANIFEST_INVALID: 'correct the manifest and prepare it again',
  ERR_EM_MARKER_CONFLICT: 'compare the journal with the backend: `effectmatch show <occurrence>`',
  ERR_EM_MODEL_UNAVAILABLE: 'check the address, the key and the name of the model, and try again',
  ERR_EM_NODE_VERSION: 'install Node 24.12 or newer and run the command again',
  ERR_EM_NOT_FOUND:
    'check the name or the path; `journal`, `requests` and `workflow show` list what exists',
  ERR_EM_OPERATION_FAILED: 'correct the operation, or the request that it refuses',
  ERR_EM_OUTCOME_IMPOSSIBLE:
    'read the rows again and propose a change that fits them; nothing was announced or changed',
  ERR_EM_PLAN_SUPERSEDED:
    'plan with the announced revision or a later one; nothing was announced or changed',
  ERR_EM_QUERY_REFUSED:
    'send a query that only reads, or one that returns less; nothing was changed',
  ERR_EM_RATE_LIMITED: 'call again in a minute; nothing was done',
  ERR_EM_RECORD_INVALID:
    'check where the record comes from; it is not in the form this version writes',
  ERR_EM_RECORD_TOO_LARGE: 'split the task into smaller ones',
  ERR_EM_REHEARSAL_REFUSED:
    'make the action repeatable at the cells named above, or approve a manifest instead',
  ERR_EM_REQUEST_CLOSED: 'look at it with `effectmatch requests`; nothing was changed',
  ERR_EM_RESOLUTION_REFUSED:
    'look at the occurrence with `effectmatch show <occurrence>`; nothing was recorded',
  ERR_EM_SEAL_INVALID:
    'check that keyring and store belong together: `effectmatch journal --verify`',
  ERR_EM_SHADOW_REFUSED:
    'shadow an adapter that can hold a change; for a remote service compare its read-back after a real run',
  ERR_EM_SIGNATURE_INVALID:
    'do not trust what it says; check the key, then get the file again from its sender',
  ERR_EM_STORE_BUSY: 'wait for the other writer to finish and run the command again',
  ERR_EM_STORE_NEWER:
    'install the version of EffectMatch that last wrote this store, or a newer one',
  ERR_EM_STORE_UNAVAILABLE: 'check that the store exists and can be read and written by this user',
  ERR_EM_TERMINAL_CONFLICT: 'look at both verdicts: `effectmatch show <occurrence>`',
  ERR_EM_WORKFLOW_BLOCKED: 'remove what is named above, then start it again; nothing was changed',
  ERR_EM_WORKFLOW_CHANGED:
    'run it with the plan that it was started with, or revise it: what is done stays done',
  ERR_EM_WORKFLOW_INVALID: 'correct the workflow at the place named above',
  ERR_EM_UPSTREAM_UNAVAILABLE:
    "run the upstream server's command from the configuration by hand, and read what it prints",
  ERR_EM_USAGE: 'run `effectmatch help`',

  // Causes: PostgreSQL, MariaDB, the operating system, and SQLite by primary result code.
  '28000':
    'check the login in the address: it must exist and be allowed to connect; `effectmatch provision` creates the two logins of an adapter, `effectmatch provision --ledger` the one of the ledger',
  '28P01': LOGIN,
  '3F000': PROVISION,
  '3D000': NO_DATABASE,
  '42883': PROVISION,
  '53300': NO_CONNECTION,
  '57P03': 'the server is starting or stopping: wait a moment, then try again',
  EAI_AGAIN: HOST,
  EACCES: 'give this user the right to read and write there, or name another folder',
  ECONNREFUSED: 'start the server, or correct host and port in the address',
  ECONNRESET: 'check that a database server listens at this address',
  EHOSTUNREACH: HOST,
  ENOSPC: ROOM,
  ENOTFOUND: 'correct the host in the address',
  EROFS: 'the disk is read-only: use a folder that you can write to',
  ETIMEDOUT: 'check host, port and firewall: the server does not answer',
  MARIADB_1040: NO_CONNECTION,
  MARIADB_1044:
    'correct the name of the database in the address, or give the login rights on it: `effectmatch provision` does so for the two of EffectMatch',
  MARIADB_1045: LOGIN,
  MARIADB_1049: NO_DATABASE,
  MARIADB_1227: MARIADB_ADMIN,
  MARIADB_1698: LOGIN,
  SQLITE_8: 'the file or its disk is read-only: use a folder that you can write to',
  SQLITE_13: ROOM,
  SQLITE_14: 'check that the folder exists and that this user may write there',
  SQLITE_26: 'name a database file: this file is not a database',
};

/** The advice for an error code or a cause. */
export function adviceFor(code: ErrorCode): string;
export function adviceFor(code: string): string | undefined;
export function adviceFor(code: string): string | undefined {
  return Object.hasOwn(ADVICE, code) ? ADVICE[code] : undefined;
}

const AGAIN = 'plan it again and have it approved again';
const NOT_USED = 'nothing was changed, and this attempt did not use the license';
const IN_THE_WAY =
  'find the session that is in the way, then plan and approve again (`restageMs` says how long to try)';
const BEYOND_LIMIT = 'have it signed by an approver with higher limits, or plan less';
const NOT_WHAT_WAS_SIGNED =
  'have exactly the file that `effectmatch plan --out` wrote signed, and run that license';
const NEW_LICENSE = 'sign a new license to try again';

/** What to do after a rejection. For other reasons, the detail of the verdict is enough. */
const AFTER_REJECTION: Readonly<Partial<Record<string, string>>> = {
  'action-failed': 'correct the action, then plan and approve it again',
  'action-unbound': AGAIN,
  'adapter-changed': AGAIN,
  'already-void': AGAIN,
  'approved-mismatch': NOT_WHAT_WAS_SIGNED,
  'boundary-changed':
    'find out who made the change named above, run `effectmatch doctor`, then plan and approve again',
  busy: IN_THE_WAY,
  constraint: 'correct the action or the data that it conflicts with, then plan and approve again',
  deadlock: IN_THE_WAY,
  diverged: 'find out what made the differences above, or plan again to see and approve them',
  expired:
    'have the same proposal signed again with `effectmatch approve`, only once: each signature allows one more execution',
  fault: 'see what failed above, then plan and approve again',
  'frame-changed': AGAIN,
  interrupted: AGAIN,
  'issuer-not-designated':
    'add the adapter to `may` of this issuer, then plan and approve again, or ask another approver',
  'issuer-unknown':
    'add the approver to `issuers` in the configuration, then plan and approve again',
  'limit-amount': BEYOND_LIMIT,
  'limit-effects': BEYOND_LIMIT,
  'limit-hours': 'run it within the hours named above',
  'limit-lifetime': 'have the same proposal signed again with a shorter `--expires`',
  'limit-operation': BEYOND_LIMIT,
  'limit-relations': BEYOND_LIMIT,
  'limit-rows': BEYOND_LIMIT,
  'nonce-reused': NOT_WHAT_WAS_SIGNED,
  'not-admitted':
    '`effectmatch doctor` shows what changed in the database since the action was submitted',
  'not-yet-valid': 'run it again once the license is valid',
  'out-of-turn': 'run the license with a lower `--use` first',
  'outlet-denied':
    'keep what is named above out of the action, or register the table in `relations`',
  'outlet-unclassified':
    'run `effectmatch doctor`, close what it names, then plan and approve again',
  'plan-superseded': AGAIN,
  'policy-changed': AGAIN,
  'precondition-broken': AGAIN,
  'registration-mismatch': AGAIN,
  'rendering-mismatch': NOT_WHAT_WAS_SIGNED,
  'second-invalid':
    'get the license again from the second approver, and compare their public key with the one in `issuers`',
  'second-missing':
    'have a second person sign it with `effectmatch approve LICENSE --key THEIRS.key.json --out …`',
  'second-not-designated':
    'have it signed by an issuer that `second` names and that may approve for this adapter',
  serialization: IN_THE_WAY,
  'setting-changed': 'find the function or trigger that changes the setting named above',
  'setting-refused': 'plan again with other settings, or without, and have it approved again',
  'signature-invalid':
    'the license was altered after it was signed, or signed with another key: get the file again from the approver; if it is the same, compare the approver’s public key with the one in `issuers`, correct that, then plan and approve again',
  'source-not-allowed': "add 'rehearsed' to `sources` of this issuer, then plan and approve again",
  'stale-state': AGAIN,
  'task-budget': 'open a task with a larger maxCalls, under a new license',
  'task-discarded': NEW_LICENSE,
  'task-interrupted': NEW_LICENSE,
  'task-timeout': 'finish sooner, or open a task with a longer deadlineMs, under a new license',
  'task-unsupported': 'run one action with execute',
  'too-many-effects': 'plan fewer changes at a time',
};

/** The same for rejections after which more must be said about the data or the license. */
const AFTER_SPECIAL_REJECTION: typeof AFTER_REJECTION = {
  'action-invalid': `${NOT_USED}; correct the action and run it again`,
  'already-committed': 'it committed earlier; do not repeat it',
  'decided-elsewhere': 'another machine executed it; do not repeat it, and look at its journal',
  'other-action': `${NOT_USED}; run exactly the text that was planned: spaces, capitals and comments count; the proposal file has it under \`note\``,
  'service-unproven':
    'nothing was sent; run `effectmatch doctor`, which tries the service and says what it found',
  spent:
    'nothing was changed by this attempt; `effectmatch journal` has the verdict of the execution that the license was used for',
};

/**
 * What to do after a rejection. If the action may have run, it says only that no data was changed:
 * sequences do not roll back, and the verdict lists those that moved.
 */
function adviseRejection({ reason, claim }: TerminalOf<'rejected'>, look: string): string {
  const special = AFTER_SPECIAL_REJECTION[reason];
  if (special !== undefined) return special;
  const known = AFTER_REJECTION[reason];
  if (claim === undefined)
    return `nothing was changed; ${known ?? `correct what is named above; ${look}`}`;
  const again = `correct what is named above, then plan and approve again; ${look}`;
  return `no data was changed, and the license is spent; ${known ?? again}`;
}

/** What to do after a verdict; `earlier` if it was recorded before this command ran. */
export function adviseTerminal(terminal: Terminal, earlier = false): string {
  const id = shortId(terminal.occurrence);
  const look = `effectmatch show ${id}`;
  switch (terminal.kind) {
    case 'committed':
      if (earlier) return `it committed; do not repeat it; ${look}`;
      return `${look}\n      a receipt: effectmatch export --occurrence ${id} --out receipt.jsonl`;
    case 'rejected':
      return adviseRejection(terminal, look);
    case 'diverged':
      return `do not run it again; ${look}; undoing or completing it needs a new plan and a new license`;
    case 'indeterminate':
      return `do not run it again; \`effectmatch recover\` asks the backend, \`effectmatch resolve\` records what a person found out; ${look}`;
  }
}

/** What to do about a fault whose message says more than its code. The first match counts. */
const BY_MESSAGE: { readonly [code in ErrorCode]?: readonly (readonly [RegExp, string])[] } = {
  ERR_EM_ACTION_INVALID: [[/submit them as a list of statements/, `${SEVERAL}; nothing was run`]],
  ERR_EM_ADAPTER_REFUSED: [[/neither SUPER nor SET USER/, MARIADB_ADMIN]],
  ERR_EM_ADAPTER_UNAVAILABLE: [
    [
      /no adapter named/,
      'it was planned in a different folder or with a different configuration: change to that folder, or name its configuration with --config',
    ],
  ],
  ERR_EM_MANIFEST_INVALID: [
    [
      /proposal contradicts itself/,
      'ask the agent for the proposal again: this file was altered, or written by another version',
    ],
    [
      /has no session settings/,
      'leave out --set: only PostgreSQL has session settings. Have the statement write the acting user into a column instead',
    ],
    [
      /belongs to (?:the server|an extension)/,
      'give --set a name of your application, such as app.actor',
    ],
  ],
  ERR_EM_REHEARSAL_REFUSED: [
    [
      /boundary cannot be certified/,
      'run `effectmatch doctor`: it names what is open and the statements that close it',
    ],
    [
      /permission denied for view/,
      'add the view to `views` and the tables it writes to `relations`, then run `effectmatch provision`, or leave it out of the action',
    ],
    [
      /not registered|permission denied|\b42501\b/,
      'add the table to `relations` in the configuration (on PostgreSQL run `effectmatch provision` then; on SQLite it needs a primary key), or leave it out of the action; if your statement does not name the table, a trigger or a function writes it',
    ],
    [
      /unrecognized configuration parameter|\b42704\b/,
      'a trigger or a function reads a session setting: plan again with it, as in `--set app.actor=alice`',
    ],
    [/submit several statements as a list|uses (?:BEGIN|COMMIT)\b/, SEVERAL],
    [/outlet-denied/, 'leave what the message names out of the action: no approval allows it'],
    [/action failed/, 'correct the statement and plan again'],
    [
      /could not be established/,
      'write only to registered tables, as the message says; `effectmatch doctor --all` lists the boundary',
    ],
  ],
};

/** The advice for a message, if it says more than its code. */
export function adviceForMessage(code: ErrorCode, message: string): string | undefined {
  return BY_MESSAGE[code]?.find(([pattern]) => pattern.test(message))?.[1];
}
