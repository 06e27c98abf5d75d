import { showText } from '../protocol/render-text.ts';
import { type GraphNode, graphOf } from '../workflow/draw.ts';
import { RunRecords } from '../workflow/records.ts';
import {
  type HandoffReport,
  nextCommand,
  type ReportedNode,
  reportOf,
} from '../workflow/report.ts';
import { findRun, type RunStatus } from '../workflow/run.ts';
import { isDone, isFailed, type NodeState } from '../workflow/state.ts';
import { type Html, html } from './html.ts';
import { type BadgeTone, badge, moment, scrolling, table } from './layout.ts';
import type { Shown, Visit } from './visit.ts';

const RUNS_SHOWN = 20;
const RECENT = 5;
const NODES_SHOWN = 100;

/** Where the pages about workflow runs are. Their only source is the ledger. */
export const RUNS_PLACE = '/operations/workflows';

/** The newest runs, for the operations page; nothing if no run has started. */
export async function recentRuns(visit: Visit): Promise<Html> {
  const runs = await listRuns(visit);
  if (runs.length === 0) return html``;
  const label = runs.length > RECENT ? `All ${runs.length} runs` : 'All runs';
  return html`<section><h2>Workflows</h2>${await runTable(visit, runs.slice(0, RECENT))}<p><a href="${RUNS_PLACE}">${label}</a></p></section>`;
}

/** The names of the runs, newest first. */
async function listRuns({ runtime: { ledgers } }: Visit): Promise<readonly string[]> {
  return (await new RunRecords(ledgers).list()).toReversed();
}

const RUN_TONES: Readonly<Record<RunStatus, BadgeTone>> = {
  running: 'plain',
  waiting: 'warn',
  done: 'good',
  failed: 'bad',
  cancelled: 'bad',
};

/** Lists all runs. */
export async function runsPage(visit: Visit): Promise<Shown> {
  const skipped = Math.max(0, Math.trunc(Number(visit.c.req.query('skip') ?? 0)) || 0);
  const runs = await listRuns(visit);
  const shown = runs.slice(skipped, skipped + RUNS_SHOWN);
  const rest = runs.length - skipped - shown.length;
  const content = html`<p class="crumbs"><a href="/operations">Operations</a></p><h1>Workflows</h1>
${shown.length === 0 ? html`<p class="empty">No run has started.</p>` : html`<section>${await runTable(visit, shown)}</section>`}
${rest > 0 && html`<p><a href="${RUNS_PLACE}?skip=${skipped + shown.length}">${rest} earlier runs</a></p>`}`;
  return { title: 'Workflows', section: 'operations', content };
}

/** Lists runs with the length of each list in their handoff reports. */
async function runTable(visit: Visit, runs: readonly string[]): Promise<Html> {
  const views = await Promise.all(runs.map((run) => findRun(visit.runtime.ledgers, run)));
  const rows = views.map((view) => {
    const { workflow, run, status, durable, notDone, waiting, needsResolution } = reportOf(view);
    const numbers = [durable, notDone, waiting, needsResolution].map(({ length }) => length);
    return html`<tr><td>${badge(RUN_TONES[status], status)}</td><td><a href="${RUNS_PLACE}/${run}">${run}</a></td><td>${workflow}</td>
${numbers.map((number) => html`<td>${number}</td>`)}<td>${moment(view.record.startedAt, visit)}</td></tr>`;
  });
  return table(['Status', 'Run', 'Workflow', ...Object.values(TITLES), 'Started'], rows);
}

/** Shows one run: its graph, and what a person who takes over must know. */
export async function runPage(visit: Visit): Promise<Shown> {
  const view = await findRun(visit.runtime.ledgers, visit.c.req.param('run') ?? '');
  const report = reportOf(view);
  const { run, workflow, revision, status, stop } = report;
  const next = nextCommand(report);
  const content = html`<p class="crumbs"><a href="/operations">Operations</a> · <a href="${RUNS_PLACE}">Workflows</a></p>
<div class="title"><h1>${run}</h1>${badge(RUN_TONES[status], status)}</div>
<p class="aside">${workflow} · revision ${revision} · started ${moment(view.record.startedAt, visit)}</p>
${stop !== undefined && html`<p class="notice bad">Stopped before anything began: ${showText(stop)}</p>`}
<section><h2>Graph</h2>${scrolling('graph', drawGraph(graphOf(view)))}</section>
${Object.entries(TITLES).map(([list, title]) => reportSection(title, report[list as keyof typeof TITLES]))}
${next !== undefined && html`<section><h2>Next</h2><pre class="command">${next}</pre></section>`}`;
  return { title: run, section: 'operations', content };
}

const TITLES = {
  durable: 'Durable',
  notDone: 'Not done',
  waiting: 'Waiting',
  needsResolution: 'Needs resolution',
} as const satisfies Partial<Record<keyof HandoffReport, string>>;

/** In these states the ledger has no record of the node's occurrence. */
const UNTRIED: readonly NodeState[] = ['waiting', 'unapproved', 'approved', 'blocked', 'cancelled'];

