import { literal } from './config-text.ts';
import type { FoundTable } from './found.ts';

/**
 * The text of a module with the types of an adapter's tables, and the functions that state effects
 * on them.
 */
export function typesText(adapter: string, tables: readonly FoundTable[]): string {
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

function tableText({ name, key, columns }: FoundTable): string {
  const fields = (isKey: boolean) =>
    columns
      .filter((column) => key.includes(column.name) === isKey)
      .map((column) => `${literal(column.name)}: ${column.type}${column.nullable ? ' | null' : ''}`)
      .join('; ');
  return `  ${literal(name)}: {\n    key: { ${fields(true)} };\n    columns: { ${fields(false)} };\n  };`;
}
