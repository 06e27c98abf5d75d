import { quoteName } from '../../../postgres/identifier.ts';
import { judgeBody, namesIn, startsStatement, tokenize } from './body.ts';
import { dangerOf } from './builtins.ts';
import type { FunctionRow, RelationRow, SystemCatalog } from './catalog.ts';
import type { CatalogIndex } from './catalog-index.ts';
import { type BoundaryFacts, isVouchedFor, type SurveyContext } from './facts.ts';
import { digestFunction, reviewerOf } from './reviews.ts';

/**
 * Words that may write anywhere in a text, and words that may do so at the start of a statement.
 */
const WRITES = new Set(['insert', 'update', 'delete', 'merge', 'truncate', 'execute', 'explain']);
const COMMANDS = new Set(
  (
    'create alter drop grant revoke comment security call lock refresh reindex cluster vacuum analyze import ' +
    'reassign checkpoint'
  ).split(' '),
);

/**
 * Explains why functions, and everything they lead to, may do more than read and compute. Texts are
 * read generously: whatever looks like a call of a function with that name counts as one, whatever
 * its arguments. Code that cannot be judged is not pure.
 */
export class Purity {
  readonly #catalog: SystemCatalog;
  readonly #facts: BoundaryFacts;
  readonly #index: CatalogIndex;
  readonly #volatile: ReadonlySet<string>;
  readonly #seen = new Set<unknown>();

  /** `volatile` contains the names of the server's own volatile functions. */
  constructor({ catalog, facts, index }: SurveyContext, volatile: ReadonlySet<string>) {
    this.#catalog = catalog;
    this.#facts = facts;
    this.#index = index;
    this.#volatile = volatile;
  }

