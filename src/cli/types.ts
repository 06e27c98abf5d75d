import { resolve } from 'node:path';
import type { Verb } from './command.ts';
import { writePrivateFile } from './files.ts';
import { literal } from './init/config-text.ts';
import { inspect, readAddress } from './init/inspect.ts';
import { chooseRelations, type TableSchema, usableTables } from './init/schema.ts';
import { countOf } from './output.ts';

const OUT = 'effectmatch.types.ts';

/** Writes types for the tables, so that a manifest with a wrong column does not compile. */
export const verb: Verb = {
  summary: 'write TypeScript types for your tables',
  about: `Reads the tables of an SQLite file, a PostgreSQL or a MariaDB database and writes a module with their types and with typed versions of insert, update, remove, row, absent and read, so that the compiler finds wrong tables, columns and values. The database is only read. Run it again after the schema changes.`,
  optional: ['database'],
  flags: {
    force: { about: 'replace the file if it exists' },
    name: { value: 'NAME', about: 'the name of the adapter (default: the name of the database)' },
    out: { value: 'FILE', about: `where to write it (default: ${OUT})` },
    relations: {
      value: 'LIST',
      about: 'tables, separated by commas (default: all that can be registered)',
    },
  },
  examples: ['books.db --force', `--out src/books.types.ts`],
  async run(args, output) {
    const file = resolve(args.value('out') ?? OUT);
    const schema = await inspect(readAddress(args));
    const chosen = chooseRelations(args.value('relations') ?? 'all', schema);
    const tables = usableTables(schema).filter(({ name }) => chosen.includes(name));
    const text = typesText(args.value('name') ?? schema.suggestedName, tables);
    await writePrivateFile(file, text.trimEnd().split('\n'), { force: args.has('force') });
    output.document({ file, tables: chosen });
    output.item('good', 'written', `${file}: the types of ${countOf(chosen.length, 'table')}`);
  },
};

/** A module with the types of an adapter's tables, and functions that state effects on them. */
function typesText(adapter: string, tables: readonly TableSchema[]): string {
  const name = adapter.replace(/\W+/g, '_').replace(/^(?=\d)/, '_');
  const type = `${name.charAt(0).toUpperCase()}${name.slice(1)}Tables`;
  return `// Written by \`effectmatch types\`; write it again when the schema has changed.
import { effectsOf } from 'effectmatch';

/** The tables of adapter ${literal(adapter)}: the columns of the key, and the others. */
export type ${type} = {
${tables.map(tableText).join('\n')}
};

/** States effects on these tables: ${name}.update('table', { key }, { column: [from, to] }). */
export const ${name} = effectsOf<${type}>();
`;
}

function tableText({ name, key, columns }: TableSchema): string {
  const fields = (isKey: boolean) =>
    columns
      .filter((column) => key.includes(column.name) === isKey)
      .map((column) => `${literal(column.name)}: ${column.type}${column.nullable ? ' | null' : ''}`)
      .join('; ');
  return `  ${literal(name)}: {\n    key: { ${fields(true)} };\n    columns: { ${fields(false)} };\n  };`;
}
