import { type AdapterRefusal, refusalsOf } from '../../backend/setup.ts';
import { misnamedOption, type OptionNames } from '../../contract/options.ts';

/**
 * One tool: changes the state it is given, in place. Every call gets a new copy, so nothing that a
 * tool keeps is the durable state or the candidate. Parameters may be typed as the application
 * knows them.
 */
export type SnapshotTool = { run(state: unknown, args: unknown): unknown }['run'];

/** How the elements of a list that is declared as references compare. */
export interface ReferencesOption {
  /**
   * Elements are objects, and these of their fields get columns; the others share `*`. By default
   * elements are compared whole.
   */
  readonly fields?: readonly string[];
  /** Columns whose new values the tools generate, for `generated`. */
  readonly generated?: readonly string[];
}

/** Where records of one kind are in the document, and how they compare. */
export interface CollectionOption {
  /** JSON Pointer to the list or object that holds the records, such as `/orders`. */
  readonly path: string;
  /**
   * The field, or fields, that say which record it is; with `map`, the name to give the keys of the
   * object.
   */
  readonly key: string | readonly string[];
  /** The records are the values of an object instead of the elements of a list. */
  readonly map?: boolean;
  /**
   * Fields that get a column; by default those of the records in `initial`. All others share `*`.
   */
  readonly fields?: readonly string[];
  /** Fields that are not compared on records that an approval names. */
  readonly volatile?: readonly string[];
  /**
   * Lists inside a record whose order does not matter, such as `/items`; `*` stands for any key or
   * place.
   */
  readonly unordered?: readonly string[];
  /**
   * Lists inside a record, such as `/items`, whose elements are rows of a separate target
   * (`orders/items`), so that each can be approved, and labelled, for itself. They count, and have
   * no order. The record shows the list empty.
   */
  readonly references?: { readonly [path: string]: ReferencesOption };
  /**
   * Whether the order of a list's records is compared; `kept` by default. New records may be
   * appended in any order.
   */
  readonly order?: 'kept' | 'ignored';
  /**
   * Fields whose new values the tools generate, for `generated`; by default a key of one field.
   */
  readonly generated?: readonly string[];
}

/** What an application says about its state. */
export interface SnapshotOptions {
  /**
   * Path of the SQLite file that holds the state, its version and the markers; created with
   * `initial`.
   */
  readonly file: string;
  /** The state of a new file: any JSON. Ignored if the file already has a state. */
  readonly initial?: unknown;
  readonly collections: { readonly [name: string]: CollectionOption };
  /**
   * The module that exports the tools, by path or URL, such as
   * `new URL('./shop-tools.js', import.meta.url)`. Worker threads load it. A default export
   * replaces the named ones: an object of tools, or a function that gets `toolData` and returns
   * one.
   */
  readonly tools: string | URL;
  /** What a default export that makes the tools is given; anything that `postMessage` can send. */
  readonly toolData?: unknown;
  /**
   * Lists outside the collections whose order does not matter, as JSON pointers with `*` for any
   * key or place.
   */
  readonly unordered?: readonly string[];
  /**
   * Lists outside the collections whose elements are rows of a separate target, by JSON pointer.
   */
  readonly references?: { readonly [path: string]: ReferencesOption };
  /** What journal and receipts keep of values; `plain` by default. */
  readonly values?: 'plain' | 'digest';
  /** How long one call of a tool may take; 30000 by default. */
  readonly toolTimeoutMs?: number;
  /** How long to wait for other writers of the file; 5000 by default. */
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

/** Refuses options of the wrong name or kind. What they say about the state is checked later. */
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

/** Why the state cannot be registered, and what to change. */
export const refused: AdapterRefusal = refusalsOf('snapshot');
