/** A paragraph of plain text. */
export function paragraph(text: string, style = 'aside'): HTMLElement {
  const element = document.createElement('p');
  element.className = style;
  element.textContent = text;
  return element;
}

/** Text in lines. */
export function preformatted(text: string): HTMLElement {
  const element = document.createElement('pre');
  element.append(...linesOf(text));
  return element;
}

/** Each line by itself: where a long one wraps, it is indented and cannot pass for another line. */
export function linesOf(text: string): readonly HTMLElement[] {
  return text.split('\n').map((line) => {
    const element = document.createElement('span');
    element.className = 'text-line';
    element.textContent = line;
    return element;
  });
}

/** A button whose failure is shown next to it. */
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
