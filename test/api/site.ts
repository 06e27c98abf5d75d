// A deployment with its HTTP API in this process, tokens for those who call it, and a person who
// approves.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { issueToken } from '../../src/access/callers.ts';
import { sqlite } from '../../src/adapters/sqlite/index.ts';
import { type ApiOptions, type CallLog, createApi, ENDPOINTS } from '../../src/api/app.ts';
import { problemSchema } from '../../src/api/problem.ts';
import { parseProposal } from '../../src/crypto/proposal.ts';
import { signDecline } from '../../src/crypto/signed-decision.ts';
import {
  approver,
  defineOperation,
  generateApprover,
  generated,
  insert,
  type RuntimeConfig,
} from '../../src/index.ts';
import { copyOnce } from '../../src/protocol/schema.ts';
import { openRequests, type RequestsOptions } from '../../src/requests/index.ts';
import { createRuntime, type Runtime } from '../../src/runtime/runtime.ts';
import { testKeyring } from '../keyring.ts';
import { OfficeClock } from '../requests/office.ts';

export const ORIGIN = 'http://127.0.0.1:8421';

const SCHEMA = `pragma journal_mode = wal;
  create table payment (id integer primary key, payee text not null unique, amount integer not null)`;

const pay = defineOperation({
  name: 'pay',
  adapter: 'books',
  input: z.strictObject({ payee: z.string(), amount: z.int().positive() }),
  approve: ({ payee, amount }) => ({
    effects: [insert('payment', { id: generated('id'), payee, amount })],
    continuations: ['notify'],
  }),
  action: ({ payee, amount }) => ({
    sql: 'insert into payment (payee, amount) values (?, ?) returning id',
    values: [payee, amount],
  }),
});

/** What an agent asks for to pay somebody. */
export const paying = (payee: string, amount = 10) => ({
  ...{ run: 'test', reason: 'it is due' },
  ...{ operation: 'pay', input: { payee, amount } },
});

/** How a call is made. */
export interface CallOptions {
  readonly token?: string | undefined;
  /** Sent as JSON, or as it is if it is text or a stream. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** An API whose answers are compared with what its document says. */
export function openApi(options: Omit<ApiOptions, 'origin' | 'log'>) {
  const log: CallLog[] = [];
  const api = createApi({ ...options, origin: ORIGIN, log: (entry) => void log.push(entry) });
  /** Makes a call, and checks that its answer has the documented form. */
  async function call(method: 'GET' | 'POST', path: string, more: CallOptions = {}) {
    const { token, body, headers, signal } = more;
    const isRaw = typeof body === 'string' || body instanceof ReadableStream;
    const init = {
      method,
      headers: {
        host: new URL(ORIGIN).host,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: isRaw ? body : JSON.stringify(body), duplex: 'half' }),
      ...(signal && { signal }),
    };
    const response = await api.fetch(new Request(`${ORIGIN}${path}`, init as RequestInit));
    const isStream = response.headers.get('content-type') === 'text/event-stream';
    const json = isStream || response.status === 204 ? undefined : await response.json();
    const id = response.headers.get('x-request-id');
    const logged = log.findLast((entry) => entry.call === id);
    if (json !== undefined) checkForm(logged, response, json);
    return { status: response.status, json: json as never as Json, response };
  }
  return { api, log, call };
}

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into as a client in another language would.
type Json = any;

function checkForm(logged: CallLog | undefined, response: Response, json: unknown): void {
  const { method, route, status } = logged ?? {};
  const endpoint = ENDPOINTS.find((one) => one.method === method && one.path === route);
  const isProblem = response.headers.get('content-type') === 'application/problem+json';
  const schema = isProblem ? problemSchema : answeredWith(endpoint, status);
  assert.ok(schema, `${method} ${route} ${status} is documented`);
  const found = copyOnce(schema, json, Number.POSITIVE_INFINITY);
  assert.ok('copy' in found, `${method} ${route} ${status}: ${JSON.stringify(found)}`);
}

