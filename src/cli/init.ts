import { accessSync, constants, existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, relative, resolve } from 'node:path';
import { type ApproverKey, loadApproverKey, saveApproverKey } from '../crypto/approver.ts';
import { createKeyring, loadKeyring } from '../crypto/keyring.ts';
import { createSecretFile } from '../crypto/secret-file.ts';
import { isName } from '../protocol/record.ts';
import type { Arguments, Verb } from './command.ts';
import { CONFIG_EXAMPLE } from './config.ts';
import { configNameIn, readConfig } from './deployment.ts';
import { GuidedError } from './fault.ts';
import { writePrivateFile } from './files.ts';
import { type ConfigPlan, configText, describeTable, literal } from './init/config-text.ts';
import { inspect, readAddress } from './init/inspect.ts';
import { loginsOf, readServer } from './init/logins.ts';
import {
  chooseRelations,
  type DatabaseSchema,
  strayTriggers,
  usableTables,
} from './init/schema.ts';
import { keyFileOf, newApprover } from './keygen.ts';
import { countOf, type Output, printableLine } from './output.ts';
import { ask, canAsk, confirm } from './prompt.ts';
import { ADMIN_VARIABLE } from './provision.ts';

const CONFIG = 'effectmatch.config.ts';
const KEYRING = 'effectmatch.keys.json';
const BOUNDARIES = ['server', 'managed'] as const;
const PROFILES = ['net-state', 'row-event', 'relation-write'] as const;

/** Writes a configuration for a database. Asks for the choices if there is a terminal. */
export const verb: Verb = {
  summary: 'look at a database and write a configuration for it',
  about: `Reads the schema of an SQLite file, a PostgreSQL or a MariaDB database and writes
${CONFIG}: the tables that operations may write, the columns that are not compared because a trigger
sets them to the current time, and where the ledger is. It also creates a keyring, and a key for an
approver if you name one. The database is only read. On a terminal it asks questions; with --yes or
in a script it uses the defaults. It replaces a configuration only with --force or after you agree,
and never replaces keys. If there is a configuration but no keyring, as after a checkout, it only
creates the keyring.`,
  optional: ['database'],
  flags: {
    approver: {
      value: 'NAME',
      about: 'create a key for this approver (NAME.key.json), or use the existing one',
    },
    boundary: {
      value: 'WORD',
      about: `PostgreSQL: ${BOUNDARIES.join(' or ')} (default: managed if the login is not a superuser)`,
    },
    force: { about: `replace ${CONFIG} if there is one` },
    name: { value: 'NAME', about: 'what to call the adapter (default: the name of the database)' },
    out: {
      value: 'FILE',
      about: `where to write the configuration (default: ${CONFIG}, or .mts if the package does not use ES modules)`,
    },
    profile: { value: 'WORD', about: `what is compared: ${PROFILES.join(', ')}` },
    relations: {
      value: 'LIST',
      about: 'tables to register, separated by commas (default: all that can be)',
    },
    roles: {
      value: 'SUFFIX',
      about: 'servers: a suffix for the names of the three roles, as in effectmatch_exec_SUFFIX',
    },
    yes: { about: 'do not ask questions' },
  },
  examples: [
    'books.db --approver alice',
    'postgres://postgres@localhost/books --approver alice',
    'mysql://root@localhost/books --approver alice',
    'books.db --relations invoice,notification --yes',
  ],
  blocks: [
    {
      title: 'Configuration, with paths relative to the folder of the file:',
      text: CONFIG_EXAMPLE,
    },
  ],
  async run(args, output) {
    const file = resolve(args.value('out') ?? configNameIn(process.cwd()));
    const folder = dirname(file);
    const asks = canAsk(output) && !args.has('yes');
    if (existsSync(file) && !args.has('force') && (await completeKeys(file, output))) return;
    await assertReplaceable(file, args, asks);
    assertWritable(folder);
    const source = readAddress(args);
    const server = source.kind === 'server' ? readServer(args, source.address) : undefined;
    const schema = await inspect(source);
    if (usableTables(schema).length === 0) throw nothingUsable(schema);
    if (asks) listTables(schema, output);
    const relations = chooseRelations(await askRelations(args, asks), schema);
    const approver = await chooseApprover(args, asks, folder);
    const keyring = resolve(folder, KEYRING);
    // Check everything that can fail before writing the first file.
    if (existsSync(keyring)) loadKeyring(keyring);
    const [adapter, profile] = [chooseName(args, schema), chooseProfile(args, schema)];
    const access =
      server === undefined
        ? { lines: [`file: ${literal(relative(folder, source.address))},`] }
        : loginsOf(server.address, server.suffix ?? schema.roleSuffix, folder);
    const boundary = chooseBoundary(args, schema);
    const written: string[] = [];
    const write = (path: string, save: () => void) => {
      save();
      written.push(path);
    };
    const { secrets } = access;
    if (secrets) write(secrets.file, () => createSecretFile(secrets.file, secrets.text));
    if (!existsSync(keyring)) write(keyring, () => createKeyring(keyring));
    if (approver?.isNew) write(approver.file, () => saveApproverKey(approver.file, approver.key));
    const plan: ConfigPlan = {
      adapter,
      profile,
      relations,
      boundary,
      access: access.lines,
      store: chooseStore(source.address, folder),
      keyring: KEYRING,
      ...(approver && { approver: approver.key }),
    };
    const lines = configText(plan, schema).trimEnd().split('\n');
    await writePrivateFile(file, lines, { force: existsSync(file) });
    report({ schema, plan, file, written, keyFile: approver?.file }, output);
  },
};

