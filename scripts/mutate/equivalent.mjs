// The mutants that are listed in equivalent.json, found again by the text of their place.
import { readFileSync } from 'node:fs';

const LIST = 'scripts/mutate/equivalent.json';

/**
 * The list, and the entry of a mutant. `texts` has the sources by file. Neither edits elsewhere nor
 * a formatter matter.
 */
export function readEquivalent(texts) {
  const entries = JSON.parse(readFileSync(LIST, 'utf8'));
  const squeezed = new Map([...texts].map(([file, text]) => [file, squeeze(text)]));
  const isAt = ({ file, kind, line, original }, mutant) => {
    if (
      file !== mutant.file ||
      kind !== mutant.kind ||
      squeeze(original) !== squeeze(mutant.original)
    )
      return false;
    const at = squeeze(texts.get(file).slice(0, mutant.start)).length;
    return placesOf(squeezed.get(file), squeeze(line)).some(
      ([start, end]) => start <= at && at < end,
    );
  };
  return { entries, entryOf: (mutant) => entries.find((entry) => isAt(entry, mutant)) };
}

/** Without what a formatter decides: blanks, line ends, and the comma after the last of a list. */
function squeeze(text) {
  return text.replace(/\s+/g, '').replace(/,(?=[)\]}])/g, '');
}

function placesOf(text, part) {
  const places = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + 1))
    places.push([at, at + part.length]);
  return places;
}
