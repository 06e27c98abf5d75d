// Goal: certificates are always checked, and a registered one is enough.
// Method: a real TLS server on loopback with a key pair that exists for this test alone.
import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { exchange } from '../../src/http/exchange.ts';

/** Signed by itself for `localhost` and 127.0.0.1, until the year 2126. It protects nothing. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUDttsaSnMfr4hz+/VU0VODsOs2HswCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNTExNDczMloYDzIxMjYxMDIy
MTE0NzMyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASdg/6SQkLURaz6I42/aqpH8qXXmQgAAHGQ2qGbQe0U/Pcxm+8nx850
y1C5vvKBr3FPO0NRzShooRyWqWT4eeOOo28wbTAdBgNVHQ4EFgQU/UbmAOkq6Ab7
n+AyGxckHlSAgcIwHwYDVR0jBBgwFoAU/UbmAOkq6Ab7n+AyGxckHlSAgcIwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgb5VOo7b7JB6XYUg1ndB7mo6wHr+DSavj4SI0AesW15oCIQC2
ye3xjgi7qZy+bS6zEc9OddsMUQslXtPIoZzY9izASw==
-----END CERTIFICATE-----`;
const PRIVATE_KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg+7Cf5co5wV8VzWo7
t+UWvgPnzXdT3zfgNj7ytat6q02hRANCAASdg/6SQkLURaz6I42/aqpH8qXXmQgA
AHGQ2qGbQe0U/Pcxm+8nx850y1C5vvKBr3FPO0NRzShooRyWqWT4eeOO
-----END PRIVATE KEY-----`;

test('a server is talked to only if its certificate is trusted and names it', async () => {
  let requests = 0;
  const server = createServer({ cert: CERTIFICATE, key: PRIVATE_KEY }, (_request, response) => {
    requests += 1;
    response.end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const post = (host: string, ca?: string) =>
    exchange(
      { method: 'POST', url: new URL(`https://${host}:${port}/x`), headers: {}, body: '{}' },
      { timeoutMs: 5000, maxBytes: 1000, ca },
    );
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  try {
    const untrusted = await post('127.0.0.1');
    assert.deepEqual([untrusted.kind, requests], ['not-sent', 0]);
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    assert.equal(
      (await post('127.0.0.1')).kind,
      'not-sent',
      'the environment cannot switch the check off',
    );
    const other = await post('127.0.0.2', CERTIFICATE);
    assert.deepEqual([other.kind, requests], ['not-sent', 0]);
    const trusted = await post('127.0.0.1', CERTIFICATE);
    assert.equal(trusted.kind === 'response' && trusted.status, 200, JSON.stringify(trusted));
    assert.equal(requests, 1);
  } finally {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});