  /**
   * Why calling this function may do more than read; undefined if it may not, or if a person has
   * reviewed it.
   */
  ofFunction(row: FunctionRow): string | undefined {
    return this.#once(row, () => {
      if (row.schema === 'effectmatch' || isVouchedFor(row, this.#facts)) return undefined;
      if (reviewerOf(row, this.#facts) !== undefined) return undefined;
      const own = this.#judgeOwn(row);
      if (own !== undefined)
        return `${row.object} ${own} (or have it read and declare its digest ${digestFunction(row)})`;
      return (
        this.ofFunctions(this.#index.callsBy(row.oid).map((use) => use.function)) ??
        first(row.types, (type) => this.ofType(type)) ??
        (row.defaults === null ? undefined : this.ofExpression(row.defaults, [])) ??
        (row.kind === 'a' ? undefined : this.#ofBody(row.sqlBody ?? row.source))
      );
    });
  }

  /** The same for functions by their ids. Built-in functions are skipped. */
  ofFunctions(oids: readonly number[]): string | undefined {
    return first(oids, (oid) => {
      const row = this.#index.function.get(oid);
      return row && this.ofFunction(row);
    });
  }

  /**
   * Why storing or casting a value of this type may do more than read. Considers the checks of the
   * type and of its parts.
   */
  ofType(oid: number): string | undefined {
    const type = this.#index.type.get(oid);
    if (type === undefined) return undefined;
    return this.#once(type, () => {
      const uses = this.#index.usesOfType(oid);
      const checks = this.#catalog.constraints.filter((row) => row.type === oid);
      // A table's row is a type too.
      const fields = this.#index.columnsOf(type.relation).map((row) => row.typeOid);
      const parts = [type.base, type.element, ...type.types, ...fields];
      return (
        this.ofFunctions(uses.map((use) => use.function)) ??
        first(checks, ({ definition }) => this.ofExpression(definition, [])) ??
        first(parts, (part) => this.ofType(part))
      );
    });
  }

  /**
   * Why a stored expression may do more than read. `functions` are the ids of the functions it
   * calls. `own` is the table that it belongs to and that its definition therefore names once.
   */
  ofExpression(
    definition: string,
    functions: readonly number[],
    own?: RelationRow,
  ): string | undefined {
    const isOwn = (name: string) =>
      name === own?.name && tokenize(definition).filter(({ text }) => text === name).length === 1;
    const types = [...namesIn(definition)].flatMap((name) =>
      isOwn(name) ? [] : this.#index.typesNamed(name),
    );
    const danger = first(callsIn(definition), (name) => this.#dangerOf(name));
    return (
      this.ofFunctions(functions) ??
      (danger && `it ${danger}`) ??
      this.#ofOperators(definition) ??
      first(types, ({ oid }) => this.ofType(oid))
    );
  }

  /**
   * Why reading this relation may do more than read: because of what a view calls, policies, rows
   * on other servers, or index and check expressions that the server evaluates while it plans.
   */
  ofRelation(row: RelationRow): string | undefined {
    return this.#once(row, () => {
      if (row.kind === 'f') return `${row.object} is a foreign table`;
      // Only writes evaluate defaults, and `ofQuery` judges the query.
      const called = this.#index
        .usesOf(row.oid)
        .filter((use) => !['pg_attrdef', 'pg_rewrite'].includes(use.class));
      return (
        this.ofFunctions(called.map((use) => use.function)) ??
        (row.kind === 'v' ? this.ofQuery(row) : undefined) ??
        first(this.#index.childrenOf(row.oid), (child) => this.ofRelation(child))
      );
    });
  }

  /** Why running the query of a view or materialized view may do more than read. */
  ofQuery(view: RelationRow): string | undefined {
    const rules = this.#index.rulesOf(view.oid).filter((rule) => rule.event === '1');
    const uses = this.#index.usesOf(view.oid).filter((use) => use.class === 'pg_rewrite');
    return (
      this.ofFunctions(uses.map((use) => use.function)) ??
      first(rules, ({ definition }) => {
        const danger = this.#builtinIn(definition);
        return danger
          ? `it ${danger}`
          : (this.#ofOperators(definition) ?? this.#ofNames(definition, view));
      })
    );
  }

  #judgeOwn(row: FunctionRow): string | undefined {
    if (row.kind === 'a') return first(row.parts, (part) => this.#dangerOf(part));
    if (row.language !== 'sql' && row.language !== 'plpgsql')
      return `is written in ${row.language}, which is not judged`;
    const text = row.sqlBody ?? row.source;
    return judgeBody(text)[0] ?? findWrite(text, row.language) ?? this.#builtinIn(text);
  }

  #builtinIn(text: string): string | undefined {
    const names = tokenize(text).filter(({ kind }) => kind === 'word' || kind === 'quoted');
    return first(names, ({ text: name }) => this.#dangerOf(name));
  }

  /** Why calling a function of the server may do more than read, or may run SQL given as text. */
  #dangerOf(name: string): string | undefined {
    if (name === 'nextval' || name === 'setval') return `calls ${name}, which moves a sequence`;
    if (/_to_xml(?:schema|_and_xmlschema)?$/.test(name))
      return `calls ${name}, which runs SQL that it is told`;
    if (/^pg_input_(?:is_valid|error_info)$/.test(name))
      return `calls ${name}, which reads a value as any type`;
    const danger = this.#volatile.has(name) ? dangerOf(name) : undefined;
    return danger && `calls ${name}, which ${danger}`;
  }

  /**
   * Judges everything that a body calls or names, and what can run in any text without being named.
   */
  #ofBody(text: string): string | undefined {
    const calls = first(callsIn(text), (name) =>
      first(this.#index.functionsNamed(name), (row) => this.ofFunction(row)),
    );
    return calls ?? this.#ofNames(text) ?? this.#ofOperators(text) ?? this.#ofCasts();
  }

  /**
   * Judges application operators in a text, which call functions of the application or the server.
   */
  #ofOperators(text: string): string | undefined {
    const operators = this.#catalog.operators.filter((row) => text.includes(row.name));
    return first(operators, ({ description, builtin, function: called }) => {
      const danger = builtin === null ? undefined : this.#dangerOf(builtin);
      return danger === undefined ? this.ofFunctions([called]) : `${description} ${danger}`;
    });
  }

  /** Judges the relations and types that a text names. */
  #ofNames(text: string, self?: RelationRow): string | undefined {
    return first(namesIn(text), (name) => {
      const relations = this.#index.relationsNamed(name).filter((row) => row !== self);
      return (
        first(relations, (row) => this.ofRelation(row)) ??
        first(this.#index.typesNamed(name), ({ oid }) => this.ofType(oid))
      );
    });
  }

  #ofCasts(): string | undefined {
    const { casts } = this.#catalog;
    return this.#once(casts, () => this.ofFunctions(casts.map((cast) => cast.function)));
  }

  /**
   * Judges each object once per question, so cycles add nothing. A finding ends the question at
   * once, so no answer about a part is kept for the next question.
   */
  #once(what: unknown, judge: () => string | undefined): string | undefined {
    if (this.#seen.has(what)) return undefined;
    const isQuestion = this.#seen.size === 0;
    this.#seen.add(what);
    const why = judge();
    if (isQuestion) this.#seen.clear();
    return why;
  }
}

/**
 * Names in the position of a function: before a parenthesis, or after a dot, because `row.f` can
 * mean `f(row)`.
 */
function callsIn(text: string): ReadonlySet<string> {
  const tokens = tokenize(text);
  const called = tokens.filter(
    (_, at) => tokens[at + 1]?.text === '(' || tokens[at - 1]?.text === '.',
  );
  return new Set(
    called.flatMap(({ kind, text: name }) => [
      ...namesIn(kind === 'word' ? name : quoteName(name)),
    ]),
  );
}

/**
 * Finds a word that may write. In SQL, unlike PL/pgSQL, INTO occurs only in INSERT, MERGE and a
 * SELECT that creates a table.
 */
function findWrite(text: string, language: string): string | undefined {
  const tokens = tokenize(text);
  const found = tokens.find(({ kind, text: word }, at) => {
    if (kind !== 'word') return false;
    if (WRITES.has(word) || (word === 'into' && language === 'sql')) return true;
    return startsStatement(tokens, at) && COMMANDS.has(word);
  });
  return found && `may write (${found.text.toUpperCase()})`;
}

function first<T>(items: Iterable<T>, judge: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const why = judge(item);
    if (why !== undefined) return why;
  }
  return undefined;
}
