import { printableLine } from '../output.ts';
import type { DatabaseSchema, TableSchema } from './schema.ts';

/** The file for addresses with passwords. */
export const ENV_FILE = 'effectmatch.env';
/** The variable with the login for a ledger in PostgreSQL. */
export const LEDGER_VARIABLE = 'EFFECTMATCH_LEDGER_URL';

/** The choices that go into a configuration file, besides the database's schema. */
export interface ConfigPlan {
  readonly adapter: string;
  readonly store: string;
  readonly keyring: string;
  /** The tables to register. All other usable tables are listed as left out. */
  readonly relations: readonly string[];
  /** Absent if no approver was named. */
  readonly approver?: { readonly issuer: string; readonly publicKey: string };
  /** The lines of the adapter's options that connect to the database, as code. */
  readonly access: readonly string[];
  readonly profile: string;
  /** PostgreSQL: what closes the database's outlets. */
  readonly boundary: 'server' | 'managed' | undefined;
}

/**
 * The text of `effectmatch.config.ts`. It compiles against the package's types, and every choice
 * has a comment. Names from the database are written as literals or printable comments, so that no
 * name can become code.
 */
export function configText(plan: ConfigPlan, schema: DatabaseSchema): string {
  const { adapter, store, keyring } = plan;
  const helper = schema.kind !== 'sqlite' ? ', fromEnvironment' : '';
  return `// Written by \`effectmatch init\`; from here on it is yours. Relative paths are relative to this folder.
import { defineConfig${helper} } from 'effectmatch';
import { ${schema.kind} } from 'effectmatch/adapters/${schema.kind}';

export default defineConfig({
${storeText(store, schema)}
  // The keys by which the runtime seals its own records. Back it up; keep it out of version control.
  keyring: ${literal(keyring)},
${issuersText(plan)}
  adapters: {
    ${propertyName(adapter)}: ${schema.kind}({
${plan.access.map((line) => `      ${line}`).join('\n')}
${boundaryText(plan)}${profileText(plan.profile)}
      // Tables that approved operations may write, ${INDIRECT[schema.kind]}. A write to any other table
      // is refused. \`volatile\` columns are not compared on rows that an approval names; approvers read which they are.
      relations: [
${relationLines(plan, schema)}
      ],
${leftOutLines(plan, schema)}    }),
  },
  // What agents ask for and people answer. \`effectmatch serve\` shows it in your browser.
  requests: { store: 'effectmatch.requests.db' },
  // Which agents may ask, and for what (docs/mcp.md). \`effectmatch token new billing-agent\` then makes a token for it.
  // ${agentsExample('billing-agent', adapter)}
});
`;
}

/** What else may write to the registered tables. */
const INDIRECT = {
  sqlite: 'those of triggers and cascades included',
  postgres: 'those of triggers and cascades included',
  mysql: 'those of triggers included (cascades are not possible)',
};

/** A line of a configuration that lets an agent propose its own SQL, each time for approval. */
export function agentsExample(agent: string, adapter: string): string {
  return `agents: { ${propertyName(agent)}: { sql: [${literal(adapter)}] } },`;
}

function storeText(store: string, { kind }: DatabaseSchema): string {
  const lines =
    kind === 'postgres'
      ? [
          '// The ledger: claims, verdicts, the journal. A file serves the processes of one machine. If several machines use',
          '// this database, keep the ledger in it: `effectmatch provision --ledger` prepares it for',
          `// store: fromEnvironment('${LEDGER_VARIABLE}', { file: '${ENV_FILE}' }),`,
        ]
      : [
          '// The ledger: claims, verdicts, the journal. A separate file, never the business database.',
        ];
  return [...lines, `store: ${literal(store)},`].map((line) => `  ${line}`).join('\n');
}

