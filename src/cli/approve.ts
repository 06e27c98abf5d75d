import { resolve } from 'node:path';
import { approver, loadApproverKey, MAX_VALID_MS } from '../crypto/approver.ts';
import { parseDuration } from '../crypto/duration.ts';
import { parseProposal } from '../crypto/proposal.ts';
import { EffectMatchError } from '../errors.ts';
import type { License, Proposal } from '../protocol/license.ts';
import { renderLicense } from '../protocol/render-license.ts';
import type { Arguments } from './arguments.ts';
import { canAsk, confirm, confirmShortened } from './ask.ts';
import { EXIT, type ExitCode } from './exit-code.ts';
import { GuidedError, usageError, withNext } from './guided-error.ts';
import type { Output } from './output.ts';
import { leafThrough, pageOf, printRendering } from './print-rendering.ts';
import { assertFree, writePrivateFile } from './private-file.ts';
import { readTextFile } from './text-file.ts';
import type { Verb } from './verb.ts';

const EXPIRES = '10m';
const ASK_HELP = 'run `effectmatch approve --help`; nothing was signed';

/**
 * Shows what a proposal says and signs it. It needs the key alone: no configuration, store,
 * database or network.
 */
export const approve: Verb = {
  name: 'approve',
  summary: 'read a proposal, and sign it with your key',
  about: `Renders the proposal again from the very bytes that will be signed, and refuses when that is not the text it came
with. You read every change, what is not compared, how often it may run and what it releases; then you confirm, and the
license is written. Large outcomes are summarised by table and operation with samples: --full shows every line (on a
terminal in the program that PAGER names), --page N one page of them, and at the question "all" does so before you answer.
You sign all of it either way. It needs your key and nothing else, so run it on your own machine. Nothing becomes real by this: the
license buys one execution whose outcome is exactly this, until it expires.`,
  positionals: ['proposal'],
  flags: {
    expires: {
      value: 'DURATION',
      about: `how long the license is valid: 30s, 10m, 1h, 2d (default: ${EXPIRES})`,
    },
    force: { about: 'replace the file that --out names' },
    full: { about: 'show every change and every value in full, on a terminal in your pager' },
    key: { value: 'FILE', about: 'your key file, as `effectmatch keygen` writes it' },
    out: { value: 'FILE', about: 'where to write the license' },
    page: { value: 'N', about: 'show one page of every change in full, and sign nothing' },
    yes: { about: 'sign without asking; for scripts that run after the decision was made' },
  },
  examples: [
    'effectmatch approve proposal.json --key ap-team.key.json --out license.json',
    'effectmatch approve proposal.json --key ap-team.key.json --expires 1h --yes --out license.json',
  ],
  async run(args, output) {
    const page = args.count('page', 1);
    const [out, keyFile] =
      page === undefined ? [needed(args, 'out'), needed(args, 'key')] : ['', ''];
    const wanted = 'name the file that `effectmatch plan --out` wrote';
    const text = readTextFile(args.positionals[0] ?? '', wanted);
    const proposal = withNext('ERR_EM_RECORD_INVALID', `${wanted}; nothing was signed`, () =>
      parseProposal(text),
    );
    if (page !== undefined) return printPage(proposal, page, output);
    const key = loadKey(keyFile);
    const expiresIn = args.value('expires') ?? EXPIRES;
    // What would fail after the answer is refused before the question.
    withNext('ERR_EM_USAGE', ASK_HELP, () => parseDuration(expiresIn, MAX_VALID_MS));
    assertFree(resolve(out), { force: args.has('force') });
    const signer = approver(key);
    const full = args.has('full');
    const whole = () => renderLicense(proposal.draft, proposal.approved, { full: true });
    const rendering = full ? whole() : proposal.rendering;
    if (full) await leafThrough(rendering, output);
    else printRendering(rendering, output);
    output.line();
    if (!args.has('yes')) {
      if (!canAsk(output)) {
        const next =
          'run it on a terminal, or pass --yes to sign without a prompt; nothing was signed';
        throw new GuidedError(
          'ERR_EM_USAGE',
          'it cannot ask for confirmation here: this is not a terminal',
          next,
        );
      }
      const question = `Sign all of this as ${key.issuer}, valid for ${expiresIn}?`;
      const isShortened = !full && /^Shortened:/m.test(rendering);
      const signs = isShortened
        ? await confirmShortened(question, () => leafThrough(whole(), output))
        : await confirm(question);
      if (!signs) {
        output.line('not signed: nothing was written');
        return EXIT.rejected;
      }
    }
    const license = signer.sign(proposal, { expiresIn });
    await writePrivateFile(resolve(out), [JSON.stringify(license)], { force: args.has('force') });
    const { expiresAt } = license.license;
    output.document({ issuer: key.issuer, expiresAt, rendering, file: resolve(out) });
    output.line(
      `${output.paint('good', 'signed')}  ${out}, by ${key.issuer}, valid until ${expiresAt}`,
    );
    output.line(`next: effectmatch run ${out} ${actionFlags(license.license)}`);
    return EXIT.done;
  },
};

/** How `run` is told the action that this license is for. */
function actionFlags({ operation, action }: License): string {
  if (operation !== undefined) return `--operation ${operation} --input '…'`;
  return action === undefined ? '--sql "…"' : '--sql "…", with the action that was planned';
}

function printPage(proposal: Proposal, wanted: number, output: Output): ExitCode {
  const whole = renderLicense(proposal.draft, proposal.approved, { full: true });
  const { page, pages, text } = pageOf(whole, wanted, 'approve');
  output.document({ page, pages, rendering: text });
  printRendering(text, output);
  output.line();
  output.line(`page ${page} of ${pages}; nothing was signed`);
  return EXIT.done;
}

function needed(args: Arguments, flag: string): string {
  const value = args.value(flag);
  if (value === undefined) throw usageError(`--${flag} is needed`, 'approve');
  return value;
}

function loadKey(file: string) {
  try {
    const next = 'give --key the file that `effectmatch keygen` wrote; nothing was signed';
    return withNext('ERR_EM_KEYRING_INVALID', next, () => loadApproverKey(file));
  } catch (cause) {
    if (!(cause instanceof EffectMatchError) || cause.code !== 'ERR_EM_NOT_FOUND') throw cause;
    const next =
      'make a key with `effectmatch keygen NAME` and put its public key into the configuration';
    throw new GuidedError(
      cause.code,
      `there is no key at ${resolve(file)}; nothing was signed`,
      next,
      { cause },
    );
  }
}
