// Goal: the gateway reaches one host and lets its credential out nowhere but in the header of its
// own requests. Method: paths, redirects and responses that try to lead it elsewhere; then every
// byte that was stored or thrown is searched for the credential.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { paymentOptions } from '../../../examples/payment-service/adapter.ts';
import { FAULTS } from '../../../examples/payment-service/faults.ts';
import { mediatedHttp } from '../../../src/adapters/http/index.ts';
import { deadlineIn, systemClock } from '../../../src/contract/clock.ts';
import { fillPath } from '../../../src/http/content.ts';
import { Gateway } from '../../../src/http/gateway.ts';
import { RawServer } from '../../http/raw-server.ts';
import { openRig } from './rig.ts';

const credential = { header: 'authorization', value: 'Bearer very-secret-token' };
const context = { clock: systemClock, reached: () => {} };
const gatewayTo = (url: string) =>
  new Gateway({ url, backend: 'test', credential, timeoutMs: 2000 }, context);

test('only a plain URL of https, or of this machine, can be registered', () => {
  for (const url of [
    'http://pay.example',
    'ftp://pay.example',
    'https://user:pass@pay.example',
    'https://pay.example/?a=1',
    'pay.example',
    'http://127.0.0.1.evil.example',
    'http://169.254.169.254/latest',
  ]) {
    assert.throws(() => gatewayTo(url), { code: 'ERR_EM_ADAPTER_REFUSED' }, url);
  }
  for (const url of ['https://pay.example/v1', 'http://localhost:8080', 'http://[::1]:8080'])
    gatewayTo(url);
});

test('no path leads away from the registered place', async () => {
  await using server = await RawServer.start((socket) =>
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'),
  );
  const gateway = gatewayTo(`${server.origin}/v1`);
  for (const path of [
    '//elsewhere.example/x',
    'http://elsewhere.example',
    '@elsewhere.example/',
    '/../v2',
    '/..',
    '/../v1x',
    '/../v1/../v1x/y',
  ]) {
    await gateway.get(path).then(
      () => {
        const asked = server.received.at(-1) ?? '';
        assert.match(asked, /^GET \/v1[/ ]/, path);
      },
      (error) => assert.equal(error.code, 'ERR_EM_ADAPTER_REFUSED'),
    );
  }
  assert.ok(server.received.every((text) => text.startsWith('GET /v1')));
});

test('a value is one segment of a path, whatever it contains', () => {
  assert.equal(
    fillPath('/payees/{id}/x', { id: 'a/../../b?c#d%' }),
    '/payees/a%2F..%2F..%2Fb%3Fc%23d%25/x',
  );
  for (const id of ['', '.', '..', null, true]) {
    assert.throws(() => fillPath('/payees/{id}', { id }), { code: 'ERR_EM_MANIFEST_INVALID' });
  }
  for (const inherited of [{}, Object.create({ id: 'acme' })]) {
    assert.throws(
      () => fillPath('/payees/{id}', inherited),
      /"id" in \/payees\/\{id\} has no value/,
    );
  }
});

test('a redirect to another host is not followed, and nothing arrives there', async () => {
  await using elsewhere = await RawServer.start((socket) =>
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'),
  );
  for (const status of [301, 302, 303, 307, 308]) {
    await using server = await RawServer.start((socket) =>
      socket.end(
        `HTTP/1.1 ${status} Go\r\nlocation: ${elsewhere.origin}/\r\ncontent-length: 0\r\n\r\n`,
      ),
    );
    const gateway = gatewayTo(server.origin);
    assert.deepEqual(await gateway.get('/x'), {
      kind: 'silent',
      why: `the service answered ${status}`,
    });
    const content = {
      operation: 'x',
      method: 'POST',
      path: '/x',
      headers: {},
      body: {},
      idempotency: null,
    };
    const sent = await gateway.send(content, 'key');
    assert.equal(sent.kind === 'response' && sent.status, status);
    assert.equal(server.received.length, 2);
  }
  assert.equal(elsewhere.received.length, 0);
});

test('a response that repeats the credential is not used', async () => {
  await using server = await RawServer.start((socket) => {
    const body = '{"echo":"very-secret-token"}';
    socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  });
  const answer = await gatewayTo(server.origin).get('/x');
  assert.deepEqual(answer, {
    kind: 'silent',
    why: 'the response repeats the credential and is not used',
  });
});