function issuersText({ approver, adapter }: ConfigPlan): string {
  const comment =
    '  // Who may approve, by public key; approvers keep their private keys to themselves.';
  const body = (issuer: string, key: string) =>
    `    ${issuer}: { key: ${key}, may: [${literal(adapter)}], sources: ['manifest', 'contract', 'rehearsed'] },`;
  if (approver === undefined) {
    const hint = `  // None yet. \`effectmatch keygen NAME\` makes a key and prints the line that belongs here:`;
    const example = body("'ap-team'", "'ed25519:…'").replace(/^ {4}/, '  //   ');
    return `${comment}\n${hint}\n${example}\n  issuers: {},`;
  }
  const hint = '  // `rehearsed` lets an approver sign what `effectmatch plan` has shown.';
  return `${comment}\n${hint}\n  issuers: {\n${body(propertyName(approver.issuer), literal(approver.publicKey))}\n  },`;
}

/** `server` is the default and needs no line. */
function boundaryText({ boundary }: ConfigPlan): string {
  if (boundary !== 'managed') return '';
  const lines = [
    '// For a login that is not a superuser. Rights cannot close everything then, so a gate reads every statement:',
    '// docs/deploy-postgres.md says which guarantees are weaker.',
    "boundary: 'managed',",
  ];
  return lines.map((line) => `      ${line}\n`).join('');
}

const PROFILES: Readonly<Record<string, string>> = {
  'net-state': 'the net change of each row; two writes that cancel out are nothing',
  'row-event': 'every write of every row; two writes that cancel out are two changes',
  'relation-write': 'only how often each table is written, and by which operation',
};

function profileText(profile: string): string {
  return `      // What is compared: ${PROFILES[profile] ?? profile}.\n      profile: ${literal(profile)},`;
}

function relationLines({ relations }: ConfigPlan, { tables }: DatabaseSchema): string {
  return tables
    .filter(({ name }) => relations.includes(name))
    .map((table) => {
      const name = literal(table.name);
      const columns = table.volatile.map(({ column }) => literal(column)).join(', ');
      const entry = columns === '' ? name : `{ name: ${name}, volatile: [${columns}] }`;
      return `        ${entry}, // ${printableLine(describeTable(table))}`;
    })
    .join('\n');
}

/** The key, triggers and cascades of a table in one line. */
export function describeTable({ key, volatile, triggers, cascadesFrom }: TableSchema): string {
  return [
    key.length === 0 ? 'no key: rows compare whole' : `key ${key.join(', ')}`,
    ...volatile.map(({ column, by }) => `${column} is set to the time by trigger ${by}`),
    ...triggers
      .filter(({ name }) => !volatile.some(({ by }) => by === name))
      .map(
        ({ name, writes }) =>
          `trigger ${name}${writes.length === 0 ? '' : ` writes ${writes.join(', ')}`}`,
      ),
    ...(cascadesFrom.length === 0 ? [] : [`changes with ${cascadesFrom.join(', ')} (foreign key)`]),
  ].join('; ');
}

function leftOutLines(
  { relations }: ConfigPlan,
  { tables, functions, views }: DatabaseSchema,
): string {
  const left = tables.filter(({ name }) => !relations.includes(name));
  const lines = [
    ...(left.length === 0 ? [] : ['// Left out:']),
    ...left.map(
      ({ name, unusable }) =>
        `//   ${name}: ${unusable ?? 'not chosen; add it to `relations` to allow writes'}`,
    ),
    ...optional('Views that operations may write through', 'views', views),
    ...optional('Functions that agents may call', 'entryPoints', functions),
  ];
  return lines.map((line) => `      ${printableLine(line)}\n`).join('');
}

/** A commented-out option, with names that it could list. */
function optional(what: string, option: string, names: readonly string[]): readonly string[] {
  if (names.length === 0) return [];
  const listed = names.slice(0, 5).map(literal).join(', ');
  return [`// ${what}. None unless you list them, for example:`, `// ${option}: [${listed}],`];
}

/** A name as a TypeScript string literal, whatever characters it contains. */
export function literal(text: string): string {
  if (/^[\w .:/@(),-]*$/.test(text)) return `'${text}'`;
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'");
  return `'${escaped.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)}'`;
}

function propertyName(name: string): string {
  return /^[A-Za-z]\w*$/.test(name) ? name : literal(name);
}
