// Goal: E counts as established only if every required channel answered and everything that was
// said agrees. Method: complete evidence, then one thing wrong at a time; each must leave a gap
// that names channel and object.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChangeRecord } from '../../src/protocol/effect.ts';
import {
  type ChannelReport,
  type Evidence,
  establish,
  type Observation,
} from '../../src/protocol/observation.ts';
import type { Registration } from '../../src/protocol/registration.ts';

const registration: Registration = {
  profile: 'row-event',
  values: 'plain',
  targets: ['invoice', 'note'].map((name) => ({
    name,
    columns: ['id', 'a'],
    key: ['id'],
    volatile: [],
  })),
};
const update: ChangeRecord = {
  op: 'update',
  target: 'invoice',
  key: { id: 1 },
  before: { a: 1 },
  after: { a: 2 },
};
const insert: ChangeRecord = {
  op: 'insert',
  target: 'note',
  key: { id: 7 },
  before: null,
  after: { a: 1 },
};

const reports = {
  recorder: { channel: 'recorder', kind: 'records', count: 2 },
  authorizer: { channel: 'authorizer', kind: 'touched', targets: ['invoice', 'note'] },
  counters: {
    channel: 'counters',
    kind: 'counts',
    counts: [
      { target: 'invoice', op: 'update', count: 1 },
      { target: 'note', op: 'insert', count: 1 },
    ],
  },
  schema: { channel: 'schema', kind: 'stable', before: 'v1', after: 'v1' },
} as const satisfies Record<string, ChannelReport>;
const required = Object.keys(reports);

const complete: Evidence = {
  candidate: 'transaction 5',
  evidence: 'fingerprint',
  records: [update, insert],
  channels: Object.values(reports),
  unattributed: 0,
  assigned: [],
  window: { fromMs: 0, toMs: 1 },
};
const withReport = (name: keyof typeof reports, report: unknown): Evidence => ({
  ...complete,
  channels: complete.channels.map((one) =>
    one.channel === name ? (report as ChannelReport) : one,
  ),
});
const gapsOf = (observation: Observation) =>
  observation.kind === 'incomplete' ? observation.gaps : [];
/** E is built when it is asked for; a fault in the records shows then. */
const observe = (evidence: Evidence, channels = required): Observation => {
  const seen = establish(evidence, registration, channels);
  return seen.kind === 'complete' ? { kind: seen.kind, effects: seen.effects } : seen;
};

test('evidence in which everything agrees is complete, and its effects are those of the profile', () => {
  assert.deepEqual(observe(complete), {
    kind: 'complete',
    effects: [
      { op: 'update', target: 'invoice', key: { id: 1 }, before: { a: 1 }, after: { a: 2 } },
      { op: 'insert', target: 'note', key: { id: 7 }, after: { a: 1 } },
    ],
  });
});

test('an execution that left nothing is complete too, and a touched target need not have changed', () => {
  const nothing: Evidence = {
    ...complete,
    records: [],
    channels: [
      { channel: 'recorder', kind: 'records', count: 0 },
      reports.authorizer,
      {
        channel: 'counters',
        kind: 'counts',
        counts: [{ target: 'invoice', op: 'update', count: 0 }],
      },
      reports.schema,
    ],
  };
  assert.deepEqual(observe(nothing), { kind: 'complete', effects: [] });
});

for (const [what, evidence, ...gaps] of [
  [
    'a required channel that did not report',
    { ...complete, channels: complete.channels.filter(({ channel }) => channel !== 'counters') },
    /"counters".*did not report/,
  ],
  [
    'a channel that reported twice, even if both reports agree',
    { ...complete, channels: [...complete.channels, reports.schema] },
    /"schema".*2 times/,
  ],
  [
    'a silent channel',
    withReport('recorder', { channel: 'recorder', kind: 'silent', why: 'the session was lost' }),
    /"recorder".*the session was lost/,
  ],
  [
    'a silent channel beyond the required ones',
    {
      ...complete,
      channels: [...complete.channels, { channel: 'extra', kind: 'silent', why: 'off' }],
    },
    /"extra".*off/,
  ],
  [
    'more records produced than handed over',
    withReport('recorder', { channel: 'recorder', kind: 'records', count: 3 }),
    /"recorder" produced 3 records, but 2/,
  ],
  [
    'a record of a target that was not seen touched',
    withReport('authorizer', { channel: 'authorizer', kind: 'touched', targets: ['invoice'] }),
    /"authorizer" did not see "note" touched/,
  ],
  [
    'a touched target that is not registered',
    withReport('authorizer', {
      channel: 'authorizer',
      kind: 'touched',
      targets: ['invoice', 'note', 'salary'],
    }),
    /"authorizer" saw "salary" touched, which is not registered/,
  ],
  [
    'a counter that saw more',
    withReport('counters', {
      ...reports.counters,
      counts: [...reports.counters.counts, { target: 'note', op: 'insert', count: 1 }],
    }),
    /"counters" counted 2 of insert on "note", but there are 1 records/,
  ],
  [
    'a counter that saw less',
    withReport('counters', {
      ...reports.counters,
      counts: [{ target: 'invoice', op: 'update', count: 1 }],
    }),
    /"counters" counted 0 of insert on "note", but there are 1 records/,
  ],
  [
    'a counter that saw another operation',
    withReport('counters', {
      ...reports.counters,
      counts: [
        { target: 'invoice', op: 'delete', count: 1 },
        { target: 'note', op: 'insert', count: 1 },
      ],
    }),
    /0 of update on "invoice"/,
    /1 of delete on "invoice"/,
  ],
  [
    'something that changed meanwhile',
    withReport('schema', { channel: 'schema', kind: 'stable', before: 'v1', after: 'v2' }),
    /"schema" changed.*"v1" became "v2"/,
  ],
  [
    'records that nobody can be held to',
    { ...complete, unattributed: 3 },
    /attributed to this execution: 3/,
  ],
  [
    'an unattributed count that is no number',
    { ...complete, unattributed: Number.NaN },
    /attributed/,
  ],
  [
    'a kind of report that is not known',
    withReport('schema', { channel: 'schema', kind: 'hearsay', rumour: 'fine' }),
    /"schema" gave a kind of report that is not known/,
  ],
  [
    'an unknown kind on a channel that nobody asked for',
    {
      ...complete,
      channels: [
        ...complete.channels,
        { channel: 'gossip', kind: 'hearsay' } as unknown as ChannelReport,
      ],
    },
    /"gossip" gave a kind of report that is not known/,
  ],
] as const satisfies readonly (readonly [string, Evidence, ...RegExp[]])[]) {
  test(`${what} leaves a gap`, () => {
    const found = gapsOf(observe(evidence));
    assert.equal(found.length, gaps.length, found.join('\n'));
    gaps.forEach((gap, index) => {
      assert.match(found[index] ?? '', gap);
    });
  });
}

