// Goal: other languages reach everything over HTTP. Method: the quick start by a Python script with
// the standard library alone, and by a client generated from the OpenAPI document, each against
// `effectmatch serve` as a real process, on SQLite and on PostgreSQL.
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { MAIN } from '../cli/command.ts';
import { integration, skipWithout } from '../integration.ts';
import { BACKENDS, openDeployment, startServing } from './served.ts';

const run = promisify(execFile);
const SCRIPT = join(import.meta.dirname, '../../examples/http-client/quickstart.py');
const hasPython = spawnSync('python3', ['--version']).status === 0;
const skip = hasPython ? skipWithout('openapi-client') : 'python3 is not installed';

describe('the quick start over HTTP', { skip, concurrency: 2 }, () => {
  for (const backend of BACKENDS) {
    test(`${backend}: by Python alone, and by a generated client`, async () => {
      await using site = await openDeployment(backend);
      const agent = await site.token('billing-agent');
      const operator = await site.token('carol', '--operator');
      await using server = await startServing(site.folder);
      const python = run('python3', [SCRIPT], {
        env: {
          ...process.env,
          EFFECTMATCH_URL: server.origin,
          EFFECTMATCH_AGENT: agent,
          EFFECTMATCH_OPERATOR: operator,
          EFFECTMATCH_KEY: site.key,
          EFFECTMATCH_COMMAND: `${process.execPath} --no-warnings ${MAIN}`,
        },
      });
      const { stdout } = await python;
      const lines = stdout.trim().split('\n');
      assert.match(lines[0] ?? '', /^pending /);
      assert.deepEqual(lines.slice(1), ['committed', 'receipt verified', '200 True committed']);
      assert.deepEqual(await site.paid(), [4711]);

      const driver = await generate(server.origin);
      const drive = async (...words: string[]) => {
        const all = ['--no-warnings', driver, server.origin, agent, operator, ...words];
        return (await run(process.execPath, all)).stdout;
      };
      writeFileSync(site.at('client.proposal.json'), await drive('ask'));
      const [proposal, license] = [site.at('client.proposal.json'), site.at('client.license.json')];
      await site.command(
        'approve',
        proposal,
        '--key',
        site.key,
        '--yes',
        '--out',
        license,
        '--json',
      );
      const answer = JSON.parse(await drive('answer', license));
      assert.deepEqual(answer, ['committed', 'committed', 'ERR_EM_REQUEST_CLOSED']);
      assert.deepEqual(await site.paid(), [4711, 4712]);
      const shown = await runPage(site.folder, {
        URL: server.origin,
        AGENT: agent,
        OPERATOR: operator,
      });
      assert.match(shown, /"state":"committed"$/m);
      assert.deepEqual(await site.paid(), [4711, 4712, 4713]);
    });
  }
});

/** Runs the commands that docs/api.md shows, with the command line of this folder. */
async function runPage(cwd: string, env: Readonly<Record<string, string>>): Promise<string> {
  const page = readFileSync(join(import.meta.dirname, '../../docs/api.md'), 'utf8');
  const note = '<!-- not run: test/api/quick-start.test.ts runs it against a server -->\n```sh\n';
  const blocks = page
    .split(note)
    .slice(1)
    .map((rest) => rest.split('```')[0] ?? '');
  assert.equal(blocks.length, 3);
  const command = `npx() { shift; ${process.execPath} --no-warnings ${MAIN} "$@"; }`;
  const script = ['set -eu', command, ...blocks].join('\n');
  const { stdout } = await run('bash', ['-c', script], { cwd, env: { ...process.env, ...env } });
  return stdout;
}

let generating: Promise<string> | undefined;

/** Generates the client, and checks with the types that what the driver does is possible. */
function generate(origin: string): Promise<string> {
  generating ??= (async () => {
    const folder = integration('openapi-client');
    const bin = join(folder, 'node_modules/.bin');
    mkdirSync(join(folder, 'generated'), { recursive: true });
    const document = join(folder, 'generated/openapi.json');
    writeFileSync(document, await (await fetch(`${origin}/openapi.json`)).text());
    await run(join(bin, 'openapi-typescript'), [document, '-o', 'generated/schema.d.ts'], {
      cwd: folder,
    });
    await run(join(bin, 'tsc'), ['-p', '.'], { cwd: folder }).catch(({ stdout }) =>
      assert.fail(stdout),
    );
    return join(folder, 'driver.ts');
  })();
  return generating;
}
