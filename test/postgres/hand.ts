import type { PostgresDeployment } from '../../src/adapters/postgres/control.ts';
import { readDeployment } from '../../src/adapters/postgres/control.ts';
import { CALLS } from '../../src/adapters/postgres/prepared.ts';
import { Connection, sqlState } from '../../src/postgres/connection.ts';
import type { ProtectedDatabase } from './protected.ts';

const OBSERVE = "select * from effectmatch.observe('{}', '{}')";

/** Opens a stage, as the runtime would, for the one occurrence that {@link Hand} knows. */
export const OPEN = "select * from effectmatch.open('occ_hand', '{}', 30000, 2000)";

/** A session of the execution login that is driven by hand, outside the runtime. */
export class Hand implements AsyncDisposable {
  readonly session: Connection;
  /** The command tag or SQLSTATE of every statement so far. */
  readonly told: string[] = [];
  readonly #deployment: PostgresDeployment;
  #xid = '';

  private constructor(session: Connection, deployment: PostgresDeployment) {
    this.session = session;
    this.#deployment = deployment;
  }

  /** Logs in, and reads with the control login what only the runtime knows. */
  static async open({ options }: ProtectedDatabase): Promise<Hand> {
    await using control = await Connection.open(options.control, 'test control');
    const deployment = await readDeployment(control);
    const session = await Connection.open(options.execution, 'test execution');
    await session.prepare(CALLS);
    return new Hand(session, deployment);
  }

  /** Runs statements in order, each as a client would send it; errors are noted, not thrown. */
  async say(...statements: readonly string[]): Promise<void> {
    for (const sql of statements) {
      await this.#note(async () => {
        const { command, rows } = await this.session.query(sql);
        if (sql === OPEN) this.#xid = String(rows[0]?.[0]);
        return command;
      });
    }
  }

  /** Several statements in one message of the simple protocol. */
  async script(text: string): Promise<void> {
    await this.#note(async () => {
      await this.session.script(text);
      return 'SCRIPT';
    });
  }

  /**
   * Seals the stage, says something, and promotes it as the runtime would: with the deployment's
   * secret.
   */
  async promote(...between: readonly string[]): Promise<void> {
    await this.say(OBSERVE, ...between);
    const [occurrence, key, seal, text] = ['occ_hand', 'k', 'm', '{}'] as const;
    const mac = this.#deployment.sign('promote', this.#xid, '0', occurrence, key, seal, text);
    await this.#note(async () => {
      const values = [this.#xid, '0', occurrence, text, key, seal, mac];
      await this.session.query('select effectmatch.promote($1, $2, $3, $4, $5, $6, $7)', values);
      return 'PROMOTED';
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.session.close();
  }

  async #note(work: () => Promise<string>): Promise<void> {
    this.told.push(await work().catch((error: unknown) => sqlState(error) ?? String(error)));
  }
}
