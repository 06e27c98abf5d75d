import { accessSync, constants, existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, relative, resolve } from 'node:path';
import { loadApproverKey, saveApproverKey } from '../crypto/approver.ts';
import { createKeyring, loadKeyring } from '../crypto/keyring.ts';
import { isName } from '../protocol/record.ts';
import type { Arguments } from './arguments.ts';
import { ask, canAsk, confirm } from './ask.ts';
import { configNameIn } from './config-name.ts';
import { EXIT } from './exit-code.ts';
import { GuidedError, usageError } from './guided-error.ts';
import { chooseRelations } from './init/choose.ts';
import { type ConfigPlan, configText, describeTable, literal } from './init/config-text.ts';
import { type FoundDatabase, strayTriggers, usableTables } from './init/found.ts';
import { inspectSqlite } from './init/inspect-sqlite.ts';
import { reachPostgres } from './init/reach-postgres.ts';
import { keyFileOf, newApprover } from './keygen.ts';
import { type Output, printableLine } from './output.ts';
import { writePrivateFile } from './private-file.ts';
import { showProgress } from './progress.ts';
import type { Verb } from './verb.ts';

const ADMIN_VARIABLE = 'EFFECTMATCH_ADMIN_URL';
const CONFIG = 'effectmatch.config.ts';
const KEYRING = 'effectmatch.keys.json';
const PROFILES = ['net-state', 'row-event', 'relation-write'];

/** From a database to a configuration: looks, asks where somebody can answer, and writes. */
export const init: Verb = {
  name: 'init',
  summary: 'look at a database and write a configuration for it',
  about: `Reads the tables, keys, triggers, functions and foreign keys of an SQLite file or a PostgreSQL database and
writes ${CONFIG}: the tables that operations may write, columns that a trigger sets to the time as volatile, what
is compared, where the ledger is. It makes a keyring, and a key for an approver if one is named. The database is only
read. On a terminal it asks; with --yes or in a script it takes what it finds. Nothing is overwritten unless --force
or an answer says so, and keys never are.`,
  positionals: [],
  optional: ['database'],
  flags: {
    approver: {
      value: 'NAME',
      about: 'make a key for this approver (NAME.key.json), or use it if it is there',
    },
    force: { about: `replace ${CONFIG} if there is one` },
    name: { value: 'NAME', about: 'what to call the adapter (default: the name of the database)' },
    out: {
      value: 'FILE',
      about: `where to write the configuration (default: ${CONFIG}, or .mts in a package not of ES modules)`,
    },
    profile: { value: 'WORD', about: `what is compared: ${PROFILES.join(', ')}` },
    relations: {
      value: 'LIST',
      about: 'tables to register, separated by commas (default: all that can be)',
    },
    roles: {
      value: 'SUFFIX',
      about: 'PostgreSQL: ends the names of the three roles that provision makes',
    },
    yes: { about: 'ask nothing' },
  },
  examples: [
    'effectmatch init books.db --approver alice',
    'effectmatch init postgres://postgres@localhost/books --approver alice',
    'effectmatch init books.db --relations invoice,notification --yes',
  ],
  async run(args, output) {
    const file = resolve(args.value('out') ?? configNameIn(process.cwd()));
    const asks = canAsk(output) && !args.has('yes');
    if (
      existsSync(file) &&
      !args.has('force') &&
      !(asks && (await confirm(`${file} exists. Replace it?`)))
    ) {
      throw new GuidedError(
        'ERR_EM_USAGE',
        `${file} exists, and nothing was written`,
        'replace it with --force, or write another file with --out FILE',
      );
    }
    assertWritable(dirname(file));
    const found = await inspect(args, file);
    if (usableTables(found).length === 0) throw nothingUsable(found);
    if (asks) listTables(found, output);
    const relations = chooseRelations(await askRelations(args, asks), found);
    const approver = await chooseApprover(args, asks);
    const keyFile =
      approver === undefined ? undefined : resolve(dirname(file), keyFileOf(approver));
    const keyring = resolve(dirname(file), KEYRING);
    // Everything that can be refused is refused before the first file is written.
    if (existsSync(keyring)) loadKeyring(keyring);
    const known =
      keyFile !== undefined && existsSync(keyFile) ? loadApproverKey(keyFile) : undefined;
    if (known !== undefined && known.issuer !== approver) {
      throw usageError(`${keyFile} is the key of "${known.issuer}", not of "${approver}"`, 'init');
    }
    const key = approver === undefined ? undefined : (known ?? newApprover(approver, 'init'));
    const [adapter, profile] = [chooseName(args, found), chooseProfile(args, found)];
    const { reach, written } = await found.reach();
    const made = [...written];
    if (!existsSync(keyring)) {
      createKeyring(keyring);
      made.push(keyring);
    }
    if (key !== undefined && keyFile !== undefined && known === undefined) {
      saveApproverKey(keyFile, key);
      made.push(keyFile);
    }
    const plan: ConfigPlan = {
      ...{ adapter, profile, relations, reach },
      store: chooseStore(found, file),
      keyring: KEYRING,
      ...(key !== undefined && { approver: { issuer: key.issuer, publicKey: key.publicKey } }),
    };
    const text = configText(plan, found);
    await writePrivateFile(file, text.trimEnd().split('\n'), { force: existsSync(file) });
    report({ found, plan, file, made, keyFile }, output);
    return EXIT.done;
  },
};

