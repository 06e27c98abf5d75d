// Tables in the docs in which every cell is one figure, or several separated by slashes.
import { findPublished, type PublishedStudy } from '../published.ts';
import { showValue } from './verdict.ts';

interface QuotedGrid {
  readonly study: string;
  readonly head: readonly string[];
  /** The row's label, then the names of the figures in each column. */
  readonly rows: readonly (readonly [words: string, ...columns: (readonly string[])[]])[];
}

const FAULTS = {
  a: ['hidden extra write', 'missing row', 'altered value'],
  b: ['omit', 'duplicate', 'alter value', 'extra field'],
  c: ['omit', 'duplicate'],
};

type Part = keyof typeof FAULTS;

function wrongIn(part: Part, condition: string): readonly string[] {
  return FAULTS[part].map((fault) => `(${part}) ${condition}: ${fault}, wrong commit`);
}

function rightIn(part: Part, condition: string): readonly string[] {
  return [`(${part}) ${condition}: clean, right state`];
}

const OUTCOMES: QuotedGrid = {
  study: 'public-outcomes',
  head: ['', 'direct', 'call-level rules / error-reject', 'EffectMatch', 'no comparison'],
  rows: [
    [
      '(a) 3 MCPMark tasks: clean, of 9',
      ...['direct', 'call-level rules', 'EffectMatch'].map((one) => rightIn('a', one)),
      [],
    ],
    [
      `${FAULTS.a.join(' / ')}, wrong commits`,
      ...['direct', 'call-level rules', 'EffectMatch'].map((one) => wrongIn('a', one)),
      [],
    ],
    [
      '(b) 12 STATE tasks: clean, of 36',
      ...['direct', 'error-reject', 'EffectMatch'].map((one) => rightIn('b', one)),
      [],
    ],
    [
      `${FAULTS.b.join(' / ')}, wrong commits`,
      ...['direct', 'error-reject', 'EffectMatch'].map((one) => wrongIn('b', one)),
      [],
    ],
    [
      'harmless duplicates, of 27: blocked; committed',
      [],
      ['(b) error-reject: harmless duplicate, blocked'],
      ['(b) EffectMatch: harmless duplicate, committed'],
      [],
    ],
    [
      '(c) 206 STATE tasks: clean, of 618',
      ...['direct', 'error-reject', 'EffectMatch', 'no comparison'].map((one) => rightIn('c', one)),
    ],
    [
      `${FAULTS.c.join(' / ')}, wrong commits`,
      ...['direct', 'error-reject', 'EffectMatch', 'no comparison'].map((one) => wrongIn('c', one)),
    ],
  ],
};

const ENDS = ['correct state', 'terminal', 'released', 'released once, after our recovery'];

const RECOVERY: QuotedGrid = {
  study: 'recovery',
  head: ['of 90', ...ENDS],
  rows: [
    'normal',
    'exit after staging',
    'exit after state save, before terminal',
    'exit after terminal',
    'omit first write, exit after staging',
    'omit first write, exit after terminal',
  ].map((scenario) => [scenario, ...ENDS.map((end) => [`${scenario}: ${end}`])]),
};

const SAVED = ENDS.filter((end) => end !== 'terminal');

const RECOVERY_ELSEWHERE: QuotedGrid = {
  study: 'recovery',
  head: ['of 5', ...SAVED],
  rows: [
    ...['exit before commit', 'exit after commit, before terminal', 'exit after terminal'].map(
      (exit) => `PostgreSQL, ${exit}`,
    ),
    ...['SQLite', 'files', 'HTTP'].map(
      (backend) => `${backend}, exit when durable, before terminal`,
    ),
  ].map((scenario) => [scenario, ...SAVED.map((end) => [`${scenario}: ${end}`])]),
};

const PATHS = ['direct', 'integrated'];
const COMPLETED = ['candidate correct', 'durable correct', 'finalised'];

const AGENTS: QuotedGrid = {
  study: 'live-agents',
  head: ['of 18', ...PATHS.map((path) => `${path}: candidate / durable / finalised`)],
  rows: [
    ...['scripted agent, API loop', 'scripted agent over MCP'].map(
      (agent) => [agent, agent, ' by the agent'] as const,
    ),
    ...['DeepSeek API', 'DeepSeek+DSH', 'Codex'].map(
      (agent) => [`paper: ${agent}`, `published, not run here: ${agent}`, ''] as const,
    ),
  ].map(([shown, agent, whom]) => [
    shown,
    ...PATHS.map((path) =>
      COMPLETED.map((words) => `${agent}, ${path}: ${words}${words === 'finalised' ? whom : ''}`),
    ),
  ]),
};

const SCRIPTS = [
  ...['adds a change', 'follows an injection', 'lies', 'gives up', 'runs out of budget'],
  ...['is killed', 'calls twice', 'forgets to finish, and no host finishes'],
  ...['forgets to finish, and the host finishes', 'repeats a call in vain'],
];

const MISBEHAVING: QuotedGrid = {
  study: 'live-agents',
  head: [
    'the agent …, of 18',
    'integrated: initial state / rejected / as approved',
    'direct: initial state / as approved / something else',
  ],
  rows: SCRIPTS.map((script) => {
    const agent = `scripted agent that ${script}`;
    const initial = 'durable is the initial state';
    const approved = 'durable is what was approved';
    return [
      script,
      [initial, 'rejected', approved].map((words) => `${agent}, integrated: ${words}`),
      [initial, approved, 'durable is something else'].map((words) => `${agent}, direct: ${words}`),
    ];
  }),
};

/** A table of published values. A cell without figures stays empty. */
function render(grid: QuotedGrid, published: readonly PublishedStudy[]): string[][] {
  const shownValue = (name: string) => {
    const found = findPublished(published, grid.study, name);
    return found === undefined ? 'not run' : showValue(found.value);
  };
  const rows = grid.rows.map(([words, ...columns]) => [
    words,
    ...columns.map((names) => names.map(shownValue).join(' / ')),
  ]);
  return [[...grid.head], ...rows];
}

/** The grids by the name of their table in the docs. */
export const QUOTED_GRIDS: {
  readonly [name: string]: (published: readonly PublishedStudy[]) => string[][];
} = {
  outcomes: (published) => render(OUTCOMES, published),
  recovery: (published) => render(RECOVERY, published),
  'recovery-elsewhere': (published) => render(RECOVERY_ELSEWHERE, published),
  agents: (published) => render(AGENTS, published),
  misbehaving: (published) => render(MISBEHAVING, published),
};
