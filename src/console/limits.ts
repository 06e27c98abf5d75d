import type { Policy } from '../protocol/frame.ts';
import { describeWindow } from '../protocol/hours.ts';
import type { Proposal } from '../protocol/license.ts';
import { findExceeded } from '../protocol/limits.ts';
import { showText } from '../protocol/render-text.ts';
import { type Html, html } from './html.ts';
import { badge } from './layout.ts';
import { largestWritten } from './numbers.ts';

/** Compares a proposal with the limits of each issuer who could sign it. */
export function limitsCard(
  { draft, approved }: Proposal,
  policy: Policy,
  signers: readonly string[],
): Html {
  const cards = signers.flatMap((name) => {
    const issuer = policy.issuers[name];
    if (issuer === undefined) return [];
    const { limits = {}, second } = issuer;
    const exceeded = findExceeded(limits, draft, approved);
    const mayNot = !issuer.may.includes(draft.adapter) || !issuer.sources.includes(draft.source);
    const state =
      mayNot || exceeded ? badge('bad', 'may not sign this') : badge('good', 'within limits');
    const rows = limitRows(limits, approved.effects);
    return [
      html`<h3>${name} ${state}</h3>
${exceeded && html`<p class="aside">${showText(exceeded.detail)}</p>`}
${rows.length > 0 && html`<ul class="limits">${rows}</ul>`}
${second && html`<p class="aside">A second signature is required, by ${second.join(' or ')}.</p>`}`,
    ];
  });
  if (cards.length === 0) return html``;
  return html`<section class="card"><h2>Limits</h2>${cards}</section>`;
}

function limitRows(
  limits: NonNullable<Policy['issuers'][string]['limits']>,
  effects: Proposal['approved']['effects'],
): readonly Html[] {
  const { maxEffects, maxRows = {}, amounts = [], hours = [], maxLifetimeMs } = limits;
  const count = (target?: string) =>
    effects.reduce(
      (sum, effect) => sum + (target === undefined || effect.target === target ? effect.count : 0),
      0,
    );
  const largest = largestWritten(effects);
  return [
    ...(maxEffects === undefined ? [] : [row('changes', count(), maxEffects)]),
    ...Object.entries(maxRows).map(([target, max]) => row(`rows of ${target}`, count(target), max)),
    ...amounts.flatMap(({ target, column, max }) => {
      const found = largest.get(`${target}.${column}`);
      return found === undefined ? [] : [row(`${target}.${column}`, found, max)];
    }),
    ...hours.map((window) => html`<li>runs only ${describeWindow(window)}</li>`),
    ...(maxLifetimeMs === undefined
      ? []
      : [html`<li>valid for at most ${maxLifetimeMs / 60_000} minutes</li>`]),
  ];
}

function row(what: string, found: number, max: number | string): Html {
  return html`<li>${what}: <b>${grouped(String(found))}</b> of ${grouped(String(max))}</li>`;
}

/** Writes 10000 as 10,000. */
function grouped(number: string): string {
  const [whole = '', fraction] = number.split('.');
  const parts = whole.replace(/\B(?=(?:\d{3})+$)/g, ',');
  return fraction === undefined ? parts : `${parts}.${fraction}`;
}
