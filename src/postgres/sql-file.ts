import { readFileSync } from 'node:fs';
import { EffectMatchError, invariant } from '../errors.ts';
import { quoteLiteral, quoteName } from './identifier.ts';

/** The only dollar quote that the files use. Values that contain it are refused. */
export const DOLLAR_QUOTE = '$effectmatch$';

/** How identifiers and literals are quoted. */
interface Quoting {
  readonly name: (text: string) => string;
  readonly literal: (text: string) => string;
}

/**
 * The statements of an `.sql` file, in file order. A line `-- name: …` above each statement names
 * it. Placeholders are written as in psql: `:"role"` becomes a quoted identifier, `:'role'` a
 * quoted literal.
 */
export class SqlFile {
  readonly #statements = new Map<string, string>();

  readonly #quoting: Quoting;

  constructor(file: URL, quoting: Quoting = { name: quoteName, literal: quoteLiteral }) {
    this.#quoting = quoting;
    const [, ...sections] = readFileSync(file, 'utf8').split(/^-- name: /m);
    for (const section of sections) {
      const [name = '', ...lines] = section.split('\n');
      const text = lines.join('\n').replace(/^(?:--.*\n)*/, '');
      this.#statements.set(name, text.trimEnd().replace(/;$/, ''));
    }
  }

  get names(): readonly string[] {
    return [...this.#statements.keys()];
  }

  /** All statements, in file order. */
  all(values?: Readonly<Record<string, string>>): readonly string[] {
    return this.names.map((name) => this.get(name, values));
  }

  /** One statement with its placeholders filled in. `values` may contain more than it uses. */
  get(name: string, values: Readonly<Record<string, string>> = {}): string {
    const text = this.#statements.get(name);
    invariant(text !== undefined, `there is a statement ${name}`);
    return text.replace(PLACEHOLDER, (_, identifier?: string, literal?: string) => {
      const key = identifier ?? literal ?? '';
      const value = values[key];
      invariant(value !== undefined, `statement ${name} is given a value for ${key}`);
      if (value.includes(DOLLAR_QUOTE)) {
        const what = `a name or password contains ${DOLLAR_QUOTE}`;
        throw new EffectMatchError('ERR_EM_ADAPTER_REFUSED', what);
      }
      const { name: quoteIdentifier, literal: quoteValue } = this.#quoting;
      return identifier === undefined ? quoteValue(value) : quoteIdentifier(value);
    });
  }
}

const PLACEHOLDER = /(?<!:):(?:"(\w+)"|'(\w+)')/g;
