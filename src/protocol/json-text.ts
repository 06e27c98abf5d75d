const QUOTE = 0x22;
const COLON = 0x3a;
const OPENING_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/**
 * What a parsed value does not show of its JSON text: the number of members of all objects,
 * including repeated ones, and how deep the text is nested. Each member has one colon outside
 * strings.
 */
export function scanJson(text: string): { readonly members: number; readonly depth: number } {
  let [members, open, depth] = [0, 0, 0];
  let inString = false;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit === QUOTE) inString = !inString;
    else if (inString) index += unit === BACKSLASH ? 1 : 0;
    else if (unit === COLON) members += 1;
    else if (unit === OPENING_BRACKET || unit === OPENING_BRACE) depth = Math.max(depth, ++open);
    else if (unit === CLOSING_BRACKET || unit === CLOSING_BRACE) open -= 1;
  }
  return { members, depth };
}
