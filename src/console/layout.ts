import { type Html, html } from './html.ts';

/** A section of the navigation. */
export type Section = 'inbox' | 'history' | 'operations';

/** What the layout shows around a page's content. */
export interface PageOptions {
  readonly title: string;
  readonly section: Section | undefined;
  /** How many requests are waiting, shown next to the inbox link. */
  readonly waiting: number;
  /** The last event before the page was rendered. The page's script listens for later ones. */
  readonly lastEvent: number;
  /** Who is signed in. */
  readonly user: string;
  /** Proves that a form comes from a page of this session. */
  readonly formToken: string;
  /** Shown once at the top, after an action was done or refused. */
  readonly notice?: { readonly tone: 'good' | 'bad'; readonly text: string } | undefined;
}

const SECTIONS: readonly (readonly [Section, string, string])[] = [
  ['inbox', '/', 'Inbox'],
  ['history', '/history', 'History'],
  ['operations', '/operations', 'Operations'],
];

/** Renders a whole page. Reading it needs no scripts; they only refresh it and sign. */
export function page(options: PageOptions, content: Html): string {
  const { title, section, waiting, lastEvent, user, formToken, notice } = options;
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
<body data-last-event="${lastEvent}">
<a class="skip" href="#content">Skip to content</a>
<header class="bar">
<a class="brand" href="/"><img src="/assets/icon.svg" alt="" width="20" height="20">EffectMatch</a>
<nav aria-label="Sections">${links}</nav>
<details class="user"><summary>${user}</summary>
<form method="post" action="/logout"><input type="hidden" name="form" value="${formToken}">
<button>Sign out</button> <button name="everywhere" value="yes">Sign out everywhere</button></form></details>
</header>
<main id="content">
${notice && html`<p class="notice ${notice.tone}" role="status">${notice.text}</p>`}
${content}
</main>
</body>
</html>
`.text;
}

/** A word in a coloured pill. */
export function badge(tone: BadgeTone, word: string): Html {
  return html`<span class="badge ${tone}">${word}</span>`;
}

/** The meaning of a badge's colour: neutral, done, refused, needs attention. */
export type BadgeTone = 'plain' | 'good' | 'bad' | 'warn';

/** A table with column headings. If it is too wide, it scrolls and the page does not. */
export function table(heads: readonly string[], rows: readonly Html[]): Html {
  return html`<div class="scroll" tabindex="0" role="region" aria-label="${heads.join(', ')}"><table class="plain">
<thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead><tbody>${rows}</tbody></table></div>`;
}

/** The page number that an address asks for; the first page if it names none. */
export function pageNumber(text: string | undefined): number {
  return Math.max(1, Math.trunc(Number(text ?? 1)) || 1);
}

/** A time relative to now, with the exact time in the tooltip. */
export function moment(ms: number, nowMs: number): Html {
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
