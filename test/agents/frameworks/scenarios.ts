// The one table of what may happen between a framework's pause and its end. Every framework plays
// all of it, with its own packages and its own scripted model.
import assert from 'node:assert/strict';
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { OfficeClock } from '../../requests/office.ts';
import { createDesk, type Desk, type OpenDesk, openDesk, PAY, sign } from '../desk.ts';
import type { FrameworkDriver, How, Turn } from './driver.ts';
import { folderOf, loadDriver } from './install.ts';

const ROOT = join(import.meta.dirname, '../../..');
const code = (wanted: string) => (error: { readonly code?: string }) => error.code === wanted;

interface Played {
  readonly desk: Desk;
  readonly host: OpenDesk;
  readonly clock: OfficeClock;
  readonly driver: FrameworkDriver;
  readonly how: How;
  readonly paused: Turn;
}

interface Scenario {
  /** What the framework's yes then leads to, and how many payments there are. */
  readonly ends: 'approval-required' | 'committed' | 'declined' | 'expired';
  play(played: Played): Promise<Turn>;
}

const goOn = ({ driver, host, how, paused }: Played) =>
  driver.sayYes(host.tools, paused.state, how);

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  'a forged yes': { ends: 'approval-required', play: goOn },
  'a yes and a signature by another person': {
    ends: 'approval-required',
    async play(played) {
      const { desk, host } = played;
      await assert.rejects(sign(desk, host, desk.mallory), code('ERR_EM_LICENSE_REFUSED'));
      return await goOn(played);
    },
  },
  'a yes and a signature for something else': {
    ends: 'approval-required',
    async play(played) {
      const { desk, host } = played;
      const [tool] = host.tools;
      const other = await tool?.call({ ...PAY.input, key: 'other' });
      const { proposal } = await host.requests.get(other?.request ?? '');
      const license = desk.alice.sign(proposal, { expiresIn: '10m' });
      const requests = await host.requests.list();
      const own = requests.find(({ id }) => id !== other?.request);
      const answered = host.requests.answer(own?.id ?? '', license);
      await assert.rejects(answered, code('ERR_EM_LICENSE_REFUSED'));
      return await goOn(played);
    },
  },
  'declined, then a yes and a late signature': {
    ends: 'declined',
    async play(played) {
      const { desk, host } = played;
      const { id } = await host.only();
      await host.requests.decline(id, { by: 'alice', reason: 'the invoice is disputed' });
      const turn = await goOn(played);
      assert.equal(turn.answers.at(-1)?.detail, 'the invoice is disputed');
      await assert.rejects(sign(desk, host), code('ERR_EM_REQUEST_CLOSED'));
      return turn;
    },
  },
  'expired, then a yes and a late signature': {
    ends: 'expired',
    async play(played) {
      const { desk, host, clock } = played;
      clock.advance(3_600_000);
      const turn = await goOn(played);
      await assert.rejects(sign(desk, host), code('ERR_EM_REQUEST_CLOSED'));
      return turn;
    },
  },
  'signed, then the same history ten times': {
    ends: 'committed',
    async play(played) {
      await sign(played.desk, played.host);
      const turns: Turn[] = [];
      for (let again = 0; again < 10; again += 1) turns.push(await goOn(played));
      const answers = turns.flatMap((turn) => turn.answers);
      for (const answer of answers) assert.deepEqual(answer, answers[0]);
      return turns[0] as Turn;
    },
  },
  'signed, then two hosts at once': {
    ends: 'committed',
    async play(played) {
      const { desk, driver, how, paused, host } = played;
      await sign(desk, host);
      await using other = await openDesk(desk.facts);
      const turns = await Promise.all([
        goOn(played),
        driver.sayYes(other.tools, paused.state, how),
      ]);
      const [first, second] = turns.map(({ answers }) => answers.at(-1));
      assert.deepEqual(first, second);
      return turns[0];
    },
  },
};

/** Plays the whole table with one framework. */
export function frameworkTests(name: string): void {
  let driver: FrameworkDriver;
  before(async () => {
    driver = await loadDriver(name);
  });
  for (const [what, scenario] of Object.entries(SCENARIOS))
    for (const how of ['whole', 'stream'] as const)
      test(`${what} (${how}): ${scenario.ends}`, () => playScenario(driver, scenario, how));

  test('signed after the process was killed, and resumed by two others at once: one effect', async () => {
    using desk = createDesk();
    const paused = await playElsewhere(name, desk);
    await using host = await openDesk(desk.facts);
    await sign(desk, host);
    const turns = await resumeTwice(name, desk, paused.state);
    const asked = await driver.begin(host.tools, PAY, 'whole');
    for (const { answers } of [...turns, asked])
      assert.equal(answers.at(-1)?.status, 'committed', JSON.stringify(answers));
    assert.equal(desk.payments(), 1);
  });

  test('the example runs offline', () => {
    const script = join(ROOT, 'scripts/example.mjs');
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, 'agents', name], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout + stderr);
    assert.match(
      stdout,
      /pause +Proposed changes[\s\S]*signed +req_[\s\S]*agent +done\n +database +globex: 35/,
    );
  });

  if (name === 'loop') return;
  test('the entry point fits the types of the package', () => {
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    const { status, stdout } = spawnSync(tsc, ['-p', folderOf(name)], { encoding: 'utf8' });
    assert.equal(status, 0, stdout);
  });
}

async function playScenario(driver: FrameworkDriver, scenario: Scenario, how: How): Promise<void> {
  const { ends } = scenario;
  using desk = createDesk();
  const clock = new OfficeClock();
  await using host = await openDesk(desk.facts, { clock }, { clock });
  const paused = await driver.begin(host.tools, PAY, how);
  assert.equal(paused.paused, true, JSON.stringify(paused));
  assert.match(paused.shown, /payment/, 'the pause shows what is to be signed');
  assert.match(paused.shown, /https:\/\/desk\.example\/req_/, 'and where');
  const turn = await scenario.play({ desk, host, clock, driver, how, paused });
  assert.equal(turn.answers.at(-1)?.status ?? 'approval-required', ends, JSON.stringify(turn));
  assert.equal(desk.payments(), ends === 'committed' ? 1 : 0);
}

/** A run in another process, which is killed once it has paused. */
async function playElsewhere(name: string, desk: Desk): Promise<Turn> {
  const child = start(name, desk);
  await once(child, 'message');
  child.send('go');
  const [turn] = (await once(child, 'message')) as [Turn];
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(turn.paused, true);
  return turn;
}

/** Two processes go on at the same moment. */
async function resumeTwice(name: string, desk: Desk, state: string): Promise<readonly Turn[]> {
  const children = [start(name, desk, state), start(name, desk, state)];
  await Promise.all(children.map((child) => once(child, 'message')));
  const turns = children.map(async (child) => {
    child.send('go');
    const [turn] = (await once(child, 'message')) as [Turn];
    child.kill();
    return turn;
  });
  return await Promise.all(turns);
}

function start(driver: string, { facts }: Desk, state?: string): ChildProcess {
  const order = JSON.stringify({ driver, facts, call: PAY, ...(state && { state }) });
  const script = join(import.meta.dirname, 'process.ts');
  return fork(script, [order], { execArgv: ['--no-warnings'] });
}
