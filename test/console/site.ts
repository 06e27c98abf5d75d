// A console that a real browser opens, at a name or a number of this machine, and its authenticator.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { Page } from 'playwright-core';
import { type ConsoleApp, type ConsoleOptions, createConsole } from '../../src/console/app.ts';
import type { RequestsOptions } from '../../src/requests/index.ts';
import { openOffice } from '../requests/office.ts';

/** Bundles the script that signs, as the build does. */
export function buildSigner(): void {
  const built = spawnSync(process.execPath, ['scripts/build-signer.mjs'], { encoding: 'utf8' });
  assert.equal(built.status, 0, built.stderr);
}

type Office = ReturnType<typeof openOffice>;
type Limits = Parameters<Office['start']>[1];

/** A console that can be started again with other keys, at the same address. */
export class Site implements AsyncDisposable {
  readonly office: Office = openOffice();
  readonly origin: string;
  /** Operations of the hosts that are started from now on. */
  operations: RequestsOptions['operations'];
  host!: Awaited<ReturnType<Office['start']>>;
  app!: ConsoleApp;
  readonly #server: ReturnType<typeof createAdaptorServer>;

  private constructor(server: ReturnType<typeof createAdaptorServer>, origin: string) {
    this.#server = server;
    this.origin = origin;
  }

  static async open(name = 'localhost'): Promise<Site> {
    let site: Site | undefined;
    const fetch = (request: Request) => (site as Site).app.fetch(request);
    const server = createAdaptorServer({ fetch });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    site = new Site(server, `http://${name}:${(server.address() as AddressInfo).port}`);
    return site;
  }

  /** Starts it with these terms for Bob and Alice, and tells the console whose these keys are. */
  async start(
    issuers: Readonly<Record<string, string>>,
    limits: Limits = {},
    more: Partial<ConsoleOptions> = {},
    terms: Limits = {},
  ): Promise<void> {
    await this.stop();
    const { operations } = this;
    const signing = Object.entries(issuers).map(([key, name]) => [name, { key, may: ['books'] }]);
    const options = { issuers: Object.fromEntries(signing), ...(operations && { operations }) };
    this.host = await this.office.start(options, limits, terms);
    this.host.requests.start();
    const { runtime, requests } = this.host;
    const { origin } = this;
    this.app = createConsole({
      ...{ runtime, requests, adapters: ['books'], origin, issuers, user: 'bob' },
      ...more,
    });
  }

  async enter(page: Page): Promise<void> {
    await page.goto(this.app.createLink());
    await page.waitForURL(`${this.origin}/`);
  }

  async stop(): Promise<void> {
    await this.app?.[Symbol.asyncDispose]();
    await this.host?.[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    this.#server.close();
    if ('closeAllConnections' in this.#server) this.#server.closeAllConnections();
    this.office[Symbol.dispose]();
  }
}

/** An authenticator of the browser itself, without hardware. */
export async function addAuthenticator(page: Page) {
  const session = await page.context().newCDPSession(page);
  await session.send('WebAuthn.enable');
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true },
      ...{ hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
    },
  });
  const verifies = async (isUserVerified: boolean) =>
    await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
  return { verifies };
}
