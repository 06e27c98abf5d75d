import { Markup } from './markup.ts';

/** Styles for both colour schemes, narrow screens and print. */
export const STYLE = new Markup(`
:root { color-scheme: light dark; --ink: #1c2024; --soft: #5b6570; --ground: #ffffff; --panel: #f5f6f8; --faint: #dde1e5; --good: #2b7a4b; --fair: #2f6fab; --bad: #b3261e; --warn: #b7791f; --plain: #8b949e; --s0: #c4572e; --s1: #2f6fab; --s2: #8a63b3; --s3: #b7971f; --s4: #8b949e; --s5: #2b7a4b; --s6: #b0457b; --s7: #3a8f96; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --soft: #a2abb4; --ground: #15181b; --panel: #1d2125; --faint: #33393f; --good: #58b47c; --fair: #6ea8dc; --bad: #f2786f; --warn: #e0a94a; --plain: #7d868f; --s0: #e8825b; --s1: #6ea8dc; --s2: #b093d8; --s3: #d8bb55; --s4: #7d868f; --s5: #58b47c; --s6: #dd83ae; --s7: #66bcc3; } }
* { box-sizing: border-box; }
body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 64rem; margin: 1.2rem auto; padding: 0 1rem; }
body { counter-reset: figure; } h1 { font-size: 1.5rem; margin: 0; } header p { margin: .2rem 0 .8rem; color: var(--soft); }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .4rem; border-bottom: 1px solid var(--faint); }
h2.part { margin-top: 3rem; } h3 { font-size: 1rem; margin: 1.8rem 0 .3rem; } a { color: var(--fair); } code { font-size: 12px; background: var(--panel); padding: .1rem .3rem; border-radius: 3px; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(7.9rem, 1fr)); gap: .6rem; }
.tile { background: var(--panel); border-left: 4px solid var(--plain); border-radius: 4px; padding: .5rem .6rem; }
.tile { color: inherit; text-decoration: none; } .tile b { display: block; font-size: 1.15rem; white-space: nowrap; font-variant-numeric: tabular-nums; } .tile span { display: block; font-size: 12px; line-height: 1.35; color: var(--soft); }
.tile.good { border-color: var(--good); } .tile.bad { border-color: var(--bad); }
.groups { display: grid; grid-template-columns: repeat(auto-fit, minmax(17rem, 1fr)); gap: 0 1.6rem; margin-bottom: 1rem; } .groups h3 { margin: .6rem 0 .2rem; font-size: 13px; } .groups h3 a { color: var(--ink); text-decoration: none; }
.studies { list-style: none; margin: 0; padding: 0; font-size: 13px; }
.studies li { display: grid; grid-template-columns: 8.6rem 1fr; gap: .6rem; align-items: center; padding: 1px 0; }
.bar { display: flex; gap: 1px; height: 15px; border-radius: 2px; overflow: hidden; } .bar i { flex-basis: 0; min-width: 1.3rem; font: 10px/15px system-ui, sans-serif; text-align: center; color: var(--ground); overflow: hidden; }
.bar .good, .key.good::before { background: var(--good); } .bar .fair, .key.fair::before { background: var(--fair); } .bar .bad, .key.bad::before { background: var(--bad); } .bar .plain, .key.plain::before { background: var(--plain); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: .8rem 0 .2rem; font-size: 12px; color: var(--soft); }
.key::before { content: ''; display: inline-block; width: .7rem; height: .7rem; margin-right: .35rem; border-radius: 2px; background: var(--plain); }
.k0::before, rect.s0 { background: var(--s0); fill: var(--s0); } .k1::before, rect.s1 { background: var(--s1); fill: var(--s1); } .k2::before, rect.s2 { background: var(--s2); fill: var(--s2); } .k3::before, rect.s3 { background: var(--s3); fill: var(--s3); } .k4::before, rect.s4 { background: var(--s4); fill: var(--s4); } .k5::before, rect.s5 { background: var(--s5); fill: var(--s5); } .k6::before, rect.s6 { background: var(--s6); fill: var(--s6); } .k7::before, rect.s7 { background: var(--s7); fill: var(--s7); }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 12.5px; margin: .6rem 0; }
th, td { text-align: left; vertical-align: top; padding: .18rem .6rem; border-bottom: 1px solid var(--faint); } th { color: var(--soft); font-weight: 600; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.context, .state, figcaption { color: var(--soft); font-size: 12.5px; } section p { margin: .25rem 0; } summary { cursor: pointer; font-size: 13px; color: var(--fair); margin-top: .6rem; }
tr.bad td:last-child, tr.bad td:nth-child(2), p.bad { color: var(--bad); font-weight: 600; }
figure { margin: 1rem 0; } figcaption { color: var(--ink); } figcaption::before { counter-increment: figure; content: 'Figure ' counter(figure) '. '; font-weight: 600; } .plot, .wide { background: linear-gradient(to right, var(--ground) 40%, transparent) left / 2.5rem 100% local no-repeat, linear-gradient(to left, var(--ground) 40%, transparent) right / 2.5rem 100% local no-repeat, linear-gradient(to right, var(--faint), transparent) left / .9rem 100% no-repeat, linear-gradient(to left, var(--faint), transparent) right / .9rem 100% no-repeat; } .plot { overflow-x: auto; } .plot svg { display: block; width: 100%; min-width: 640px; height: auto; font: 11.5px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .small { font-size: 10.5px; }
rect.cell.good { fill: var(--good); } rect.cell.fair { fill: var(--fair); } rect.cell.bad { fill: var(--bad); } rect.cell.warn { fill: var(--warn); } rect.cell.plain { fill: var(--plain); } rect.cell { fill-opacity: .24; stroke-opacity: .7; stroke-width: 1; }
rect.cell.good { stroke: var(--good); } rect.cell.fair { stroke: var(--fair); } rect.cell.bad { stroke: var(--bad); fill-opacity: .6; } rect.cell.warn { stroke: var(--warn); } rect.cell.plain { stroke: var(--plain); }
line.rule { stroke: var(--faint); } polygon.reach { fill: var(--panel); stroke: none; } line.edge { stroke: var(--soft); stroke-dasharray: 5 4; } line.paper { stroke: var(--ink); stroke-width: 2.5; }
.l0 { stroke: var(--s0); } .l1 { stroke: var(--s1); } .l2 { stroke: var(--s2); } .l3 { stroke: var(--s3); } .l4 { stroke: var(--s4); } .l5 { stroke: var(--s5); } .l6 { stroke: var(--s6); } .l7 { stroke: var(--s7); }
g[class^=l] rect { stroke: none; } g[class^=l] text { stroke: none; } line.middle { stroke: var(--ink); stroke-width: 2; } polyline { fill: none; stroke-width: 2; } circle.full { fill: var(--ground); stroke-width: 2; } .l0 circle.dot { fill: var(--s0); } .l1 circle.dot { fill: var(--s1); } .l2 circle.dot { fill: var(--s2); } .l3 circle.dot { fill: var(--s3); } circle.hollow { fill: none; stroke-width: 2.5; } circle.paper { fill: var(--ground); stroke: var(--ink); stroke-width: 2; }
@media screen and (max-width: 40rem) { .wide table { min-width: 38rem; } th, td { padding: .18rem .4rem; } }
@media print { .plot, .wide { background: none; } :root { color-scheme: light; } body { margin: 0; max-width: none; font-size: 11px; } figure, tr, .tile, .studies li { break-inside: avoid; } h2, h3, figcaption { break-after: avoid; } .plot svg { min-width: 0; } .tile, .bar i, .key::before { print-color-adjust: exact; } details::details-content { content-visibility: visible; height: auto; } }
@media print { .tiles { grid-template-columns: repeat(auto-fit, minmax(5.2rem, 1fr)); } .tile { padding: .3rem .4rem; } .tile b { font-size: 12px; } .tile span, .legend { font-size: 9px; } .groups { grid-template-columns: repeat(3, 1fr); } .studies { font-size: 9px; } .studies li { grid-template-columns: 5.6rem 1fr; gap: .3rem; } table { font-size: 9px; } th, td { padding: .1rem .4rem; } td:last-child { white-space: nowrap; } figcaption, .context { font-size: 10px; } .state, code { font-size: 9px; } }
`);