function assertWritable(folder: string): void {
  try {
    accessSync(folder, constants.W_OK);
  } catch (cause) {
    const next =
      'use a folder that exists, on a disk that can be written, or name one with --out FILE';
    throw new GuidedError(
      'ERR_EM_USAGE',
      `${folder} cannot be written, and nothing was written`,
      next,
      { cause },
    );
  }
}

/** A database that was looked at, and how a configuration beside `file` reaches it. */
interface Inspected extends FoundDatabase {
  readonly path?: string;
  reach(): Promise<{ readonly reach: readonly string[]; readonly written: readonly string[] }>;
}

async function inspect(args: Arguments, file: string): Promise<Inspected> {
  const database = args.positionals[0] ?? process.env[ADMIN_VARIABLE] ?? '';
  if (database === '') {
    throw usageError(
      `name the database: the path of an SQLite file, or postgres://… (or set ${ADMIN_VARIABLE})`,
      'init',
    );
  }
  using _progress = showProgress('looking at the database');
  if (/^postgres(?:ql)?:/i.test(database)) {
    return await reachPostgres(database, { folder: dirname(file), suffix: args.value('roles') });
  }
  const path = resolve(database);
  const inside = relative(dirname(file), path);
  return {
    ...inspectSqlite(path),
    path,
    reach: async () => ({ reach: [`file: ${literal(inside)},`], written: [] }),
  };
}

function nothingUsable({ tables }: FoundDatabase): GuidedError {
  const [first] = tables;
  const message =
    first === undefined
      ? 'the database has no tables'
      : `no table can be registered: ${first.name}: ${first.unusable}`;
  return new GuidedError(
    'ERR_EM_ADAPTER_REFUSED',
    `${message}; nothing was written`,
    first === undefined
      ? 'create the tables first, then run this again'
      : 'change the table as it says, then run this again',
  );
}

function listTables({ tables }: FoundDatabase, { line, paint }: Output): void {
  for (const table of tables) {
    const what =
      table.unusable === undefined
        ? describeTable(table)
        : `cannot be registered: ${table.unusable}`;
    line(
      `  ${paint(table.unusable === undefined ? 'strong' : 'dim', printableLine(table.name))}  ${printableLine(what)}`,
    );
  }
}

async function askRelations(args: Arguments, asks: boolean): Promise<string> {
  const question = 'Which tables may operations write? Names separated by commas, or';
  return args.value('relations') ?? (asks ? answered(await ask(question, 'all')) : 'all');
}

async function chooseApprover(args: Arguments, asks: boolean): Promise<string | undefined> {
  const named = args.value('approver');
  if (named !== undefined || !asks) return named;
  const answer = answered(
    await ask('Who approves? A name makes a key here; - is for later.', userInfo().username),
  );
  return answer === '-' ? undefined : answer;
}

