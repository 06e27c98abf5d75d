import assert from 'node:assert/strict';
import { AdmittedTexts } from '../../../src/adapters/mysql/admission.ts';
import { MysqlCandidate } from '../../../src/adapters/mysql/candidate.ts';
import type { MysqlConnection } from '../../../src/adapters/mysql/connection.ts';
import { KnownDefinitions } from '../../../src/adapters/mysql/definitions.ts';
import { readDeployment } from '../../../src/adapters/mysql/deployment.ts';
import { readOptions } from '../../../src/adapters/mysql/options.ts';
import { ServerWatch } from '../../../src/adapters/mysql/server-state.ts';
import { ControlAccount, ExecutionSessions } from '../../../src/adapters/mysql/sessions.ts';
import { unobserved } from '../../../src/contract/steps.ts';
import type { ProtectedMariadb } from '../../mysql/protected.ts';

/** The parts of an open adapter: candidates with their session, and the name of their branch. */
export async function openInside({ options }: ProtectedMariadb) {
  const settings = readOptions(options);
  const control = new ControlAccount(options.control);
  const sessions = new ExecutionSessions(options.execution, settings);
  const connection = await control.connection();
  const deployment = await readDeployment(connection, settings.controlDatabase);
  const { counted } = await new ServerWatch(settings).read(connection);
  const definitions = await new KnownDefinitions(settings).read(connection, counted);

  async function hold() {
    const session = await sessions.take();
    const seen: string[] = [];
    const spied: MysqlConnection = new Proxy(session.connection, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== 'function') return value;
        return (...given: unknown[]) => {
          if (name === 'query' || name === 'queryAll') seen.push(...[given[0]].flat().map(String));
          return value.apply(target, given);
        };
      },
    });
    const candidate = new MysqlCandidate({
      ...{ sessions, control, deployment, settings, definitions, reached: unobserved },
      admitted: new AdmittedTexts(),
      session: { ...session, connection: spied },
    });
    const branch = () => {
      const name = /^xa start ('[0-9a-f]{32}')$/.exec(seen[0] ?? '')?.[1];
      assert.ok(name);
      return name;
    };
    return { candidate, branch, session: session.connection };
  }

  async function close() {
    await sessions.close();
    await control.close();
  }

  return { hold, close, relations: definitions.relations, control };
}
