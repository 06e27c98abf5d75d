import { postgres } from '../../../src/adapters/postgres/index.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { canonical } from '../../../src/protocol/canon.ts';
import { digestOf } from '../../facts.ts';
import { EXEC, openSite, type Site } from './site.ts';
import { contentOf } from './trial.ts';

/**
 * Certifies the same configuration on two servers of one version and compares what the certificates
 * bind, except for the row versions, which belong to one server, and the database's identity.
 */
export async function compareServers(one: Site) {
  await using two = await openSite();
  const first = await certified(one);
  const other = await certified(two);
  const again = await certified(one);
  await two.db.run(`grant select on app.invoice to ${EXEC} with grant option`);
  return { digests: { first, other, again, granted: await certified(two) } };
}

/** What the digests have to show. */
export function judgeServers({ digests }: Awaited<ReturnType<typeof compareServers>>) {
  const { first, other, again, granted } = digests;
  return {
    'two servers of one version, one configuration: same digests':
      other === first && again === first,
    'one privilege more on one of them: other digests': granted !== first,
  };
}

async function certified({ options }: Site): Promise<string> {
  const adapter = await postgres(options).open({
    name: 'shop',
    clock: systemClock,
    reached: unobserved,
  });
  try {
    const survey = await adapter.survey();
    const { outlets, executor, credentials, enforcement } = survey;
    const configuration = contentOf(survey) ?? '';
    return digestOf(canonical({ outlets, executor, credentials, enforcement, configuration }));
  } finally {
    await adapter.close();
  }
}
