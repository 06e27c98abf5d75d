import { canonical } from '../protocol/canon.ts';
import type { Diff } from '../protocol/diff.ts';
import type { Approved } from '../protocol/manifest.ts';
import { renderDiff } from '../protocol/render.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import { diffOfTerminal, type Terminal } from '../protocol/terminal.ts';
import { changesOfDiff, changeTables, summarise } from './changes.ts';
import { type Html, html } from './html.ts';

/** What each kind of verdict means for the data. */
export const MEANINGS: Readonly<Record<Terminal['kind'], string>> = {
  committed: 'Done as approved',
  rejected: 'Nothing changed',
  diverged: 'What changed is not what was approved',
  indeterminate: 'It may have happened',
};

/** Whether a word names a kind of verdict. */
export function isVerdict(word: string): word is Terminal['kind'] {
  return Object.hasOwn(MEANINGS, word);
}

/** Shows the verdict in words. {@link comparedSection} shows its differences as tables. */
export function verdictSection(terminal: Terminal, links: Html = html``): Html {
  const diff = diffOfTerminal(terminal);
  const text = renderTerminal(terminal);
  const lines = diff === undefined ? text : text.replace(`\n${renderDiff(diff)}`, '');
  return html`<section class="verdict ${terminal.kind}" aria-labelledby="verdict">
<h2 id="verdict">${MEANINGS[terminal.kind]}</h2>
${lines.split('\n').map((line) => html`<p>${line}</p>`)}${links}</section>`;
}

const SHOWN = 100;

/** Compares what was approved with what happened. Differences come first. */
export function comparedSection(approved: Approved, diff: Diff | undefined): Html {
  const { effects, registration } = approved;
  if (diff === undefined) {
    const shown = effects.slice(0, SHOWN).map((effect) => ({ effect }));
    return html`<section><h2>Approved <span class="summary">${summarise(effects)}</span></h2>${changeTables(shown, registration)}</section>`;
  }
  const { extra, missing, altered } = diff;
  const other = new Set([...missing, ...altered.map((pair) => pair.approved)].map(textOf));
  const same = effects.filter((effect) => !other.has(textOf(effect)));
  const matched = same.slice(0, SHOWN).map((effect) => ({ effect, mark: 'matched' as const }));
  const counts = html`<b>${extra.length}</b> extra · <b>${missing.length}</b> missing · <b>${altered.length}</b> altered · <b>${same.length}</b> as approved`;
  return html`<section><h2>Approved and observed <span class="summary">${counts}</span></h2>
${changeTables([...changesOfDiff(diff), ...matched], registration)}</section>`;
}

function textOf({ count: _count, ...effect }: { readonly count: number }): string {
  return canonical(effect);
}
