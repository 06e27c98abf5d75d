import type { RequestState } from '../requests/request.ts';
import { type Html, html } from './html.ts';
import type { Subject } from './visible.ts';
import type { Shown, Visit } from './visit.ts';

/** A section of the navigation. */
export type Section = 'inbox' | 'history' | 'operations';

const SECTIONS: readonly (readonly [Section, string, string])[] = [
  ['inbox', '/', 'Inbox'],
  ['history', '/history', 'History'],
  ['operations', '/operations', 'Operations'],
];

/** Renders a whole page. Reading it needs no scripts; they only refresh it and sign. */
export function wholePage(
  visit: Visit,
  { title, section, content }: Shown,
  waiting: number,
): string {
  const { c, person, said } = visit;
  const links = SECTIONS.map(([name, path, label]) => {
    const count = name === 'inbox' && waiting > 0 && html`<span class="count">${waiting}</span>`;
    const current = name === section && html` aria-current="page"`;
    return html`<a href="${path}"${current}>${label}${count}</a>`;
  });
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · EffectMatch</title>
<link rel="stylesheet" href="/assets/console.css">
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<script src="/assets/console.js" defer></script>
<script src="/assets/signer.js" type="module"></script>
</head>
<body data-last-event="${c.get('lastEvent')}">
<a class="skip" href="#content">Skip to content</a>
<header class="bar">
<a class="brand" href="/"><img src="/assets/icon.svg" alt="" width="20" height="20">EffectMatch</a>
<nav aria-label="Sections">${links}</nav>
<details class="user"><summary>${person.name}</summary>
<form method="post" action="/logout">${tokenField(visit)}
<button>Sign out</button> <button name="everywhere" value="yes">Sign out everywhere</button></form></details>
</header>
<main id="content">
${said && html`<p class="notice ${said.notice.tone}" role="status">${said.notice.text}</p>`}
${content}
</main>
</body>
</html>
`.text;
}

/** The hidden field with which a form proves that it comes from a page of this session. */
export function tokenField({ formToken }: Pick<Visit, 'formToken'>): Html {
  return html`<input type="hidden" name="form" value="${formToken}">`;
}

/** A word in a coloured pill. */
export function badge(tone: BadgeTone, word: string): Html {
  return html`<span class="badge ${tone}">${word}</span>`;
}

const TONES: Readonly<Record<RequestState, BadgeTone>> = {
  pending: 'warn',
  approved: 'plain',
  running: 'plain',
  committed: 'good',
  rejected: 'bad',
  diverged: 'bad',
  indeterminate: 'warn',
  declined: 'bad',
  expired: 'plain',
  withdrawn: 'plain',
  stale: 'warn',
};

/** The state of a request, or a verdict, as a coloured word. */
export function stateBadge(state: RequestState): Html {
  return badge(TONES[state], state === 'pending' ? 'waiting' : state);
}

/** The meaning of a badge's colour: neutral, done, refused, needs attention. */
export type BadgeTone = 'plain' | 'good' | 'bad' | 'warn';

/** Content that scrolls if it is too wide, so that the page does not. */
export function scrolling(label: string, content: Html): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${label}">${content}</div>`;
}

/** A table with column headings. */
export function table(heads: readonly string[], rows: readonly Html[]): Html {
  return scrolling(
    heads.join(', '),
    html`<table class="plain">
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead><tbody>${rows}</tbody></table>`,
  );
}

/** The page number that an address asks for; the first page if it names none. */
export function pageNumber({ c }: Visit): number {
  return Math.max(1, Math.trunc(Number(c.req.query('part') ?? 1)) || 1);
}

/** Links to the pages before and after one of several; `query` is the rest of the address. */
export function pageLinks(
  { part, parts }: { readonly part: number; readonly parts: number },
  place: string,
  query: Readonly<Record<string, string>>,
  [before, after]: readonly [string, string],
): Html {
  if (parts <= 1) return html``;
  const link = (to: number, label: string) => {
    const address = `${place}?${new URLSearchParams({ ...query, part: String(to) }).toString()}`;
    return to >= 1 && to <= parts && html`<a href="${address}">${label}</a>`;
  };
  return html`<p class="pages">${link(part - 1, before)} page ${part} of ${parts} ${link(part + 1, after)}</p>`;
}

/** What a request or a verdict is called: its operation, or the adapter that it changes. */
export function subjectName({ operation, adapter }: Subject): string {
  return operation ?? `Change in ${adapter}`;
}

/** A time relative to now, with the exact time in the tooltip. */
export function moment(at: string, { nowMs }: Pick<Visit, 'nowMs'>): Html {
  const ms = Date.parse(at);
  const exact = new Date(ms).toISOString();
  return html`<time datetime="${exact}" title="${exact}">${describeDistance(ms, nowMs)}</time>`;
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
];

function describeDistance(ms: number, nowMs: number): string {
  const distance = Math.abs(nowMs - ms);
  if (distance < 1000) return 'now';
  const [size, unit] = UNITS.find(([length]) => distance >= length) ?? [1000, 's'];
  const amount = `${Math.round(distance / size)} ${unit}`;
  return ms <= nowMs ? `${amount} ago` : `in ${amount}`;
}
