import { deniedOutlets, fingerprint, openOutlet } from '../../backend/setup.ts';
import type { Outlet, Survey } from '../../protocol/boundary.ts';
import { type Collection, type DocumentLayout, type DocumentParts, REST_TARGET } from './layout.ts';

/** An outlet, how it is observed and, for the approver, what is not compared. */
function observed(outlet: string, how: string, limits: readonly string[] = []): Outlet {
  return { outlet, disposition: 'observed', by: [how, ...limits].join(', ') };
}

/** Outlets of every tool, and what closes them. The last one is declared, not enforced. */
const CLOSED = deniedOutlets({
  'references to the durable state':
    'every call works on a copy in a worker thread, which is read back as text when it ends',
  'work that a call leaves behind':
    'it has an old copy, and a worker that is busy with it is stopped',
  'values that are not plain JSON':
    'a call that leaves one in a changed state is refused; an unchanged text stays',
  'files, network, processes and memory outside the state':
    'declared: registered tools change only the state they get',
});

/** Lists every outlet of a tool. Depends only on the layout, the file and its schema. */
export function surveyStore(facts: {
  readonly backend: string;
  readonly file: string;
  readonly layout: DocumentLayout;
  readonly problems: readonly string[];
}): Survey {
  const { backend, file, layout, problems } = facts;
  const lists = layout.relations.slice(layout.collections.length);
  return {
    backend,
    executor: 'registered tools in worker threads of this process, each call on a private copy',
    outlets: [
      ...layout.collections.map(surveyCollection),
      ...lists.map(({ target }) =>
        observed(`list ${target}`, 'difference of its elements, compared without order'),
      ),
      observed(`document ${REST_TARGET}`, 'difference by JSON pointer', uncompared(layout)),
      ...CLOSED,
      ...problems.map((problem) => openOutlet('snapshot file', problem)),
    ],
    configuration: fingerprint([layout.text, problems]),
    credentials: fingerprint(file),
    enforcement: fingerprint(CLOSED),
  };
}

function surveyCollection(collection: Collection): Outlet {
  const { target, volatile, isMap, keepsOrder } = collection;
  const limits: string[] = [];
  if (volatile.length > 0) limits.push(`volatile and not compared: ${volatile.join(', ')}`);
  if (!isMap && !keepsOrder) limits.push('the order of its records is not compared');
  limits.push(...uncompared(collection));
  return observed(`collection ${target}`, 'difference by key', limits);
}

function uncompared({ unordered }: Pick<DocumentParts, 'unordered'>): readonly string[] {
  if (unordered.length === 0) return [];
  const paths = unordered.map((tokens) => `/${tokens.join('/')}`);
  return [`compared without order: ${paths.join(', ')}`];
}