/**
 * Creates the missing keyring of an existing configuration, for example after a checkout: keys are
 * not in version control. Returns false if nothing is missing.
 */
async function completeKeys(file: string, output: Output): Promise<boolean> {
  const { keyring, store } = (await readConfig(file).catch(() => undefined)) ?? {};
  if (typeof keyring !== 'string') return false;
  const path = resolve(dirname(file), keyring);
  if (existsSync(path)) return false;
  if (typeof store === 'string' && existsSync(resolve(dirname(file), store))) {
    const message = `${path} is missing, and what ${store} holds was sealed with it`;
    const next = 'restore it from a backup; nothing was written';
    throw new GuidedError('ERR_EM_KEYRING_INVALID', message, next);
  }
  createKeyring(path);
  const shown = (name: string) => relative(process.cwd(), name) || name;
  output.document({ written: [path], kept: file });
  output.line(
    `${output.paint('good', 'written')}  ${shown(path)}: secret, keep it out of version control`,
  );
  output.line(`${output.paint('dim', 'kept')}     ${shown(file)}; --force replaces it`);
  return true;
}

async function assertReplaceable(file: string, args: Arguments, asks: boolean): Promise<void> {
  if (!existsSync(file) || args.has('force')) return;
  if (asks && (await confirm(`${file} exists. Replace it?`))) return;
  const next = 'replace it with --force, or write another file with --out FILE';
  throw new GuidedError('ERR_EM_USAGE', `${file} exists, and nothing was written`, next);
}

function assertWritable(folder: string): void {
  try {
    accessSync(folder, constants.W_OK);
  } catch (cause) {
    const message = `${folder} cannot be written, and nothing was written`;
    const next =
      'use a folder that exists, on a disk that can be written, or name one with --out FILE';
    throw new GuidedError('ERR_EM_USAGE', message, next, cause);
  }
}

function nothingUsable({ tables: [first] }: DatabaseSchema): GuidedError {
  const [message, next] =
    first === undefined
      ? ['the database has no tables', 'create the tables first']
      : [
          `no table can be registered: ${first.name}: ${first.unusable}`,
          'change the table as it says',
        ];
  return new GuidedError(
    'ERR_EM_ADAPTER_REFUSED',
    `${message}; nothing was written`,
    `${next}, then run this again`,
  );
}

function listTables({ tables }: DatabaseSchema, { line, paint }: Output): void {
  for (const table of tables) {
    const { name, unusable } = table;
    const what =
      unusable === undefined ? describeTable(table) : `cannot be registered: ${unusable}`;
    const shown = paint(unusable === undefined ? 'strong' : 'dim', printableLine(name));
    line(`  ${shown}  ${printableLine(what)}`);
  }
}

async function askRelations(args: Arguments, asks: boolean): Promise<string> {
  const question = 'Which tables may operations write? Names separated by commas, or';
  return args.value('relations') ?? (asks ? answered(await ask(question, 'all')) : 'all');
}

/** An approver, and a key that is new or was read from its file. */
interface ChosenApprover {
  readonly key: ApproverKey;
  readonly file: string;
  readonly isNew: boolean;
}

async function chooseApprover(
  args: Arguments,
  asks: boolean,
  folder: string,
): Promise<ChosenApprover | undefined> {
  const question = 'Who approves? Enter a name to make a key here, or - to do it later.';
  const named =
    args.value('approver') ??
    (asks ? answered(await ask(question, userInfo().username)) : undefined);
  if (named === undefined || named === '-') return undefined;
  const file = resolve(folder, keyFileOf(named));
  if (!existsSync(file)) return { key: newApprover(named, args), file, isNew: true };
  const key = loadApproverKey(file);
  if (key.issuer !== named)
    throw args.wrong(`${file} is the key of "${key.issuer}", not of "${named}"`);
  return { key, file, isNew: false };
}

