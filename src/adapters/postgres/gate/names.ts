import { type FieldKind, NODES } from './nodes.ts';

/** A node of the syntax tree, as the parser returns it. */
export type SyntaxNode = { readonly [field: string]: unknown };

/** A name as written in a statement. Without a schema, the search path applies. */
export interface WrittenName {
  readonly schema?: string;
  readonly name: string;
}

/** All names through which a statement could reach code or rows. */
export interface StatementNames {
  /** Functions, aggregates, window functions and casts that are written as calls. */
  readonly calls: readonly WrittenName[];
  /** `row.name` and `(expression).name`: a field, or a call of a function with one argument. */
  readonly attributes: readonly string[];
  readonly types: readonly WrittenName[];
  /** Tables that are read, without references to common table expressions. */
  readonly reads: readonly WrittenName[];
  /** Targets of INSERT, UPDATE, DELETE and MERGE. */
  readonly writes: readonly WrittenName[];
  /** Methods of TABLESAMPLE. */
  readonly samples: readonly WrittenName[];
}

/** The names in a statement, or why it cannot be judged. */
export type NameReading =
  | { readonly kind: 'names'; readonly names: StatementNames }
  | { readonly kind: 'unknown'; readonly why: string };

/** Collects the names in a statement. An unknown node refuses the whole statement. */
export function readNames(statement: SyntaxNode): NameReading {
  const reader = new NameReader();
  try {
    reader.read(statement, NO_TABLES);
    return { kind: 'names', names: reader };
  } catch (error) {
    if (error instanceof UnknownSyntax) return { kind: 'unknown', why: error.message };
    throw error;
  }
}

/** Stops the walk. Always caught in this file. */
class UnknownSyntax extends Error {}

type Scope = ReadonlySet<string>;
const NO_TABLES: Scope = new Set();

class NameReader implements StatementNames {
  readonly calls: WrittenName[] = [];
  readonly attributes: string[] = [];
  readonly types: WrittenName[] = [];
  readonly reads: WrittenName[] = [];
  readonly writes: WrittenName[] = [];
  readonly samples: WrittenName[] = [];

  /** Reads nodes that carry their type name, alone or in a list. Skips empty ones. */
  read(value: unknown, scope: Scope): void {
    if (Array.isArray(value)) {
      for (const item of value) this.read(item, scope);
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    for (const [name, content] of Object.entries(value))
      this.#readNode(name, content as SyntaxNode, scope);
  }

  #readNode(name: string, node: SyntaxNode, outer: Scope): void {
    const fields = NODES.get(name);
    if (fields === undefined) throw new UnknownSyntax(`${describeNode(name)} is not admitted here`);
    this.#note(name, node, outer);
    const scope = this.#readTables(node, outer);
    for (const [field, value] of Object.entries(node)) {
      const kind = fields.get(field);
      if (kind === undefined)
        throw new UnknownSyntax(`${describeNode(name)} with ${field} is not admitted here`);
      if (field !== 'withClause') this.#readField(kind, value, scope);
    }
  }

  #readField(kind: FieldKind, value: unknown, scope: Scope): void {
    if (kind.kind === 'nodes') this.read(value, scope);
    if (kind.kind === 'node') this.#readNode(kind.name, value as SyntaxNode, scope);
  }

  /**
   * Reads the tables of a WITH clause. Each sees the tables before it, or all of them if the clause
   * is recursive. In a query that does not see the table, its name means a real one.
   */
  #readTables({ withClause }: SyntaxNode, outer: Scope): Scope {
    if (withClause === undefined) return outer;
    const { ctes, recursive, ...rest } = withClause as SyntaxNode;
    if (Object.keys(rest).some((field) => field !== 'location'))
      throw new UnknownSyntax('this WITH clause is not admitted here');
    const tables = (ctes as readonly { readonly CommonTableExpr: SyntaxNode }[]).map(
      (table) => table.CommonTableExpr,
    );
    const names = tables.map(({ ctename }) => String(ctename));
    for (const [index, table] of tables.entries()) {
      const seen = recursive === true ? names : names.slice(0, index);
      this.#readNode('CommonTableExpr', table, outer.union(new Set(seen)));
    }
    return outer.union(new Set(names));
  }

  #note(kind: string, node: SyntaxNode, scope: Scope): void {
    if (kind === 'FuncCall') this.calls.push(readWritten(node.funcname));
    if (kind === 'TypeName') this.types.push(readWritten(node.names));
    if (kind === 'RangeTableSample') this.samples.push(readWritten(node.method));
    if (kind === 'ColumnRef') this.attributes.push(...lastOf(node.fields));
    if (kind === 'A_Indirection') this.attributes.push(...partsOf(node.indirection));
    if (kind === 'Target') this.writes.push(readTable(node));
    if (kind === 'RangeVar') {
      const table = readTable(node);
      const isOwn = table.schema === undefined && scope.has(table.name);
      if (!isOwn) this.reads.push(table);
    }
  }
}

/** The identifiers in a list of nodes, without stars and subscripts. */
function partsOf(list: unknown): readonly string[] {
  const nodes = (list ?? []) as readonly { readonly String?: { readonly sval?: unknown } }[];
  return nodes.flatMap((node) => (node.String === undefined ? [] : [String(node.String.sval)]));
}

/** The field in a qualified reference. A single name is a column or a whole row. */
function lastOf(fields: unknown): readonly string[] {
  const parts = partsOf(fields);
  const hasStar = (fields as readonly unknown[]).length > parts.length;
  return hasStar ? [] : parts.slice(1).slice(-1);
}

function readWritten(list: unknown): WrittenName {
  const [name = '', schema, ...more] = [...partsOf(list)].reverse();
  if (more.length > 0) throw new UnknownSyntax('a name with a database in it is not admitted here');
  return schema === undefined ? { name } : { schema, name };
}

function readTable({ schemaname, relname }: SyntaxNode): WrittenName {
  const name = String(relname);
  return schemaname === undefined ? { name } : { schema: String(schemaname), name };
}

function describeNode(name: string): string {
  const words = name.replace(/(?<=[a-z])(?=[A-Z])/g, ' ').replace(/^A_/, '');
  return `the syntax ${words}`;
}
