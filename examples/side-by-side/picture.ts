/** What one run has shown; nothing in the picture comes from elsewhere. */
export interface Shown {
  readonly statement: string;
  readonly theirs: { readonly answer: string; readonly database: readonly string[] };
  readonly ours: {
    readonly status: string;
    readonly diff: string;
    readonly database: readonly string[];
  };
}

const WIDTH = 1000;
const LEFT = { x: 20, width: 280 };
const RIGHT = { x: 320, width: 660 };
const LINE = 19;

const STYLE = `
    text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2933; white-space: pre }
    .plain { font-family: system-ui, Segoe UI, Helvetica, Arial, sans-serif }
    .title { font-size: 16px; font-weight: 600 } .faint { fill: #52606d }
    .card { fill: #ffffff; stroke: #9aa5b1 } .box { fill: #f1f4f8; stroke: #9aa5b1 }
    .bad { fill: #fde2e1; stroke: #c0392b } .good { fill: #dcf5e4; stroke: #2f855a }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 } .faint { fill: #9fb0c0 }
      .card { fill: #0d1117; stroke: #4a5562 } .box { fill: #1b222c; stroke: #4a5562 }
      .bad { fill: #4b1d1b; stroke: #f08a80 } .good { fill: #12351f; stroke: #6fcf97 }
    }`;

/** Draws a run: one statement, what each server answers, and what is in the database then. */
export function drawPicture({ statement, theirs, ours }: Shown): string {
  const told = [`${ours.status}: rolled back`, ...ours.diff.split('\n')];
  const lines = Math.max(told.length, 1);
  const answers = 118;
  const databases = answers + boxHeight(lines) + 40;
  const height = databases + boxHeight(theirs.database.length) + 22;
  const parts = [
    box('card', { x: 0.5, y: 0.5, width: WIDTH - 1, height: height - 1 }),
    words(LEFT.x, 32, 'plain title', 'One statement, two MCP servers'),
    words(LEFT.x, 54, '', statement),
    words(
      LEFT.x + 380,
      54,
      'plain faint',
      'A trigger also charges the vendor and deletes the reminder.',
    ),
    words(LEFT.x, 82, 'plain title', 'DBHub'),
    words(RIGHT.x, 82, 'plain title', 'EffectMatch, with the invoice approved and nothing else'),
    ...panel(LEFT, answers, {
      title: 'the agent is told',
      kind: 'good',
      lines: [theirs.answer],
      room: lines,
    }),
    ...panel(RIGHT, answers, { title: 'the agent is told', kind: 'bad', lines: told, room: lines }),
    ...panel(LEFT, databases, { title: 'the database then', kind: 'bad', lines: theirs.database }),
    ...panel(RIGHT, databases, { title: 'the database then', kind: 'good', lines: ours.database }),
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">
  <title>One update through DBHub and through EffectMatch</title>
  <desc>DBHub answers success with one row, and a trigger has charged the vendor and deleted a reminder. EffectMatch rolls it back and names both.</desc>
  <style>${STYLE}
  </style>
${parts.map((part) => `  ${part}\n`).join('')}</svg>
`;
}

interface Column {
  readonly x: number;
  readonly width: number;
}

interface Panel {
  readonly title: string;
  readonly kind: 'good' | 'bad';
  readonly lines: readonly string[];
  /** Lines to leave room for, if there are fewer. */
  readonly room?: number;
}

function panel(
  { x, width }: Column,
  y: number,
  { title, kind, lines, room = lines.length }: Panel,
): string[] {
  return [
    words(x + 2, y - 7, 'plain faint', title),
    box(kind, { x, y, width, height: boxHeight(room) }),
    ...lines.map((line, index) => words(x + 12, y + 24 + index * LINE, '', line)),
  ];
}

function boxHeight(lines: number): number {
  return lines * LINE + 20;
}

interface Area {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

function box(kind: string, { x, y, width, height }: Area): string {
  const place = `x="${x}" y="${y}" width="${width}" height="${height}"`;
  return `<rect class="${kind}" ${place} rx="8"/>`;
}

function words(x: number, y: number, kind: string, text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text class="${kind}" x="${x}" y="${y}">${escaped}</text>`;
}
