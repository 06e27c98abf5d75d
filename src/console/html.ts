/**
 * Markup that may stand in a page as it is. Only {@link html} makes it, so text that comes from
 * elsewhere is always escaped.
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

/** What may be put into markup. Nothing is written for `undefined` and `false`. */
export type Part = Html | string | number | undefined | false | readonly Part[];

/** Markup with its parts escaped, for text and for attributes in double quotes. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return Html.join(strings, parts);
}

/**
 * Text as it is, in lines: where a long one wraps, it is indented and cannot pass for another line.
 */
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
