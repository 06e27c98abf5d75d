import type { Entry } from './verdict.ts';

/** Studies that belong together, in the order of the report. */
export interface EntryGroup {
  readonly id: string;
  readonly title: string;
  readonly words: string;
  readonly entries: readonly Entry[];
}

const GROUPS: readonly (Omit<EntryGroup, 'entries'> & { readonly studies: readonly string[] })[] = [
  {
    id: 'paper',
    title: 'What the paper reports',
    words: 'The same populations, faults and removals, with the paper’s counts as targets.',
    studies: [
      ...['public-outcomes', 'ablations', 'mechanism-matrix', 'information', 'boundary'],
      ...['integrated', 'trace', 'live-agents', 'recovery', 'topologies'],
      ...['backends', 'backends-mariadb'],
    ],
  },
  {
    id: 'beyond',
    title: 'Beyond the paper',
    words: 'Attacks, kills, races, further mechanisms, and what people use today.',
    studies: [
      ...['escapes', 'crashes', 'crashes-long', 'concurrency', 'concurrency-long'],
      ...['more-ablations', 'peers'],
    ],
  },
  {
    id: 'costs',
    title: 'What it costs',
    words: 'Both sides of a ratio are measured in turns in the same run.',
    studies: [],
  },
];

/** Puts every study into its group. Studies that no group names go to the group about costs. */
export function groupEntries(entries: readonly Entry[]): readonly EntryGroup[] {
  const named = GROUPS.flatMap(({ studies }) => studies);
  return GROUPS.map(({ studies, ...group }, index) => {
    const own = studies.flatMap((study) => entries.filter(({ name }) => name === study));
    const others = entries.filter(({ name }) => !named.includes(name));
    return { ...group, entries: index === GROUPS.length - 1 ? [...own, ...others] : own };
  }).filter((group) => group.entries.length > 0);
}
