// Call-level rules in the style of AgentSpec: they see the submitted statements and nothing that
// comes of them.
import { loadModule, parseSync } from 'libpg-query';

/** Which writes a task may contain, as `insert Customer`. */
export type WritePolicy = ReadonlySet<string>;

interface Parsed {
  readonly stmts?: readonly {
    readonly stmt?: unknown;
    readonly stmt_location?: number;
    readonly stmt_len?: number;
  }[];
}

const WRITES: { readonly [node: string]: string } = {
  InsertStmt: 'insert',
  UpdateStmt: 'update',
  DeleteStmt: 'delete',
  MergeStmt: 'merge',
};

/** The parser is loaded once, and then works synchronously. */
export async function loadParser(): Promise<void> {
  await loadModule();
}

/** The statements of a script, each as it was written. */
export function splitStatements(script: string): readonly string[] {
  const bytes = Buffer.from(script);
  const { stmts = [] } = parseSync(script) as Parsed;
  return stmts.map(({ stmt_location: start = 0, stmt_len: length }) =>
    bytes
      .subarray(start, length === undefined ? undefined : start + length)
      .toString('utf8')
      .trim(),
  );
}

/**
 * The first visible write, or other statement, that the policy does not allow; undefined when there
 * is none.
 */
export function findForbidden(
  statements: readonly string[],
  policy: WritePolicy,
): string | undefined {
  for (const sql of statements) {
    const { stmts = [] } = parseSync(sql) as Parsed;
    for (const { stmt } of stmts) {
      const forbidden = listStatements(stmt).find(
        (found) => found !== 'select' && !policy.has(found),
      );
      if (forbidden !== undefined) return forbidden;
    }
  }
  return undefined;
}

/** Every statement in a syntax tree, those inside common table expressions included. */
function listStatements(node: unknown): readonly string[] {
  if (typeof node !== 'object' || node === null) return [];
  if (Array.isArray(node)) return node.flatMap(listStatements);
  return Object.entries(node).flatMap(([name, inner]) => {
    const own = /^[A-Z]\w*Stmt$/.test(name) ? [describe(name, inner)] : [];
    return [...own, ...listStatements(inner)];
  });
}

function describe(node: string, content: unknown): string {
  const write = WRITES[node];
  if (write === undefined) return node === 'SelectStmt' ? 'select' : node;
  const { relation } = content as {
    readonly relation?: { readonly relname?: string; readonly schemaname?: string };
  };
  const schema =
    relation?.schemaname === undefined || relation.schemaname === 'public'
      ? ''
      : `${relation.schemaname}.`;
  return `${write} ${schema}${relation?.relname}`;
}
