// Goal: tokens are made, listed, replaced and revoked from the command line while a server runs, and
// a decline can be signed without a deployment. Method: the real commands and the real server.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { openDeployment, startServing } from '../api/served.ts';
import { runCommand } from './command.ts';

test('tokens and signed declines, end to end', async () => {
  await using site = await openDeployment('sqlite');
  const refused = await runCommand(['token', 'new', 'nobody'], { cwd: site.folder });
  assert.match(
    refused.stderr,
    /no agent "nobody"; nothing was done\nnext: add it: agents: \{ nobody: \{ sql: \['books'\] \} \}, or pass --operator/,
  );
  const scoped = await runCommand(['token', 'new', 'billing-agent', '--scopes', 'answer'], {
    cwd: site.folder,
  });
  assert.match(scoped.stderr, /an agent may have ask, read, execute, not "answer"/);
  const wordless = await runCommand(['token', 'list', 'x'], { cwd: site.folder });
  assert.match(wordless.stderr, /`new NAME`, `list`, `rotate ID` or `revoke ID`/);
  const agent = await site.token('billing-agent');
  const operator = await site.command(
    'token',
    'new',
    'carol',
    '--operator',
    '--expires',
    '1h',
    '--json',
  );
  assert.deepEqual(operator.scopes, ['read', 'answer']);
  assert.equal(Date.parse(operator.expiresAt) - Date.parse(operator.createdAt), 3_600_000);
  await using server = await startServing(site.folder, '--log');
  let logged = '';
  server.child.stderr.setEncoding('utf8').on('data', (text) => (logged += text));
  const body = { run: 'r', operation: 'mark-paid', input: { invoice: 4713 } };
  const { json } = await server.call('POST', '/v1/requests', agent, body);
  const path = `/v1/requests/${json.id}`;
  const proposal = await server.call('GET', `${path}/proposal`, operator.token);
  writeFileSync(site.at('proposal.json'), JSON.stringify(proposal.json));
  const sign = ['decline', 'proposal.json', '--reason', 'disputed', '--key', site.key];
  await site.command(...sign, '--out', 'decline.json', '--json');
  const decline = JSON.parse(readFileSync(site.at('decline.json'), 'utf8'));
  const declined = await server.call('POST', `${path}/decline`, operator.token, decline);
  assert.deepEqual([declined.json.state, declined.json.answeredBy], ['declined', 'alice']);

  const rotated = await site.command('token', 'rotate', operator.id, '--overlap', '1s', '--json');
  const works = async (token: string) => (await server.call('GET', path, token)).status === 200;
  assert.ok(await works(rotated.token));
  await site.command('token', 'revoke', rotated.id, '--json');
  assert.equal(await works(rotated.token), false);
  const { tokens } = await site.command('token', 'list', '--json');
  assert.equal(tokens.length, 3);
  assert.ok(!JSON.stringify(tokens).includes('emt_'));
  const lines = logged
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(lines[0].route, '/v1/requests');
  assert.ok(!logged.includes('4713') && !logged.includes('disputed') && !logged.includes('emt_'));

  const { id } = (await server.call('POST', '/v1/requests', agent, { ...body, key: '2' })).json;
  const own = await site.command('decline', id, '--reason', 'no', '--key', site.key, '--json');
  assert.equal(own.decline.issuer, 'alice');
});

test('behind a proxy, only the address of the proxy is served', async () => {
  await using site = await openDeployment('sqlite', { origin: 'https://approvals.example' });
  await using server = await startServing(site.folder);
  const { origin, link, listening } = server;
  assert.equal(origin, 'https://approvals.example');
  assert.match(link, /^https:\/\/approvals\.example\/enter\//);
  const { request } = await import('node:http');
  const get = (host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const asked = request(`${listening}/health`, { headers: { host } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      asked.once('error', reject).end();
    });
  assert.equal(await get('approvals.example'), 200);
  assert.equal(await get(new URL(listening).host), 421);
});
