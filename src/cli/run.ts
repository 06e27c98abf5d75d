import { parseSignedLicense } from '../crypto/signature.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import type { Terminal } from '../protocol/terminal.ts';
import { ACTION_FLAGS, actionOf, readAsked } from './action-argument.ts';
import { CONFIG_FLAG } from './arguments.ts';
import { executeInterruptibly } from './execute-interruptibly.ts';
import { EXIT, exitCodeOf } from './exit-code.ts';
import { withNext } from './guided-error.ts';
import { toneOf } from './journal-entries.ts';
import { loadConfig } from './load-config.ts';
import { assertKeyring } from './open-store.ts';
import { printable } from './output.ts';
import { readTextFile } from './text-file.ts';
import type { Verb } from './verb.ts';

/** Executes an action under a license, and prints the recorded verdict. */
export const run: Verb = {
  name: 'run',
  summary: 'execute an action under a license; it commits only if the outcome is the approved one',
  about: `Spends the license: the action runs in a held transaction, what it really did is compared with what was approved,
and exactly that is committed, or nothing. Whatever happens is a recorded verdict. A license that came from a rehearsal
is for the very action that was planned. The exit code is that of the verdict: ${EXIT.done} committed, ${EXIT.rejected} rejected and
no data changed (sequences that moved are listed), ${EXIT.diverged} diverged, ${EXIT.indeterminate} indeterminate. Ctrl-C discards what is held and records that.`,
  positionals: ['license'],
  flags: { ...ACTION_FLAGS, full: { about: 'show every difference in full' }, ...CONFIG_FLAG },
  examples: [
    `effectmatch run license.json --sql "update invoice set status = ? where id = ?" --values '["paid", 4711]'`,
    'effectmatch run license.json --action action.json --json',
  ],
  async run(args, output) {
    const asked = readAsked(args, 'run');
    const wanted = 'name the file that `effectmatch approve --out` wrote';
    const license = readTextFile(args.positionals[0] ?? '', wanted);
    withNext('ERR_EM_RECORD_INVALID', `${wanted}; nothing was done`, () =>
      parseSignedLicense(license),
    );
    const config = await loadConfig(args);
    assertKeyring(config);
    const terminal = await executeInterruptibly(config, license, await actionOf(config, asked));
    const text = renderTerminal(terminal, { full: args.has('full') });
    const next = adviseTerminal(terminal);
    output.document({ terminal, text, next });
    output.line(output.paint(toneOf(terminal.kind), printable(text)));
    output.line(`next: ${next}`);
    return exitCodeOf(terminal);
  },
};

const AGAIN = 'nothing was changed; plan it again and have it approved again';

/**
 * What to do after a refusal, by its reason. Where the action may have run, only data is said to be
 * unchanged: sequences do not roll back, and the verdict lists those that moved. Whatever is not
 * here is explained by its own detail.
 */
const ADVICE: Readonly<Record<string, string>> = {
  'action-failed':
    'no data was changed, and the license is spent; correct the action, then plan and approve it again',
  'action-invalid':
    'nothing was changed, and the license is still good; correct the action and run it again',
  'action-unbound': AGAIN,
  'adapter-changed': AGAIN,
  spent:
    'nothing was changed by this attempt; one approval buys one execution, so plan and approve again',
  busy: 'no data was changed, and the license is spent; plan and approve again when the other writer is done',
  'boundary-changed':
    'no data was changed, and the license is spent; see who changed what is named above, run `effectmatch doctor`, then plan and approve again',
  diverged:
    'no data was changed, and the license is spent; find out what made the differences above, or plan again to see and approve them',
  expired: 'nothing was changed; have the same proposal signed again with `effectmatch approve`',
  fault:
    'no data was changed, and the license is spent; see what failed above, then plan and approve again',
  'frame-changed': AGAIN,
  interrupted:
    'no data was changed, and the license is spent; plan it again and have it approved again',
  'issuer-not-designated':
    'nothing was changed; add the adapter to `may` of this issuer, then plan and approve again, or ask another approver',
  'issuer-unknown':
    'nothing was changed; add the approver to `issuers` in the configuration, then plan and approve again',
  'other-action':
    'nothing was changed, and the license is still good; run the very action that was planned',
  'outlet-denied':
    'no data was changed, and the license is spent; keep what is named above out of the action, or register the table in `relations`',
  'outlet-unclassified':
    'nothing was changed; run `effectmatch doctor`, close what it names, then plan and approve again',
  'policy-changed': AGAIN,
  'registration-mismatch': AGAIN,
  'signature-invalid':
    'nothing was changed; put the public key of the approver into `issuers`, as `keygen` printed it, then plan and approve again',
  'source-not-allowed':
    "nothing was changed; add 'rehearsed' to `sources` of this issuer, then plan and approve again",
  'stale-state': AGAIN,
};

function adviseTerminal(terminal: Terminal): string {
  const { occurrence } = terminal;
  const look = `effectmatch show ${occurrence.slice(0, 16)}`;
  switch (terminal.kind) {
    case 'committed':
      return `${look}; a receipt: effectmatch export --occurrence ${occurrence.slice(0, 16)} --out receipt.jsonl`;
    case 'rejected':
      return (
        ADVICE[terminal.reason] ??
        `${terminal.claim === undefined ? 'nothing' : 'no data'} was changed; ${look}`
      );
    case 'diverged':
      return `do not run it again; ${look}; undoing or completing it needs a new plan and a new license`;
    case 'indeterminate':
      return `do not run it again; \`effectmatch recover\` asks the backend, \`effectmatch resolve\` records what a person found out; ${look}`;
  }
}
