/**
 * Markup that is safe to put into a page. Only {@link html} creates it, so all other text is
 * escaped.
 */
export class Html {
  readonly text: string;

  private constructor(text: string) {
    this.text = text;
  }

  static join(strings: readonly string[], parts: readonly Part[]): Html {
    const written = parts.map((part, index) => write(part) + (strings[index + 1] ?? ''));
    return new Html((strings[0] ?? '') + written.join(''));
  }
}

/** A value that can be inserted into markup. `undefined` and `false` insert nothing. */
export type Part = Html | string | number | undefined | false | readonly Part[];

/** Builds markup and escapes its parts, both in text and in double-quoted attributes. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return Html.join(strings, parts);
}

/** Preformatted text. A wrapped line is indented, so that it cannot pass for two lines. */
export function preformatted(text: string): Html {
  const lines = text.split('\n').map((line) => html`<span class="text-line">${line}</span>`);
  return html`<pre>${lines}</pre>`;
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function write(part: Part): string {
  if (part === undefined || part === false) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(write).join('');
  return String(part).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
