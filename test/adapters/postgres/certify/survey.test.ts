// Goal: every kind of outlet is found, named and explained, and the statements given for it really close it.
// Method: a provisioned database on a real server; open one outlet as superuser, survey, apply the fix, survey again.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { fixStatements } from '../../../../src/adapters/postgres/certify/render.ts';
import { quoteName } from '../../../../src/postgres/identifier.ts';
import { isInstalled, type Version } from '../../../postgres/server.ts';
import { OPENINGS } from './openings.ts';
import { openSite, type Site } from './site.ts';

for (const version of [17, 15] as const satisfies readonly Version[]) {
  const skip = isInstalled(version) ? false : `PostgreSQL ${version} is not installed`;
  let site: Site | undefined;
  const opened = async () => (site ??= await openSite({ version }));
  after(async () => site?.[Symbol.asyncDispose]());

  test(`a provisioned and hardened database is closed (${version})`, { skip }, async () => {
    const survey = await (await opened()).survey();
    assert.deepEqual(survey.problems, []);
    assert.ok(survey.outlets.length > 40);
    assert.ok(survey.outlets.every(({ disposition }) => disposition !== 'unclassified'));
  });

  for (const { name, sql, outlet, from = 15 } of OPENINGS) {
    test(`${name}: found, explained and closed (${version})`, {
      skip: skip || (from > version && `from ${from} on`),
    }, async () => {
      const { db, roles, refresh, survey } = await opened();
      const names: Record<string, string> = {
        exec: roles.execution,
        owner: roles.owner,
        app: roles.app,
        control: roles.control,
        db: db.name,
      };
      await db.run(sql.replace(/\{(exec|owner|app|control|db)\}/g, (_, key: string) => quoteName(names[key] ?? '')));
      const open = await survey(await refresh().catch(() => ({})));
      const found = open.problems.filter((problem) => outlet.test(problem.outlet));
      assert.ok(found.length > 0, `not found among ${open.problems.map((problem) => problem.outlet).join(', ')}`);
      for (const { why, fix, needs } of found) assert.ok(why !== '' && fix.length > 0 && needs !== '');
      await db.run(fixStatements(open).join(';\n'));
      const closed = await survey(await refresh());
      assert.deepEqual(
        closed.problems.map((problem) => [problem.outlet, problem.why, problem.fix]),
        [],
      );
    });
  }
}
