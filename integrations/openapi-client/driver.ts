// Asks for a change, answers it and waits for the verdict, with a client whose types were generated
// from the OpenAPI document of the server.
import { readFileSync } from 'node:fs';
import createClient from 'openapi-fetch';
import type { components, paths } from './generated/schema.d.ts';

const [baseUrl = '', agentToken, operatorToken, stage, file = ''] = process.argv.slice(2);
const clientFor = (token: string | undefined) =>
  createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });
const [agent, operator] = [clientFor(agentToken), clientFor(operatorToken)];

async function ask() {
  const { data, error } = await agent.POST('/v1/requests', {
    body: { run: 'client', operation: 'mark-paid', input: { invoice: 4712 } },
  });
  if (data === undefined) throw new Error(error?.code);
  return data;
}

const request = await ask();
const params = { path: { id: request.id } };
if (stage === 'ask') {
  const { data } = await operator.GET('/v1/requests/{id}/proposal', { params });
  console.log(JSON.stringify(data));
} else {
  const body = JSON.parse(readFileSync(file, 'utf8')) as components['schemas']['SignedLicense'];
  const answered = await operator.POST('/v1/requests/{id}/license', { params, body });
  if (answered.error !== undefined) throw new Error(answered.error.code);
  const query = { waitSeconds: 50 };
  const { data } = await agent.GET('/v1/requests/{id}', { params: { ...params, query } });
  const repeated = await operator.POST('/v1/requests/{id}/license', { params, body });
  console.log(JSON.stringify([data?.state, data?.terminal?.kind, repeated.error?.code]));
}
