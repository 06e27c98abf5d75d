// Goal: every kind of outlet is found, named and explained, and the statements given for it really
// close it. Method: a provisioned database on a real server; open outlets as superuser, survey,
// apply the fixes, survey again.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { PostgresSurvey } from '../../../../src/adapters/postgres/certify/facts.ts';
import { isInstalled, startServer, type TestServer, VERSIONS } from '../../../postgres/server.ts';
import { OPENINGS, type Opening } from './openings.ts';
import { fixStatements, openSite, type Site } from './site.ts';

for (const version of VERSIONS) {
  const skip = isInstalled(version) ? false : `PostgreSQL ${version} is not installed`;
  describe(`on PostgreSQL ${version}`, { skip }, () => {
    // Of its own: some openings concern the whole server, and other tests survey the shared one.
    let server: TestServer;
    let site: Site;
    let together: PostgresSurvey;
    const openings = OPENINGS.filter(({ from = 15 }) => from <= version);
    before(async () => {
      server = await startServer({ version });
      site = await openSite({ server });
    });
    after(async () => {
      await site[Symbol.asyncDispose]();
      await server.stop();
    });

    test('a provisioned and hardened database is closed, for a control login without superuser', async () => {
      const survey = await site.survey();
      assert.deepEqual(survey.problems, []);
      assert.ok(survey.outlets.length > 40);
      assert.ok(survey.outlets.every(({ disposition }) => disposition !== 'unclassified'));
    });

    for (const opening of openings.filter(({ alone }) => alone)) {
      test(`${opening.name}: found, explained and closed`, async () => {
        await site.apply([opening.sql]);
        const open = await site.survey();
        assertFound(open, opening);
        await site.apply(fixStatements(open));
        await assertClosed(site);
        if (opening.undo) await site.apply([opening.undo]);
      });
    }

    test('many outlets opened at once', async () => {
      await site.apply(openings.filter(({ alone }) => !alone).map(({ sql }) => sql));
      together = await site.survey();
    });
    for (const opening of openings.filter(({ alone }) => !alone)) {
      test(`${opening.name}: found and explained`, () => assertFound(together, opening));
    }
    test('the statements of the report close them all', async () => {
      await site.apply(fixStatements(together));
      await assertClosed(site);
    });
  });
}

function assertFound({ problems, outlets }: PostgresSurvey, { outlet }: Opening): void {
  const found = problems.filter((problem) => outlet.test(problem.outlet));
  assert.ok(
    found.length > 0,
    `not found among ${problems.map((problem) => problem.outlet).join(', ')}`,
  );
  for (const { why, fix, needs } of found)
    assert.ok(why !== '' && needs !== '' && fix.length > 0 && fix[0] !== '');
  assert.ok(
    outlets.some((listed) => listed.disposition === 'unclassified' && outlet.test(listed.outlet)),
  );
}

async function assertClosed(site: Site): Promise<void> {
  const { problems } = await site.survey(await site.refresh());
  assert.deepEqual(
    problems.map(({ outlet, why, fix }) => [outlet, why, fix]),
    [],
  );
}
