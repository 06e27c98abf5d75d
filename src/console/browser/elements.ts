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

/** One element per line. A wrapped line is indented, so that it cannot pass for two lines. */
export function linesOf(text: string): readonly HTMLElement[] {
  return text.split('\n').map((line) => {
    const element = document.createElement('span');
    element.className = 'text-line';
    element.textContent = line;
    return element;
  });
}

/** Says what is being done. Resolves when the page shows it, so that the next step may block. */
export type Say = (text: string) => Promise<void>;

/** A button that shows next to it what its action does, and an error if it fails. */
export function button(label: string, work: (say: Say) => unknown, style = ''): HTMLButtonElement {
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
      const why = error instanceof Error ? error.message : String(error);
      element.after(paragraph(`Not signed: ${why}`, 'problem'));
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
