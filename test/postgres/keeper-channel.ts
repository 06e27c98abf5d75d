import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { KeeperAnswer, KeeperOrder } from './keeper-loop.ts';

/** What the keeper says about its server after each order. */
export type KeeperReport = Extract<KeeperAnswer, { kind: 'done' }>;

/** The owner's end of the channel to a keeper process. */
export interface Keeper<Create> {
  readonly pid: number | undefined;
  /**
   * Resolves when the order was carried out; rejects with the keeper's words when it could not be.
   */
  order(order: KeeperOrder<Create>): Promise<KeeperReport>;
  /** Ends the server, removes its folder and waits until the keeper itself has ended. */
  end(): Promise<void>;
}

/** Starts a keeper. While no order is under way it does not hold the test process open. */
export function openKeeper<Create>(program: URL): Keeper<Create> {
  const {
    NODE_OPTIONS: _,
    NODE_TEST_CONTEXT: __,
    NODE_V8_COVERAGE: ___,
    ...inherited
  } = process.env;
  // A server may run as another user, who cannot enter a private folder of the owner's.
  const { EFFECTMATCH_SERVER_TMPDIR: open = inherited.TMPDIR } = inherited;
  const env = open === undefined ? inherited : { ...inherited, TMPDIR: open };
  const child = fork(fileURLToPath(program), {
    env,
    execArgv: ['--no-warnings'],
    detached: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  const ended = once(child, 'exit');
  let underWay = 0;
  const hold = (change: 1 | -1) => {
    underWay += change;
    if (underWay > 0) {
      child.ref();
      child.channel?.ref();
    } else {
      child.unref();
      child.channel?.unref();
    }
  };
  hold(1);
  hold(-1);

  let turn: Promise<unknown> = Promise.resolve();
  const ask = async (order: KeeperOrder<Create>): Promise<KeeperReport> => {
    if (!child.connected) throw new Error('the server was stopped');
    child.send(order);
    const answer = await Promise.race([
      once(child, 'message').then(([message]) => message as KeeperAnswer),
      ended.then(
        ([status]): KeeperAnswer => ({
          kind: 'failed',
          message: `the keeper process ended with ${status}`,
        }),
      ),
    ]);
    if (answer.kind === 'failed') throw new Error(answer.message);
    return answer;
  };
  return {
    pid: child.pid,
    order(order) {
      hold(1);
      const answered = turn.then(() => ask(order)).finally(() => hold(-1));
      turn = answered.catch(() => undefined);
      return answered;
    },
    async end() {
      hold(1);
      await turn;
      if (child.connected) child.disconnect();
      await ended;
      hold(-1);
    },
  };
}
