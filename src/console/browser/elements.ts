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

/** A button that shows an error next to it if its action fails. */
export function button(label: string, work: () => unknown, style = ''): HTMLButtonElement {
  const element = document.createElement('button');
  element.type = 'button';
  element.className = style;
  element.textContent = label;
  element.onclick = async () => {
    element.disabled = true;
    if (element.nextElementSibling?.className === 'problem') element.nextElementSibling.remove();
    try {
      await work();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      element.after(paragraph(`Not signed: ${why}`, 'problem'));
    } finally {
      element.disabled = false;
    }
  };
  return element;
}
