import type { Survey } from '../contract/adapter.ts';
import { unclassified } from '../protocol/boundary.ts';
import { describeOutlets } from './boundary.ts';
import type { Admitted } from './deployment.ts';

const CHANGES_MAX = 12;

/**
 * What a refusal of the final gate says about a boundary that is no longer the certified one: what
 * changed, and what is open because of it. An explanation that cannot be had does not change the
 * refusal.
 */
export async function describeChange(
  adapter: Admitted['adapter'],
  before: Survey,
  after: Survey,
): Promise<string> {
  const explained = await explain(adapter, before, after);
  const changes = explained.length > 0 ? explained : compareSurveys(before, after);
  const listed = changes.slice(0, CHANGES_MAX);
  const more = changes.length > listed.length ? [`and ${changes.length - listed.length} more`] : [];
  const open = unclassified(after);
  const opened = open.length > 0 ? `. Now open: ${describeOutlets(open)}` : '';
  return `the backend changed while the candidate was held; certify again. Changed: ${[...listed, ...more].join('; ')}${opened}`;
}

async function explain(
  adapter: Admitted['adapter'],
  before: Survey,
  after: Survey,
): Promise<readonly string[]> {
  try {
    return (await adapter.explainChange?.(before, after)) ?? [];
  } catch {
    return [];
  }
}

/**
 * The difference as far as the outlets show it, and otherwise which part of the certificate is
 * another.
 */
function compareSurveys(before: Survey, after: Survey): readonly string[] {
  const was = new Map(
    before.outlets.map(({ outlet, disposition, by }) => [outlet, `${disposition} (${by})`]),
  );
  const is = new Map(
    after.outlets.map(({ outlet, disposition, by }) => [outlet, `${disposition} (${by})`]),
  );
  const outlets = [...new Set([...was.keys(), ...is.keys()])]
    .filter((outlet) => was.get(outlet) !== is.get(outlet))
    .map((outlet) => `${outlet}: ${was.get(outlet) ?? 'not there'} → ${is.get(outlet) ?? 'gone'}`);
  if (outlets.length > 0) return outlets;
  const parts = (
    ['backend', 'executor', 'configuration', 'credentials', 'enforcement'] as const
  ).filter((part) => before[part] !== after[part]);
  return parts.map((part) => `the backend's ${part} changed`);
}
