// A host that asks, answers and executes one request, and dies at the point that it is told, or
// tells all points that it passes.
import { approver } from '../../src/index.ts';
import { openSqliteRequests, type RequestStore } from '../../src/requests/index.ts';
import { type DeskFacts, openDesk, PAY } from '../agents/desk.ts';

const { facts, alice, at } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly facts: DeskFacts;
  readonly alice: Parameters<typeof approver>[0];
  /** Which point; none for a run to the end. */
  readonly at?: number;
};
const passed: string[] = [];

function pass(point: string): void {
  passed.push(point);
  if (passed.length - 1 === at) process.kill(process.pid, 'SIGKILL');
}

/** Every call of the store is a point before it and a point after it. */
function watched(store: RequestStore): RequestStore {
  return new Proxy(store, {
    get(target, name: keyof RequestStore) {
      const method = target[name].bind(target) as (...values: unknown[]) => Promise<unknown>;
      if (name !== 'insert' && name !== 'change') return method;
      return async (...values: unknown[]) => {
        pass(`before ${name}`);
        const result = await method(...values);
        pass(`after ${name}`);
        return result;
      };
    },
  });
}

const store = watched(await openSqliteRequests(`${facts.folder}/requests.db`));
await using host = await openDesk(facts, { store }, { reached: pass });
const [tool] = host.tools;
pass('ask');
const { request = '' } = (await tool?.call(PAY.input)) ?? {};
pass('asked');
const { proposal } = await host.requests.get(request);
await host.requests.answer(request, approver(alice).sign(proposal, { expiresIn: '10m' }));
pass('answered');
await tool?.call(PAY.input);
pass('executed');
process.send?.(passed);