function reportSection(
  title: string,
  nodes: readonly (ReportedNode & { readonly for?: string })[],
): Html {
  if (nodes.length === 0) return html``;
  const rows = nodes.slice(0, NODES_SHOWN).map((node) => {
    const { instance, state, detail, occurrence, for: whom } = node;
    const why = whom === undefined ? showText(detail ?? '') : `for ${whom}`;
    const wasTried = occurrence !== undefined && !UNTRIED.includes(state);
    const link = wasTried && html`<a href="/history/${occurrence}">${occurrence.slice(0, 12)}…</a>`;
    return html`<tr><td>${instance}</td><td>${badge(toneOf(state), state)}</td><td>${why}</td><td>${link}</td></tr>`;
  });
  const rest = nodes.length - rows.length;
  return html`<section><h2>${title} (${nodes.length})</h2>${table(['Node', 'State', 'Why', 'Occurrence'], rows)}
${rest > 0 && html`<p class="aside">${rest} more; <code>effectmatch workflow report --json</code> lists all</p>`}</section>`;
}

function toneOf(state: NodeState): BadgeTone {
  if (isDone(state)) return 'good';
  if (isFailed(state)) return 'bad';
  return state === 'unapproved' || state === 'released' ? 'warn' : 'plain';
}

const BOX = { width: 210, height: 46 };
const GAP = { x: 60, y: 16 };
const MARGIN = 16;
/** The height that a line takes up in each column it crosses. */
const LINE_HEIGHT = 8;
const NAME_SHOWN = 24;
const COUNTS_SHOWN = 30;

interface Point {
  readonly x: number;
  readonly y: number;
}

/** A line from a node to a later one. `via` names its places in the columns between them. */
interface Edge {
  readonly from: GraphNode;
  readonly to: string;
  readonly via: readonly string[];
}

/** Draws the graph from left to right, one column per level. The report repeats its text. */
function drawGraph(nodes: readonly GraphNode[]): Html {
  const edges = edgesOf(nodes);
  const { places, width, height } = arrange(nodes, edges);
  const words = nodes.map(({ name, state }) => `${name}: ${state}`).join(', ');
  return html`<svg class="graph" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-label="${words}">
${edges.map((edge) => drawEdge(edge, places))}${nodes.map((node) => drawNode(node, placeOf(places, node.name)))}</svg>`;
}

/** The lines to draw. Indirect predecessors get no line: the path through others implies them. */
function edgesOf(nodes: readonly GraphNode[]): readonly Edge[] {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const ancestors = new Map<string, ReadonlySet<string>>();
  const edges: Edge[] = [];
  for (const { name: to, before, level } of nodes) {
    const implied = new Set(before.flatMap((one) => [...(ancestors.get(one) ?? [])]));
    ancestors.set(to, new Set([...implied, ...before]));
    for (const name of before.filter((one) => !implied.has(one))) {
      const from = byName.get(name);
      if (from === undefined) continue;
      // Node names contain no spaces, so these names cannot clash with them.
      const via = Array.from({ length: level - from.level - 1 }, (_, at) => `${name} ${to} ${at}`);
      edges.push({ from, to, via });
    }
  }
  return edges;
}

/** Places each node and each line crossing a column. A place is the middle of its left side. */
function arrange(nodes: readonly GraphNode[], edges: readonly Edge[]) {
  const columns = [...Map.groupBy(nodes, ({ level }) => level).values()].map((column) =>
    column.map(({ name }) => ({ name, height: BOX.height })),
  );
  for (const { from, via } of edges)
    for (const [at, name] of via.entries())
      columns[from.level + 1 + at]?.push({ name, height: LINE_HEIGHT });
  const heightOf = (column: readonly { readonly height: number }[]) =>
    column.reduce((sum, { height }) => sum + height + GAP.y, -GAP.y);
  const tallest = Math.max(...columns.map(heightOf));
  const places = new Map<string, Point>();
  for (const [level, column] of columns.entries()) {
    const x = MARGIN + level * (BOX.width + GAP.x);
    let top = MARGIN + (tallest - heightOf(column)) / 2;
    for (const { name, height } of column) {
      places.set(name, { x, y: top + height / 2 });
      top += height + GAP.y;
    }
  }
  const width = 2 * MARGIN + columns.length * (BOX.width + GAP.x) - GAP.x;
  return { places, width, height: 2 * MARGIN + tallest };
}

function placeOf(places: ReadonlyMap<string, Point>, name: string): Point {
  return places.get(name) ?? { x: 0, y: 0 };
}

function drawEdge({ from, to, via }: Edge, places: ReadonlyMap<string, Point>): Html {
  let last = placeOf(places, from.name);
  let path = `M${last.x + BOX.width} ${last.y}`;
  for (const name of [...via, to]) {
    const next = placeOf(places, name);
    const middle = next.x - GAP.x / 2;
    path += ` H${last.x + BOX.width} C${middle} ${last.y} ${middle} ${next.y} ${next.x} ${next.y}`;
    last = next;
  }
  return html`<path d="${path}"/>`;
}

function drawNode({ name, state, counts, before }: GraphNode, { x, y }: Point): Html {
  const after = before.length === 0 ? '' : `, after ${before.join(', ')}`;
  return html`<g class="${toneOf(state)}"><title>${name}: ${counts}${after}</title>
<rect x="${x}" y="${y - BOX.height / 2}" width="${BOX.width}" height="${BOX.height}" rx="8"/>
<text x="${x + 12}" y="${y - 3}" class="name">${shorten(name, NAME_SHOWN)}</text>
<text x="${x + 12}" y="${y + 14}">${shorten(counts, COUNTS_SHOWN)}</text></g>`;
}

function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
