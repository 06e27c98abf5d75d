import { hash } from 'node:crypto';
import type { Outlet, Survey } from '../../protocol/boundary.ts';
import { type Collection, type Layout, REST_TARGET } from './layout.ts';
import type { ReferenceList } from './references.ts';

/**
 * Routes that exist for every tool and what closes them. The last one is declared, not enforced.
 */
const CLOSED: readonly Outlet[] = [
  [
    'references to the durable state',
    'every call works on a copy in a worker thread, which is read back as text when it ends',
  ],
  [
    'work that a call leaves behind',
    'it has an old copy, and a worker that is busy with it is stopped',
  ],
  [
    'values that are not plain JSON',
    'a call that leaves one in a changed state is refused; an unchanged text stays',
  ],
  [
    'files, network, processes and memory outside the state',
    'declared: registered tools change only the state they get',
  ],
].map(([outlet = '', by = '']) => ({ outlet, disposition: 'denied', by }));

const ENFORCEMENT = fingerprint(CLOSED);

/**
 * Every route by which a tool could persist something. Depends on the layout, the file and its
 * schema only.
 */
export function surveyStore(facts: {
  readonly backend: string;
  readonly file: string;
  readonly layout: Layout;
  readonly problems: readonly string[];
}): Survey {
  const { backend, file, layout, problems } = facts;
  const outlets: readonly Outlet[] = [
    ...layout.collections.map(surveyCollection),
    ...[...layout.lists, ...layout.collections.flatMap(({ lists }) => lists)].map(surveyList),
    {
      outlet: `document ${REST_TARGET}`,
      disposition: 'observed',
      by: `difference by JSON pointer${uncompared(layout)}`,
    },
    ...CLOSED,
    ...problems.map((by): Outlet => ({ outlet: 'snapshot file', disposition: 'unclassified', by })),
  ];
  for (const outlet of outlets) Object.freeze(outlet);
  return Object.freeze({
    backend,
    executor: 'registered tools in worker threads of this process, each call on a private copy',
    outlets: Object.freeze(outlets),
    configuration: fingerprint([layout.text, problems]),
    credentials: fingerprint(file),
    enforcement: ENFORCEMENT,
  });
}

/** What an approver should know is not compared stands beside what is. */
function surveyCollection(collection: Collection): Outlet {
  const { name, target, isMap, keepsOrder } = collection;
  const left = [
    ...(target.volatile.length === 0
      ? []
      : [`volatile and not compared: ${target.volatile.join(', ')}`]),
    ...(isMap || keepsOrder ? [] : ['the order of its records is not compared']),
  ];
  const by = ['difference by key', ...left].join(', ');
  return {
    outlet: `collection ${name}`,
    disposition: 'observed',
    by: `${by}${uncompared(collection)}`,
  };
}

function surveyList({ name }: ReferenceList): Outlet {
  return {
    outlet: `list ${name}`,
    disposition: 'observed',
    by: 'difference of its elements, compared without order',
  };
}

function uncompared({ unordered }: Pick<Layout, 'unordered'>): string {
  if (unordered.length === 0) return '';
  return `, compared without order: ${unordered.map((tokens) => `/${tokens.join('/')}`).join(', ')}`;
}

function fingerprint(facts: unknown): string {
  return hash('sha256', JSON.stringify(facts), 'hex');
}