test('no operation can set the credential, the key or a header of the connection', async () => {
  await using rig = await openRig();
  const options = paymentOptions(rig.place);
  const { pay } = options.operations;
  assert.ok(pay);
  for (const name of [
    'Authorization',
    'idempotency-key',
    'Host',
    'transfer-encoding',
    'bad name',
  ]) {
    const request: typeof pay.request = (plan) => ({
      ...pay.request(plan),
      headers: { [name]: 'x' },
    });
    const adapters = {
      bank: mediatedHttp({ ...options, operations: { pay: { ...pay, request } } }),
    };
    await assert.rejects(rig.start({ adapters }), /may not set the header/, name);
  }
});

test('the credential is in no stored byte, no receipt, no rendering and no error', async () => {
  await using rig = await openRig();
  const secret = rig.service.token.replace('Bearer ', '');
  const said: string[] = [];
  const runtime = await rig.start();
  const record = (value: unknown) =>
    said.push(JSON.stringify(value), String((value as Error)?.stack ?? ''));
  for (const [index, fault] of [undefined, ...FAULTS].entries()) {
    if (fault !== undefined) rig.faults.arm(fault);
    const license = await rig.approve(runtime);
    const terminal = await runtime.execute({ ...license }, {});
    record(terminal);
    record(await runtime.receipt(terminal.occurrence));
    record(license);
    rig.faults.readsUnavailable = index % 2 === 1;
    record(await runtime.recover({ now: true }));
    rig.faults.readsUnavailable = false;
  }
  for (const broken of [{ open: true }, { honoursKeys: false }]) {
    await using other = await openRig('MEDIATED', { ...broken, token: rig.service.token });
    await other.start().catch(record);
  }
  await runtime.execute({}, {}).catch(record);
  await runtime.prepare({ adapter: 'bank', task: 't', planRevision: 1, effects: [] }).catch(record);
  await rig.service[Symbol.asyncDispose]();
  await rig.start().catch(record);
  assert.ok(said.length > 40 && said.some((text) => text.includes('indeterminate')));
  assert.ok(
    !said.some((text) => text.includes(secret)),
    'something that was said contains the credential',
  );
  const files = readdirSync(rig.folder);
  assert.ok(files.includes('ledger.db'));
  for (const file of files) {
    const bytes = readFileSync(join(rig.folder, file));
    for (const form of [
      secret,
      Buffer.from(secret).toString('base64').slice(0, 20),
      Buffer.from(secret).toString('hex'),
    ]) {
      assert.ok(!bytes.includes(form), `${file} contains the credential`);
    }
  }
});

test('a request that may have left is followed by the step of its response, and no other request is', async () => {
  await using server = await RawServer.start((socket) =>
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}'),
  );
  const steps: string[] = [];
  const service = { url: server.origin, backend: 'test', credential, timeoutMs: 2000 };
  const gateway = new Gateway(service, { ...context, reached: (step) => void steps.push(step) });
  const content = {
    operation: 'x',
    method: 'POST',
    path: '/x',
    headers: {},
    body: {},
    idempotency: null,
  };
  const stepsOf = async (options: Parameters<Gateway['send']>[2]) => {
    steps.length = 0;
    await gateway.send(content, 'key', options);
    return [...steps];
  };
  const warrant = { credentials: gateway.fingerprint() };
  assert.deepEqual(await stepsOf({ warrant }), ['adapter:connected', 'adapter:response-read']);
  assert.deepEqual(
    await stepsOf({ bare: true }),
    [],
    'a request without the credential changes nothing',
  );
  assert.deepEqual(await stepsOf({ warrant: { credentials: 'another' } }), []);
  const over = { ...warrant, deadline: deadlineIn(systemClock, 0) };
  assert.deepEqual(await stepsOf({ warrant: over }), ['adapter:connected']);
  assert.equal(server.received.filter((text) => text !== '').length, 2);
});

test('a credential that cannot be had is a fault, and for a request of an attempt the proof that nothing left', async () => {
  let closed = false;
  const value = () => {
    if (closed) throw new Error('very-secret-token');
    return credential.value;
  };
  const service = {
    url: 'http://127.0.0.1:9',
    backend: 'test',
    credential: { header: 'authorization', value },
  };
  const gateway = new Gateway(service, context);
  const warrant = { credentials: gateway.fingerprint() };
  const content = {
    operation: 'x',
    method: 'POST',
    path: '/x',
    headers: {},
    body: {},
    idempotency: null,
  };
  closed = true;
  const why = 'http: the function that returns the credential threw (fault)';
  assert.deepEqual(await gateway.send(content, 'key', { warrant }), { kind: 'not-sent', why });
  await assert.rejects(gateway.send(content, 'key'), {
    code: 'ERR_EM_ADAPTER_REFUSED',
    message: why,
  });
});
