// A console on a real host, and a visitor that keeps its cookie as a browser does.
import { createConsole } from '../../src/console/app.ts';
import { openOffice } from '../requests/office.ts';

export const ORIGIN = 'http://127.0.0.1:8080';

/** A host with its console. */
export async function openConsole() {
  const office = openOffice();
  const host = await office.start();
  const { runtime, requests } = host;
  const site = {
    runtime,
    requests,
    adapters: ['books'],
    origin: ORIGIN,
    user: 'carol',
    issuers: {},
  };
  const app = createConsole({ ...site, clock: office.clock });
  return {
    ...{ office, app, runtime, requests },
    async [Symbol.asyncDispose]() {
      await app[Symbol.asyncDispose]();
      await host[Symbol.asyncDispose]();
      office[Symbol.dispose]();
    },
  };
}

type App = Awaited<ReturnType<typeof openConsole>>['app'];

/** Somebody with a browser. */
export class Visitor {
  readonly #app: App;
  cookie = '';
  formToken = '';

  constructor(app: App) {
    this.#app = app;
  }

  /** Opens the link that signs in, as the console's user would. */
  async enter(link = this.#app.createLink()): Promise<Response> {
    const answer = await this.get(link.replace(ORIGIN, ''));
    this.cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? this.cookie;
    return answer;
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return await this.#app.fetch(
      new Request(`${ORIGIN}${path}`, {
        headers: { host: '127.0.0.1:8080', cookie: this.cookie, ...headers },
      }),
    );
  }

  async head(path: string): Promise<Response> {
    const headers = { host: '127.0.0.1:8080', cookie: this.cookie };
    return await this.#app.fetch(new Request(`${ORIGIN}${path}`, { method: 'HEAD', headers }));
  }

  /** Sends a body piece by piece, without saying how long it is. */
  async send(path: string, body: ReadableStream): Promise<Response> {
    const headers = { host: '127.0.0.1:8080', origin: ORIGIN, cookie: this.cookie };
    const init = { method: 'POST', body, headers, duplex: 'half' } as const;
    return await this.#app.fetch(new Request(`${ORIGIN}${path}`, init));
  }

  /** The text of a page; what it says about forms is remembered. */
  async read(path: string): Promise<string> {
    const text = await (await this.get(path)).text();
    this.formToken = /name="form" value="([^"]+)"/.exec(text)?.[1] ?? this.formToken;
    return text;
  }

  /** Sends a form of a request and returns what its page says then. */
  async answer(id: string, form: string, fields: Record<string, string | Blob>): Promise<string> {
    const answer = await this.post(`/requests/${id}/${form}`, fields);
    const path = answer.headers.get('location') ?? '';
    return `${answer.status} ${/<p class="notice[^<]*/.exec(await this.read(path))?.[0] ?? ''}`;
  }

  async post(
    path: string,
    fields: Record<string, string | Blob>,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const body = new FormData();
    for (const [name, value] of Object.entries({ form: this.formToken, ...fields }))
      body.append(name, value);
    const own = { host: '127.0.0.1:8080', origin: ORIGIN, cookie: this.cookie };
    return await this.#app.fetch(
      new Request(`${ORIGIN}${path}`, { method: 'POST', body, headers: { ...own, ...headers } }),
    );
  }
}
