import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createEmulator } from 'emulate';
import { github } from '../../../src/adapters/github/index.ts';
import { generateApprover } from '../../../src/crypto/approver.ts';
import { createRuntime, type Runtime } from '../../../src/runtime/runtime.ts';
import { type FaultServer, startFaultServer } from '../../../test/adapters/github/fault-server.ts';

const OURS = 'gh-study-77d0';
const OTHERS = 'gh-others-40b2';
const ISSUES = '/repos/octocat/hello/issues';

export const MAINTAINERS = generateApprover('maintainers');
/** The title that another user gives an issue. */
export const OTHER_TITLE = 'taken over';

/** The compared fields of an issue. */
export interface Fields {
  readonly title: string;
  readonly body: string | null;
  readonly state: string;
  readonly labels: readonly string[];
  readonly assignees: readonly string[];
}

/**
 * A GitHub emulator, a server in front of it that injects faults, and a runtime that only knows
 * that server.
 */
export interface GithubSite extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly server: FaultServer;
  /** Creates an issue as another user, bypassing the server. Returns its number. */
  createIssue(fields: Partial<Fields>): Promise<number>;
  /** Reads an issue from the emulator, bypassing the runtime and the server. */
  readIssue(number: number): Promise<Fields>;
  lastNumber(): Promise<number>;
}

interface Issue {
  readonly number: number;
  readonly title: string;
  readonly body: string | null;
  readonly state: string;
  readonly labels: readonly { readonly name: string }[];
  readonly assignees: readonly { readonly login: string }[];
}

export async function openGithub(): Promise<GithubSite> {
  await using opened = new AsyncDisposableStack();
  const user = { login: 'octocat', scopes: ['repo'] };
  const emulator = await createEmulator({
    service: 'github',
    port: 0,
    seed: {
      tokens: { [OURS]: user, [OTHERS]: user },
      github: { users: [{ login: 'octocat' }], repos: [{ owner: 'octocat', name: 'hello' }] },
    },
  });
  opened.defer(() => emulator.close());
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const response = await fetch(`${emulator.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${OTHERS}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}`);
    return await response.json();
  };
  const server = opened.use(
    await startFaultServer(
      emulator.url,
      async (path) => void (await call('PATCH', path, { title: OTHER_TITLE })),
    ),
  );
  const folder = opened.adopt(mkdtempSync(join(tmpdir(), 'effectmatch-study-')), (made) =>
    rmSync(made, { recursive: true, force: true }),
  );
  const runtime = opened.use(
    await createRuntime({
      store: join(folder, 'ledger.db'),
      keyring: join(folder, 'keys.json'),
      issuers: { maintainers: { key: MAINTAINERS.publicKey, may: ['tracker'] } },
      adapters: {
        tracker: github({
          owner: 'octocat',
          repo: 'hello',
          token: OURS,
          url: server.origin,
          timeoutMs: 5000,
        }),
      },
      recoverAtStart: false,
    }),
  );
  const owned = opened.move();
  return {
    runtime,
    server,
    async createIssue({ state, ...fields }) {
      const { number } = (await call('POST', ISSUES, fields)) as Issue;
      if (state === 'closed') await call('PATCH', `${ISSUES}/${number}`, { state });
      return number;
    },
    async readIssue(number) {
      const { title, body, state, labels, assignees } = (await call(
        'GET',
        `${ISSUES}/${number}`,
      )) as Issue;
      return {
        title,
        body,
        state,
        labels: labels.map(({ name }) => name).sort(),
        assignees: assignees.map(({ login }) => login).sort(),
      };
    },
    async lastNumber() {
      const [last] = (await call(
        'GET',
        `${ISSUES}?state=all&per_page=1&sort=created&direction=desc`,
      )) as Issue[];
      return last?.number ?? 0;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
