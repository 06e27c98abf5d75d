import { Markup } from './markup.ts';

/** Both colour schemes, and paper. */
export const STYLE = new Markup(`
:root { color-scheme: light dark; --ink: #1c2024; --ground: #ffffff; --faint: #d9dde1; --good: #2b7a4b; --fair: #2f6fab; --bad: #b3261e; --plain: #8b949e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --ground: #15181b; --faint: #33393f; --good: #58b47c; --fair: #6ea8dc; --bad: #f2786f; --plain: #7d868f; } }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--faint); }
table { border-collapse: collapse; width: 100%; font-size: 13px; margin: 1rem 0; }
th, td { text-align: left; padding: .2rem .6rem; border-bottom: 1px solid var(--faint); overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.context, figcaption { color: var(--plain); font-size: 13px; }
tr.bad td, p.bad { color: var(--bad); font-weight: 600; }
figure { margin: 1rem 0; }
svg { width: 100%; height: auto; font: 11px system-ui, sans-serif; }
svg text { fill: var(--ink); }
rect.good { fill: var(--good); } rect.fair { fill: var(--fair); } rect.bad { fill: var(--bad); } rect.plain { fill: var(--plain); }
line.rule { stroke: var(--faint); } line.paper { stroke: var(--ink); stroke-width: 3; } line.bound { stroke: var(--bad); stroke-dasharray: 4 3; }
circle.ours { fill: var(--fair); } circle.theirs { fill: none; stroke: var(--ink); stroke-width: 2; } polyline.ours-line { fill: none; stroke: var(--fair); stroke-width: 2; }
@media print { body { margin: 0; max-width: none; font-size: 11px; } section { break-inside: auto; } figure, tr { break-inside: avoid; } }
`);
