// Goal: what a message tells a person to do exists and works. Method: every command that any text of
// the sources names is read by the program's own parser, and every one that is complete is run in a
// folder where something has happened; every reason of a rejection gets advice that fits it.
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { suite, test } from 'node:test';
import { adviceFor, adviseTerminal } from '../../src/cli/advice.ts';
import type { TerminalOf } from '../../src/protocol/terminal.ts';
import { rejectionReasons } from '../docs/reasons.ts';
import { Desk, SHOP } from './newcomer.ts';

/** Every command line between back quotes in a text of the sources, escaped or not. */
function namedCommands(): readonly string[] {
  const found = new Set<string>();
  for (const file of globSync('src/**/*.ts')) {
    const text = readFileSync(file, 'utf8').replaceAll('\\`', '`');
    for (const [, command = ''] of text.matchAll(/`effectmatch ([a-z][^`\n]*)`/g))
      found.add(command.trim());
  }
  return [...found].sort();
}

const commands = namedCommands();

test('the sources name commands', () => {
  assert.ok(commands.length > 25, `only ${commands.length} seen`);
});

suite('a command that a message names', async () => {
  using desk = new Desk();
  const helps = new Map<string, string>();
  for (const command of commands) {
    const [verb = ''] = command.split(' ');
    if (verb === 'help' || helps.has(verb)) continue;
    const { code, stdout } = await desk.run([verb, '--help']);
    assert.equal(code, 0, `there is no verb ${verb}, which a message names`);
    helps.set(verb, stdout);
  }
  for (const command of commands) {
    const flags = command.match(/--[a-z-]+/g) ?? [];
    if (flags.length === 0) continue;
    test(`\`effectmatch ${command}\` has the flags that it is given`, () => {
      const help = helps.get(command.split(' ')[0] ?? '') ?? '';
      for (const flag of flags) assert.ok(help.includes(flag), `${flag} is not a flag there`);
    });
  }
});

/** Commands that can be run as they are written, once a placeholder has its value. */
const RUNNABLE: Readonly<Record<string, readonly number[]>> = {
  doctor: [0],
  'doctor --all': [0],
  'export --public-key': [0],
  help: [0],
  journal: [0],
  'journal --verify': [0],
  recover: [0],
  'show <occurrence>': [0],
};

test('commands that stand for themselves can be run as they are printed', async () => {
  using desk = new Desk();
  desk.change(SHOP);
  const sql = ['--sql', "update invoice set status = 'open' where id = 1"];
  const sign = ['--key', 'alice.key.json', '--yes', '--out', 'license.json'];
  for (const words of [
    ['init', 'books.db', '--approver', 'alice'],
    ['plan', ...sql, '--out', 'proposal.json'],
    ['approve', 'proposal.json', ...sign],
  ])
    assert.equal((await desk.run(words)).code, 0);
  const ran = await desk.run(['run', 'license.json', ...sql, '--json']);
  const { terminal, next } = JSON.parse(ran.stdout);
  const complete = commands.filter((command) => !/[A-Z$…]|NAME|\bplan\b|\bapprove\b/.test(command));
  for (const command of Object.keys(RUNNABLE))
    assert.ok(commands.includes(command), `no message names \`effectmatch ${command}\` any longer`);
  for (const command of complete) {
    const codes = RUNNABLE[command];
    if (codes === undefined) continue;
    const words = command.replace('<occurrence>', terminal.occurrence).split(' ');
    const { code, stdout, stderr } = await desk.run(words);
    assert.ok(code !== null && codes.includes(code), `${command}: ${code}\n${stdout}${stderr}`);
  }
  for (const [, command = ''] of String(next).matchAll(/effectmatch ([^;]+)/g)) {
    const { code, stderr } = await desk.run(command.trim().split(' '));
    assert.equal(code, 0, `${command}: ${stderr}`);
  }
});

/** A rejection for this reason, before or after the claim. */
function rejected(reason: string, claimed: boolean): TerminalOf<'rejected'> {
  const occurrence = `occ_${'0'.repeat(40)}`;
  const claim = claimed ? { claim: '0'.repeat(64) } : {};
  return { kind: 'rejected', reason, occurrence, ...claim } as unknown as TerminalOf<'rejected'>;
}

test('advice about a rejection says what became of the data and of the license', () => {
  const reasons = rejectionReasons();
  for (const reason of reasons) {
    for (const claimed of [false, true]) {
      const advice = adviseTerminal(rejected(reason, claimed));
      const own = adviceFor(reason);
      if (own !== undefined) assert.equal(advice, own);
      assert.match(advice, /nothing was|no data was changed|do not repeat it/, reason);
    }
  }
});

test('advice never says that a used license is good, or that a good one is used', () => {
  for (const claimed of [false, true]) {
    const advice = adviseTerminal(rejected('anything-else', claimed));
    assert.equal(/the license is spent/.test(advice), claimed);
  }
  const spent = adviseTerminal(rejected('spent', false));
  assert.doesNotMatch(spent, /still good|plan/);
  assert.doesNotMatch(
    adviseTerminal({ ...rejected('x', true), kind: 'diverged' } as never),
    /recover/,
  );
});