function answeredWith(endpoint: (typeof ENDPOINTS)[number] | undefined, status = 0) {
  const isDocumented = status === 200 || (status === 201 && endpoint?.created !== undefined);
  return isDocumented ? endpoint?.answer : undefined;
}

/** The deployment, with one agent that may pay, a rival, and operators with different scopes. */
export async function openSite(more: Partial<ApiOptions & RequestsOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'effectmatch-api-'));
  const file = join(folder, 'books.db');
  const db = new DatabaseSync(file);
  db.exec(SCHEMA);
  const clock = new OfficeClock();
  const [alice, stranger] = [generateApprover('alice'), generateApprover('alice')];
  const dora = generateApprover('dora');
  const agent = { operations: ['pay'], sql: ['books'], callsPerMinute: 100_000 };
  const config: RuntimeConfig = {
    store: join(folder, 'effectmatch.db'),
    keyring: testKeyring(),
    issuers: {
      alice: {
        key: alice.publicKey,
        may: ['books'],
        sources: ['manifest', 'rehearsed', 'contract'],
      },
      dora: { key: dora.publicKey, may: ['books'], sources: ['contract'], second: ['alice'] },
    },
    adapters: { books: sqlite({ file, relations: ['payment'] }) },
    operations: { pay },
    agents: { clerk: agent, rival: agent, guest: {}, slow: { callsPerMinute: 1 } },
    ...(more.config?.telemetry && { telemetry: more.config.telemetry }),
  };
  const runtime = await createRuntime(config, { clock });
  const { operations = {}, issuers } = config;
  const store = join(folder, 'requests.db');
  const { config: _, ...options } = more;
  const requests = await openRequests({ runtime, operations, issuers, store, clock, ...options });
  const opened = openApi({ runtime, requests, config, clock, receiveMs: 200, ...options });
  const issue = async (kind: 'agent' | 'operator', holder: string, scopes?: readonly string[]) =>
    (await issueToken(requests.tokens, { kind, holder, ...(scopes && { scopes }) }, clock)).token;
  const everything = ['read', 'answer', 'execute', 'audit', 'operate'];
  const tokens = {
    clerk: await issue('agent', 'clerk'),
    rival: await issue('agent', 'rival'),
    guest: await issue('agent', 'guest'),
    slow: await issue('agent', 'slow'),
    carol: await issue('operator', 'carol', everything),
    reader: await issue('operator', 'reader', ['read']),
  };
  return {
    ...{ ...opened, runtime, requests, config, clock, db, tokens, issue, folder, alice },
    /** What a person does with the proposal of a request, on another machine. */
    async sign(id: string, key = alice) {
      const { json } = await opened.call('GET', `/v1/requests/${id}/proposal`, {
        token: tokens.carol,
      });
      return approver({ ...key, clock }).sign(parseProposal(json), { expiresIn: '10m' });
    },
    async signDecline(id: string, reason: string, key = alice) {
      const { generation, proposal } = await requests.get(id);
      const { approved } = proposal.draft;
      return signDecline({ ...key, clock }, { request: id, generation, approved, reason });
    },
    ...{ stranger, dora },
    payments: () =>
      db
        .prepare('select payee from payment order by id')
        .all()
        .map(({ payee }) => payee),
    async [Symbol.asyncDispose]() {
      await opened.api[Symbol.asyncDispose]();
      await requests.close();
      await runtime.close();
      db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type Site = Awaited<ReturnType<typeof openSite>>;

/** A license for a payment that no request asked for, and its action. */
export async function signPayment({ runtime, alice, clock }: Site, payee: string) {
  const proposal = await proposePayment(runtime, payee);
  const license = approver({ ...alice, clock }).sign(proposal, { expiresIn: '10m' });
  const sql = 'insert into payment (payee, amount) values (?, ?)';
  return { license, action: { sql, values: [payee, 10] } };
}

async function proposePayment(runtime: Runtime, payee: string) {
  return await runtime.prepare({
    ...{ adapter: 'books', task: `pay ${payee}`, planRevision: 1, continuations: ['notify'] },
    effects: [insert('payment', { id: generated('id'), payee, amount: 10 })],
  });
}
