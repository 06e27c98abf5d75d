// A real identity provider (oidc-provider) on this machine, whose people have any password.
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { integration } from '../integration.ts';

/** A server on this machine and its address. */
export async function listen(
  listener: RequestListener,
): Promise<{ server: Server; origin: string }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** Knows the client `em`, whose pages are at `origin`. The address of Mallory is not verified. */
export async function startProvider(origin: string) {
  let answer: RequestListener = () => {};
  const provider = await listen((request, response) => answer(request, response));
  const found = createRequire(join(integration('console'), 'x.js')).resolve('oidc-provider');
  const { default: Provider } = await import(pathToFileURL(found).href);
  answer = new Provider(provider.origin, {
    clients: [
      { client_id: 'em', client_secret: 'secret', redirect_uris: [`${origin}/login/callback`] },
    ],
    pkce: { required: () => true },
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: id !== 'mallory' }),
    }),
    cookies: { keys: ['of this test'] },
  }).callback();
  return {
    config: { issuer: provider.origin, clientId: 'em', clientSecret: 'secret' },
    [Symbol.dispose]() {
      provider.server.close();
      provider.server.closeAllConnections();
    },
  };
}