test('a record of a target that is not registered leaves one gap per target', () => {
  const stray = { ...update, target: 'salary' };
  const evidence = { ...complete, records: [stray, stray], channels: [] };
  assert.deepEqual(gapsOf(observe(evidence, [])), [
    'There are records (2) of "salary", which is not registered.',
  ]);
});

test('no channel is required unless it is asked for, but what is said must still agree', () => {
  assert.equal(observe({ ...complete, channels: [] }, []).kind, 'complete');
  assert.equal(
    observe(withReport('recorder', { ...reports.recorder, count: 1 }), []).kind,
    'incomplete',
  );
});

test('all gaps are named at once, at most 64, and the last one says how many more there are', () => {
  const targets = Array.from({ length: 100 }, (_, index) => `x${index}`);
  const gaps = gapsOf(
    observe({
      ...withReport('authorizer', { channel: 'authorizer', kind: 'touched', targets }),
      unattributed: 1,
    }),
  );
  assert.equal(gaps.length, 64);
  // 2 unseen targets, 100 unregistered ones and the unattributed record.
  assert.equal(gaps.at(-1), 'There are 40 further gaps.');
});

test('64 gaps are all named', () => {
  // 61 unregistered targets, 2 unseen ones and the unattributed record.
  const targets = Array.from({ length: 61 }, (_, index) => `x${index}`);
  const gaps = gapsOf(
    observe({
      ...withReport('authorizer', { channel: 'authorizer', kind: 'touched', targets }),
      unattributed: 1,
    }),
  );
  assert.equal(gaps.length, 64);
  assert.match(gaps.at(-1) ?? '', /could not be attributed/);
});

test('channels that are silent for one reason are named together, and each reason once', () => {
  const silent = (channel: string, why: string) => ({ channel, kind: 'silent', why }) as const;
  const channels = [
    silent('recorder', 'no answer in time'),
    silent('authorizer', 'it is off'),
    silent('counters', 'no answer in time'),
    reports.schema,
  ];
  assert.deepEqual(gapsOf(observe({ ...complete, channels })), [
    'Channels "recorder", "counters" gave no answer: no answer in time',
    'Channel "authorizer" gave no answer: it is off',
  ]);
});

test('a gap is at most 1000 characters of well-formed text, whatever names are in it', () => {
  for (const name of [
    'x'.repeat(5000),
    '😀'.repeat(1000),
    `a${'😀'.repeat(1000)}`,
    '\ud83d',
    '"\n',
  ]) {
    const [gap] = gapsOf(
      observe(withReport('recorder', { channel: 'recorder', kind: 'silent', why: name })),
    );
    assert.ok(gap !== undefined && gap.length <= 1000 && gap.isWellFormed());
    const [touched] = gapsOf(
      observe(
        withReport('authorizer', { ...reports.authorizer, targets: ['invoice', 'note', name] }),
      ),
    );
    assert.ok(touched !== undefined && touched.length <= 1000 && touched.isWellFormed());
  }
});

test('more gaps than the stack holds are still gaps', () => {
  const strangers = Array.from({ length: 200_000 }, (_, index) => `t${index}`);
  const targets = ['invoice', 'note', ...strangers];
  assert.ok(
    gapsOf(observe(withReport('authorizer', { ...reports.authorizer, targets }))).length > 1,
  );
  const records = strangers.map((target): ChangeRecord => ({ ...insert, target }));
  assert.ok(gapsOf(observe({ ...complete, records })).length > 1);
});

test('records that contradict the registration are a fault, not a gap', () => {
  const wrong = { ...update, before: { z: 1 }, after: { z: 2 } };
  assert.throws(() => observe({ ...complete, records: [wrong, insert] }), {
    code: 'ERR_EM_INVARIANT',
  });
});

test('a gap quotes what a channel saw only where values are stored', () => {
  const moved = withReport('schema', { ...reports.schema, before: 'pin 1234', after: 'pin 4321' });
  const gaps = (values: Registration['values']) =>
    gapsOf(establish(moved, { ...registration, values }, required)).join();
  assert.match(gaps('plain'), /"schema" changed .*: "pin 1234" became "pin 4321"\./);
  assert.match(gaps('digest'), /"schema" changed while the operation ran\.$/);
});
