import { postgres } from '../../../src/adapters/postgres/index.ts';
import { systemClock } from '../../../src/contract/clock.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import { canonical } from '../../../src/protocol/canon.ts';
import { EXEC, openSite, type Site } from './site.ts';
import { contentOf } from './trial.ts';

/**
 * Certifies the same configuration on two servers of one version and compares what the certificates
 * bind, except for the row versions, which belong to one server, and the database's identity.
 */
export async function compareServers(one: Site) {
  await using two = await openSite();
  const first = await certified(one);
  const alike = (await certified(two)) === first && (await certified(one)) === first;
  await two.db.run(`grant select on app.invoice to ${EXEC} with grant option`);
  const differs = (await certified(two)) !== first;
  return {
    found: {
      'two servers of one version, one configuration: same digests': alike,
      'one privilege more on one of them: other digests': differs,
    },
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
    return canonical({
      outlets,
      executor,
      credentials,
      enforcement,
      configuration: contentOf(survey) ?? '',
    });
  } finally {
    await adapter.close();
  }
}
