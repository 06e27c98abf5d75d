import type { Outlet, Survey } from '../../protocol/boundary.ts';
import type { Definitions } from './definitions.ts';

/**
 * The definitions behind each survey. An entry is dropped when its outlet list is
 * garbage-collected.
 */
const surveyed = new WeakMap<readonly Outlet[], Definitions>();

/** Remembers the definitions behind a survey, so that a later survey can be compared with it. */
export function keepDefinitions(outlets: readonly Outlet[], definitions: Definitions): void {
  surveyed.set(outlets, definitions);
}

/** Lists each definition and outlet that differs between two surveys, before and after. */
export async function explainChange(before: Survey, after: Survey): Promise<readonly string[]> {
  const [was, is] = [surveyed.get(before.outlets), surveyed.get(after.outlets)];
  const defined = was && is ? compareTexts(was.texts, is.texts) : [];
  return [...defined, ...compareTexts(readOutlets(before), readOutlets(after))];
}

type Texts = ReadonlyMap<string, string>;

function readOutlets({ outlets }: Survey): Texts {
  return new Map(outlets.map(({ outlet, disposition, by }) => [outlet, `${disposition}, ${by}`]));
}

function compareTexts(before: Texts, after: Texts): readonly string[] {
  const changes: string[] = [];
  for (const [name, text] of after) {
    const old = before.get(name);
    if (old === undefined) changes.push(`${name}: not there → there`);
    else if (old !== text) changes.push(`${name}: ${showChange(old, text)}`);
  }
  for (const name of before.keys()) if (!after.has(name)) changes.push(`${name}: there → gone`);
  return changes;
}

const SHOWN = 80;

/** Shows both texts, starting shortly before the first difference. */
function showChange(old: string, text: string): string {
  const same = [...old].findIndex((character, index) => character !== text[index]);
  const from = Math.max(0, (same < 0 ? old.length : same) - SHOWN / 4);
  const show = (whole: string) => {
    const part = whole.slice(from, from + SHOWN);
    return JSON.stringify(`${from > 0 ? '…' : ''}${part}${whole.length > from + SHOWN ? '…' : ''}`);
  };
  return `${show(old)} → ${show(text)}`;
}