/** Ctrl-C takes no offer. */
function answered(answer: string | undefined): string {
  if (answer !== undefined) return answer;
  const next = 'run it again and answer, or take what is offered with --yes';
  throw new GuidedError(
    'ERR_EM_USAGE',
    'the question was not answered, and nothing was written',
    next,
  );
}

function chooseName(args: Arguments, { suggestedName }: FoundDatabase): string {
  const plain = suggestedName.replace(/[^\w.-]/g, '-').replace(/^[^A-Za-z0-9]+/, '');
  const name = args.value('name') ?? (plain === '' ? 'database' : plain);
  if (!isName(name)) {
    throw usageError(
      'an adapter is named by letters, digits and . _ : / @ -, starting with a letter or digit',
      'init',
    );
  }
  return name;
}

/** The ledger never shares a file with the business. */
function chooseStore({ path }: Inspected, file: string): string {
  return path === resolve(dirname(file), 'effectmatch.db')
    ? 'effectmatch-ledger.db'
    : 'effectmatch.db';
}

function chooseProfile(args: Arguments, { kind }: FoundDatabase): string {
  const profile = args.value('profile') ?? 'net-state';
  if (!PROFILES.includes(profile))
    throw usageError(`--profile is one of ${PROFILES.join(', ')}`, 'init');
  if (kind === 'sqlite' && profile !== 'net-state') {
    throw usageError(
      `SQLite gives net changes only, so --profile ${profile} is not possible`,
      'init',
    );
  }
  return profile;
}

interface Written {
  readonly found: FoundDatabase;
  readonly plan: ConfigPlan;
  readonly file: string;
  readonly made: readonly string[];
  readonly keyFile: string | undefined;
}

function report({ found, plan, file, made, keyFile }: Written, output: Output): void {
  const { line, paint } = output;
  const leftOut = found.tables.filter(({ name }) => !plan.relations.includes(name));
  const next = nextSteps(found, plan, keyFile);
  const shown = (path: string) => relative(process.cwd(), path) || path;
  const strays = strayTriggers(found, plan.relations);
  const { adapter, relations } = plan;
  output.document({
    adapter,
    written: [file, ...made],
    relations,
    leftOut,
    strays,
    next: next.map(([step]) => step),
  });
  line(
    `${paint('good', 'written')}  ${shown(file)}: ${plan.adapter}, ${plan.relations.length} ${plan.relations.length === 1 ? 'table' : 'tables'} registered`,
  );
  for (const path of made)
    line(`${paint('good', 'written')}  ${shown(path)}: secret, keep it out of version control`);
  for (const { name, unusable } of leftOut) {
    line(
      `${paint('caution', 'left out')} ${printableLine(`${name}: ${unusable ?? 'not chosen'}`)}`,
    );
  }
  for (const { trigger, on, writes } of strays) {
    const what = `trigger ${trigger} on ${on} writes ${writes}, which is not registered: what fires it is refused`;
    line(`${paint('caution', 'mind')}     ${printableLine(what)}`);
  }
  line();
  line(paint('strong', 'Next:'));
  for (const [command, why] of next) line(`  ${command}${why === '' ? '' : `   # ${why}`}`);
}

function nextSteps(
  { kind }: FoundDatabase,
  { adapter }: ConfigPlan,
  keyFile: string | undefined,
): [string, string][] {
  const key = keyFile === undefined ? 'NAME.key.json' : relative(process.cwd(), keyFile);
  return [
    ...(keyFile === undefined
      ? ([
          [
            'effectmatch keygen NAME',
            'a key for an approver; put the line it prints into the configuration',
          ],
        ] as [string, string][])
      : []),
    ...(kind === 'postgres'
      ? ([[`effectmatch provision`, `roles, recorders, marker table; needs ${ADMIN_VARIABLE}`]] as [
          string,
          string,
        ][])
      : []),
    ['effectmatch doctor', 'is every way out closed?'],
    [
      `effectmatch plan --adapter ${adapter} --sql "…" --out proposal.json`,
      'what would it do? It is rolled back',
    ],
    [`effectmatch approve proposal.json --key ${key} --out license.json`, 'read it, sign it'],
    ['effectmatch run license.json --sql "…"', 'commits only what was approved'],
  ];
}
