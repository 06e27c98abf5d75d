/** The element with this id. */
export function field<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found as T;
}

/** Submits fields as a form. */
export async function submit(
  path: string,
  fields: Readonly<Record<string, string | File>>,
  init: RequestInit = {},
): Promise<Response> {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) body.set(name, value);
  return await fetch(path, { method: 'POST', body, ...init });
}

/** A paragraph of plain text. */
export function paragraph(text: string, style = 'aside'): HTMLElement {
  const element = document.createElement('p');
  element.className = style;
  element.textContent = text;
  return element;
}

/** Preformatted text. */
export function preformatted(text: string): HTMLElement {
  const element = document.createElement('pre');
  element.append(...linesOf(text));
  return element;
}

/** Browsers lay out a block of lines only when it comes into view. */
const LINES_PER_BLOCK = 200;

/** One element per line. A wrapped line is indented, so that it cannot pass for two lines. */
export function linesOf(text: string): readonly HTMLElement[] {
  const lines = text.split('\n').map((line) => {
    const element = document.createElement('span');
    element.className = 'text-line';
    element.textContent = line;
    return element;
  });
  if (lines.length <= LINES_PER_BLOCK) return lines;
  return Array.from({ length: Math.ceil(lines.length / LINES_PER_BLOCK) }, (_, index) => {
    const block = document.createElement('span');
    block.className = 'text-block';
    block.append(...lines.slice(index * LINES_PER_BLOCK, (index + 1) * LINES_PER_BLOCK));
    return block;
  });
}

/** Says what is being done. Resolves when the page shows it, so that the next step may block. */
export type Say = (text: string) => Promise<void>;

/**
 * A button that shows next to it what its action does, and why it failed: `failed` and the error.
 */
export function button(
  label: string,
  work: (say: Say) => unknown,
  style = '',
  failed = 'Not signed',
): HTMLButtonElement {
  const element = document.createElement('button');
  element.type = 'button';
  element.className = style;
  element.textContent = label;
  element.onclick = async () => {
    element.disabled = true;
    if (element.nextElementSibling?.className === 'problem') element.nextElementSibling.remove();
    const status = paragraph('', 'working');
    status.setAttribute('role', 'status');
    const say: Say = async (text) => {
      if (!status.isConnected) element.after(status);
      status.textContent = text;
      await painted();
    };
    try {
      await work(say);
    } catch (error) {
      element.after(paragraph(`${failed}: ${describeError(error)}`, 'problem'));
    } finally {
      status.remove();
      element.disabled = false;
    }
  };
  return element;
}

/** Waits for the next frame. A page in the background has none, so it does not wait long. */
function painted(): Promise<void> {
  return new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, 200);
  });
}

/** The error in words. Browsers report with `NotAllowedError` that a passkey was not used. */
function describeError(error: unknown): string {
  if (!(error instanceof Error || error instanceof DOMException)) return String(error);
  if (error.name === 'NotAllowedError') return 'the passkey was not confirmed in time';
  return error.message;
}
