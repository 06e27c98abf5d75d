import { type AdapterRefusal, refusalsOf } from '../../backend/setup.ts';
import { misnamedOption, type OptionNames } from '../../contract/options.ts';

/**
 * A tool, which changes the given state in place. Every call gets a new copy, so a tool can never
 * keep a reference to the durable state or the candidate. Applications can declare their own
 * parameter types.
 */
export type SnapshotTool = { run(state: unknown, args: unknown): unknown }['run'];

/** How to compare the elements of a list that is declared as references. */
export interface ReferencesOption {
  /**
   * The fields of object elements that get columns; all others share `*`. By default, elements are
   * compared whole.
   */
  readonly fields?: readonly string[];
  /** Columns whose new values the tools generate, for `generated`. */
  readonly generated?: readonly string[];
}

/** Where the records of one kind are in the document, and how to compare them. */
export interface CollectionOption {
  /** JSON Pointer to the list or object that contains the records, such as `/orders`. */
  readonly path: string;
  /**
   * The field or fields that identify a record. With `map`, the column name for the object's keys.
   */
  readonly key: string | readonly string[];
  /** Whether the records are the values of an object instead of the elements of a list. */
  readonly map?: boolean;
  /**
   * Fields that get a column. All others share `*`. Default: the fields of the records in
   * `initial`.
   */
  readonly fields?: readonly string[];
  /** Fields that are not compared on records that an approval names. */
  readonly volatile?: readonly string[];
  /**
   * Lists inside a record whose order does not matter, such as `/items`. `*` matches any key or
   * index.
   */
  readonly unordered?: readonly string[];
  /**
   * Lists inside a record, such as `/items`, whose elements are rows of a separate target
   * (`orders/items`), so that each can be approved and labelled separately. Their number matters,
   * but not their order. In the record, the list appears empty.
   */
  readonly references?: { readonly [path: string]: ReferencesOption };
  /**
   * Whether to compare the order of a list's records. New records may be appended in any order.
   * Default: `kept`.
   */
  readonly order?: 'kept' | 'ignored';
  /**
   * Fields whose new values the tools generate, for `generated`. Default: the key, if it has one
   * field.
   */
  readonly generated?: readonly string[];
}

/** How an application describes its state. */
export interface SnapshotOptions {
  /**
   * Path of the SQLite file for the state, its version and the markers. A missing file is created
   * with `initial`.
   */
  readonly file: string;
  /** The state for a new file: any JSON. It is ignored if the file already has a state. */
  readonly initial?: unknown;
  readonly collections: { readonly [name: string]: CollectionOption };
  /**
   * The module that exports the tools, as a path or URL, such as `new URL('./shop-tools.js',
   * import.meta.url)`. Worker threads load it. A default export replaces the named ones: it is an
   * object of tools, or a function that gets `toolData` and returns one.
   */
  readonly tools: string | URL;
  /**
   * The argument for a default export that creates the tools. `postMessage` must be able to send
   * it.
   */
  readonly toolData?: unknown;
  /**
   * Lists outside the collections whose order does not matter, as JSON pointers. `*` matches any
   * key or index.
   */
  readonly unordered?: readonly string[];
  /**
   * Lists outside the collections whose elements are rows of a separate target, by JSON pointer.
   */
  readonly references?: { readonly [path: string]: ReferencesOption };
  /** Whether journal and receipts keep values or only their digests. Default: `plain`. */
  readonly values?: 'plain' | 'digest';
  /** How long one tool call may take. Default: 30000. */
  readonly toolTimeoutMs?: number;
  /** How long to wait for other writers of the file. Default: 5000. */
  readonly busyTimeoutMs?: number;
}

const OPTIONS: OptionNames<SnapshotOptions> = {
  file: true,
  initial: true,
  collections: true,
  tools: true,
  toolData: true,
  unordered: true,
  references: true,
  values: true,
  toolTimeoutMs: true,
  busyTimeoutMs: true,
};
const COLLECTION: OptionNames<CollectionOption> = {
  path: true,
  key: true,
  map: true,
  fields: true,
  volatile: true,
  unordered: true,
  references: true,
  order: true,
  generated: true,
};

/** Refuses options with a wrong name or type. Their content is checked later. */
export function checkOptions(options: SnapshotOptions): void {
  const misnamed = misnamedOption(options, OPTIONS);
  if (misnamed !== undefined) throw refused(misnamed);
  if (typeof options.file !== 'string') throw refused('file must be the path of a file');
  if (typeof options.collections !== 'object' || options.collections === null)
    throw refused('collections must be an object');
  for (const [name, collection] of Object.entries(options.collections)) {
    const wrong = misnamedOption(collection, COLLECTION);
    if (wrong !== undefined) throw refused(`collection "${name}": ${wrong}`);
  }
  if (typeof options.tools !== 'string' && !(options.tools instanceof URL))
    throw refused('tools must be the path or the URL of the module that exports them');
}

/** Creates the error for a state that cannot be registered. */
export const refused: AdapterRefusal = refusalsOf('snapshot');