/** Throws on Ctrl-C, which does not accept the default. */
function answered(answer: string | undefined): string {
  if (answer !== undefined) return answer;
  const message = 'the question was not answered, and nothing was written';
  const next = 'run it again and answer, or accept the defaults with --yes';
  throw new GuidedError('ERR_EM_USAGE', message, next);
}

function chooseName(args: Arguments, { suggestedName }: DatabaseSchema): string {
  const plain = suggestedName.replace(/[^\w.-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  const name = args.value('name') ?? (plain === '' ? 'database' : plain);
  if (isName(name)) return name;
  const rule = 'letters, digits and . _ : / @ -, starting with a letter or digit';
  throw args.wrong(`the name of an adapter has ${rule}`);
}

/** Keeps the ledger and the business data in different files. */
function chooseStore(address: string, folder: string): string {
  const isTaken = address === resolve(folder, 'effectmatch.db');
  return isTaken ? 'effectmatch-ledger.db' : 'effectmatch.db';
}

/** Without a superuser, rights alone cannot close every outlet, so the statement gate has to. */
function chooseBoundary(args: Arguments, { server }: DatabaseSchema): ConfigPlan['boundary'] {
  const stated = args.choice('boundary', BOUNDARIES);
  if (server === undefined) {
    if (stated !== undefined) throw args.wrong('--boundary is for PostgreSQL');
    return undefined;
  }
  return stated ?? (server.isSuperuser ? 'server' : 'managed');
}

function chooseProfile(args: Arguments, { kind }: DatabaseSchema): string {
  const profile = args.choice('profile', PROFILES) ?? 'net-state';
  if (kind === 'sqlite' && profile !== 'net-state')
    throw args.wrong(`SQLite reports only net changes, so --profile ${profile} is not possible`);
  return profile;
}

/** What `init` did. */
interface Report {
  readonly schema: DatabaseSchema;
  readonly plan: ConfigPlan;
  readonly file: string;
  /** The other files it wrote. All of them are secret. */
  readonly written: readonly string[];
  readonly keyFile: string | undefined;
}

function report({ schema, plan, file, written, keyFile }: Report, output: Output): void {
  const { line, paint } = output;
  const { adapter, relations } = plan;
  const leftOut = schema.tables.filter(({ name }) => !relations.includes(name));
  const strays = strayTriggers(schema, relations);
  const steps = nextSteps(schema, plan, keyFile);
  output.document({
    adapter,
    written: [file, ...written],
    relations,
    leftOut,
    strays,
    next: steps.map(([step]) => step),
  });
  const wrote = (path: string, what: string) =>
    line(`${paint('good', 'written')}  ${relative(process.cwd(), path) || path}: ${what}`);
  wrote(file, `${adapter}, ${countOf(relations.length, 'table')} registered`);
  for (const path of written) wrote(path, 'secret, keep it out of version control');
  for (const { name, unusable = 'not chosen' } of leftOut)
    line(`${paint('caution', 'left out')} ${printableLine(`${name}: ${unusable}`)}`);
  for (const { trigger, on, writes } of strays) {
    const what = `trigger ${trigger} on ${on} writes ${writes}, which is not registered`;
    line(
      `${paint('caution', 'note')}     ${printableLine(what)}: statements that fire it are refused`,
    );
  }
  line();
  line(paint('strong', 'Next:'));
  for (const [command, why] of steps) line(`  ${command}   # ${why}`);
}

function nextSteps(
  { kind, server }: DatabaseSchema,
  { adapter, boundary }: ConfigPlan,
  keyFile: string | undefined,
) {
  const key = keyFile === undefined ? 'NAME.key.json' : relative(process.cwd(), keyFile);
  const steps: [string, string][] = [
    ['effectmatch doctor', 'is every outlet closed?'],
    [
      `effectmatch plan --adapter ${adapter} --sql "…" --out proposal.json`,
      'what would it do? It is rolled back',
    ],
    [`effectmatch approve proposal.json --key ${key} --out license.json`, 'read it, sign it'],
    ['effectmatch run license.json --sql "…"', 'commits only what was approved'],
    [
      'effectmatch serve',
      'the inbox for agents, in your browser; uncomment `agents` in the configuration first',
    ],
  ];
  if (kind !== 'sqlite') {
    const why = `roles, recorders, marker table; needs ${ADMIN_VARIABLE}`;
    steps.unshift(['effectmatch provision', why]);
  }
  if (boundary === 'managed') {
    const why = "the managed boundary reads statements with this server's own grammar";
    steps.unshift([`npm install libpg-query@${server?.major}`, why]);
  }
  if (keyFile === undefined) {
    const why = 'a key for an approver; put the line it prints into the configuration';
    steps.unshift(['effectmatch keygen NAME', why]);
  }
  return steps;
}
