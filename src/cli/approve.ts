import { type ApproverKey, approver, loadApproverKey, MAX_VALID_MS } from '../crypto/approver.ts';
import { parseCountersignable } from '../crypto/countersign.ts';
import { parseDuration } from '../crypto/duration.ts';
import { parseProposal } from '../crypto/proposal.ts';
import { hasCode, messageOf } from '../errors.ts';
import type { Proposal, SignedLicense } from '../protocol/license.ts';
import { isNoteShortened, renderNote } from '../protocol/note.ts';
import { renderLicense } from '../protocol/render-license.ts';
import { renderTerminal } from '../protocol/render-terminal.ts';
import type { ApprovalRequest } from '../requests/request.ts';
import { isRequestId } from '../requests/wanted.ts';
import { type Arguments, CONFIG_FLAG, EXIT, type ExitCode, type Verb } from './command.ts';
import { GuidedError, withNext } from './fault.ts';
import { assertFree, readTextFile, writePrivateFile } from './files.ts';
import { type Output, printable } from './output.ts';
import { canAsk, confirm, pageThrough, printNote, printRendering } from './prompt.ts';
import { exitCodeOfRequest, openConfigured } from './requests.ts';

const EXPIRES = '10m';
const PAGE_LINES = 200;

/** Shows a proposal and signs it. For a file it needs only the key. */
export const verb: Verb = {
  summary: 'read a proposal, and sign it with your key',
  about: `Shows the proposal, rendered from the bytes that will be signed: every change, what is not
compared, how often it may run and what it releases. Below it is what the agent says, not verified
and not signed: who asks, why, and the action. After you confirm, it writes the license, which
allows one execution with exactly this outcome until it expires. Large outcomes are summarised;
--full or the answer "all" shows every line (on a terminal, in the program that PAGER names), and
--page N shows one page. You sign all of it either way. Signing a proposal file needs only your key,
so do it on your own machine; --request also needs the configuration. If two people must sign, the
second one names the license of the first instead of the proposal, or the same request.`,
  optional: ['proposal'],
  flags: {
    expires: {
      value: 'DURATION',
      about: `how long the license is valid: 30s, 10m, 1h, 2d (default: ${EXPIRES})`,
    },
    force: { about: 'replace the file that --out names' },
    full: { about: 'show every change and every value in full; on a terminal, in your pager' },
    key: { value: 'FILE', about: 'your key file, as `effectmatch keygen` writes it' },
    out: { value: 'FILE', about: 'where to write the license' },
    request: {
      value: 'ID',
      about: 'sign what this request asks for, and answer it with the license',
    },
    ...CONFIG_FLAG,
    page: { value: 'N', about: 'show one page of every change in full, and sign nothing' },
    yes: { about: 'sign without asking; for scripts that run after the decision was made' },
  },
  examples: [
    'proposal.json --key ap-team.key.json --out license.json',
    '--request req_1f3a --key ap-team.key.json',
    'license.json --key cfo.key.json --out signed-twice.json',
  ],
  async run(args, output) {
    if (args.has('request') === (args.first !== ''))
      throw args.wrong('name a proposal file, or a request with --request ID');
    return await (args.has('request') ? approveRequest : approveFile)(args, output);
  },
};

/** Signs a proposal or a license in a file. */
async function approveFile(args: Arguments, output: Output): Promise<ExitCode> {
  const page = args.count('page', 1);
  if (page !== undefined) return printPage(args, readSignable(args.first), page, output);
  const [out, file] = [args.needed('out'), args.neededPath('out')];
  const force = args.has('force');
  args.needed('key');
  const proposal = readSignable(args.first);
  assertFree(file, { force });
  const signed = await signShown(args, proposal, output);
  if (signed === undefined) return EXIT.rejected;
  await writePrivateFile(file, [JSON.stringify(signed)], { force });
  const { expiresAt } = signed.license;
  const issuer = signed.second?.issuer ?? signed.license.issuer;
  const rendering = args.has('full') ? renderWhole(proposal) : proposal.rendering;
  output.document({ issuer, expiresAt, rendering, note: proposal.note ?? null, file });
  output.item('good', 'signed', `${out}, by ${issuer}, valid until ${expiresAt}`);
  output.line(`next: ${nextOf(out, signed)}`);
  return EXIT.done;
}

/** Answers a request. It is executed at once unless the agent has to call. */
async function approveRequest(args: Arguments, output: Output): Promise<ExitCode> {
  const page = args.count('page', 1);
  if (page === undefined) args.needed('key');
  await using opened = await openConfigured(args);
  const { requests } = opened;
  const request = await requests.recheck(await requests.findId(args.needed('request')));
  const { id, first, proposal } = request;
  const shown = first === undefined ? proposal : signableOf(first);
  if (page !== undefined) return printPage(args, shown, page, output);
  assertWaiting(request);
  const signed = await signShown(args, shown, output);
  if (signed === undefined) return EXIT.rejected;
  const answered = await requests.answer(id, signed);
  const needsSecond = answered.first !== undefined;
  const isDue = !needsSecond && answered.mode === 'on-approval';
  const ended = isDue ? await requests.execute(id) : answered;
  output.document(ended);
  const by = answered.answeredBy ?? signed.license.issuer;
  output.item('good', 'signed', `${id}, by ${by}`);
  if (needsSecond) {
    output.line('a second person must sign it too; until then nothing is executed');
    output.line(`next: effectmatch approve --request ${id} --key THEIRS.key.json`);
  } else if (ended.terminal === undefined) {
    output.line(`${ended.state}: it runs when the agent calls again`);
  } else {
    output.line(printable(renderTerminal(ended.terminal)));
    return exitCodeOfRequest(ended);
  }
  return EXIT.done;
}

/** What is shown and signed: a proposal, or a license that needs a second signature. */
type Signable = Proposal & { readonly first?: SignedLicense };

function signableOf(first: SignedLicense | unknown): Signable {
  const { license, approved, signature, rendering } = parseCountersignable(first);
  return { draft: license, approved, rendering, first: { license, approved, signature } };
}

/** Shows the proposal, asks for confirmation, and signs; undefined if the answer was no. */
async function signShown(
  args: Arguments,
  proposal: Signable,
  output: Output,
): Promise<SignedLicense | undefined> {
  const key = loadKey(args.neededPath('key'));
  const expiresIn = readExpiry(args, EXPIRES);
  const signer = approver(key);
  const { first } = proposal;
  const next =
    'name the file that `effectmatch plan --out` wrote, or sign with another person’s key';
  const countersigned = withNext('ERR_EM_USAGE', `${next}; nothing was signed`, () =>
    first === undefined ? undefined : signer.countersign(first),
  );
  const full = args.has('full');
  const rendering = full ? renderWhole(proposal) : proposal.rendering;
  if (full) await pageThrough(rendering, output);
  else printRendering(rendering, output);
  printNote(proposal, { full }, output);
  output.line();
  const question = questionFor(proposal, key.issuer, expiresIn);
  const showAll = () => pageThrough(renderEverything(proposal), output);
  const isShortened = !full && (/^Shortened:/m.test(rendering) || isNoteShortened(proposal.note));
  if (!(await isSigningConfirmed(args, question, output, isShortened ? showAll : undefined)))
    return undefined;
  return countersigned ?? signer.sign(proposal, { expiresIn });
}

function questionFor({ first }: Signable, issuer: string, expiresIn: string): string {
  if (first === undefined) return `Sign all of this as ${issuer}, valid for ${expiresIn}?`;
  const { license } = first;
  return `${license.issuer} signed this, valid until ${license.expiresAt}. Sign it too, as ${issuer}?`;
}

/** Rejects a request that cannot be answered, before anything is shown. */
function assertWaiting({ id, state, detail, answeredBy }: ApprovalRequest): void {
  if (state === 'pending') return;
  const who = answeredBy === undefined ? '' : `, answered by ${answeredBy}`;
  const why = detail === undefined ? '' : `: ${detail}`;
  const next =
    state === 'stale' || state === 'expired'
      ? `propose it again with \`effectmatch renew ${id}\`; nothing was signed`
      : 'look at it with `effectmatch requests`; nothing was signed';
  throw new GuidedError('ERR_EM_REQUEST_CLOSED', `${id} is ${state}${who}${why}`, next);
}

function readSignable(file: string): Signable {
  const wanted = 'name the file that `effectmatch plan --out` wrote';
  const text = readTextFile(file, wanted);
  const next = `${wanted}; nothing was signed`;
  const parse = isSigned(text) ? signableOf : parseProposal;
  return withNext('ERR_EM_RECORD_INVALID', next, () => parse(text));
}

/** Whether a file contains a signature. The rest of it is validated later. */
function isSigned(text: string): boolean {
  try {
    return Object.hasOwn(Object(JSON.parse(text)), 'signature');
  } catch {
    return false;
  }
}

/** How long a license is valid. It is read before anything is shown, so that it cannot fail later. */
export function readExpiry(args: Arguments, usual: string): string {
  const expiresIn = args.value('expires') ?? usual;
  try {
    parseDuration(expiresIn, MAX_VALID_MS);
    return expiresIn;
  } catch (cause) {
    if (hasCode(cause, 'ERR_EM_USAGE')) throw args.wrong(messageOf(cause));
    throw cause;
  }
}

/** Asks for confirmation unless `--yes` was given. Throws if it cannot ask. */
export async function isSigningConfirmed(
  args: Arguments,
  question: string,
  output: Output,
  showAll?: () => Promise<void>,
): Promise<boolean> {
  if (args.has('yes')) return true;
  if (!canAsk(output)) {
    const message = 'cannot ask for confirmation: this is not a terminal';
    const next = 'run it on a terminal, or pass --yes to sign without a prompt; nothing was signed';
    throw new GuidedError('ERR_EM_USAGE', message, next);
  }
  if (await confirm(question, showAll)) return true;
  output.line('not signed: nothing was written');
  return false;
}

/** A license for a request goes back to the request. Any other license is run directly. */
function nextOf(out: string, signed: SignedLicense): string {
  if (isRequestId(signed.license.task))
    return `send ${out} where you got the proposal: the console, or the person who sent it`;
  return `effectmatch run ${out} ${actionFlags(signed)}`;
}

/** The flags with which `run` gets the action of this license. */
function actionFlags({ license, approved }: SignedLicense): string {
  const { operation, action } = license;
  if (operation !== undefined) return `--operation ${operation} --input '…'`;
  if (approved.registration.capability !== undefined) return '--action action.json';
  const flags = 'with --sql, --file or --action';
  return action === undefined ? flags : `${flags} as for \`plan\``;
}

function renderWhole({ draft, approved }: Proposal): string {
  return renderLicense(draft, approved, { full: true });
}

/** The full text that is signed, and the unsigned note. */
function renderEverything(proposal: Proposal): string {
  const note = renderNote(proposal.note, { full: true });
  return note === '' ? renderWhole(proposal) : `${renderWhole(proposal)}\n\n${note}`;
}

function printPage(args: Arguments, proposal: Proposal, page: number, output: Output): ExitCode {
  const lines = renderWhole(proposal).split('\n');
  const pages = Math.ceil(lines.length / PAGE_LINES);
  if (page > pages)
    throw args.wrong(
      `page ${page} does not exist: there are ${pages} pages of ${PAGE_LINES} lines`,
    );
  const rendering = lines.slice((page - 1) * PAGE_LINES, page * PAGE_LINES).join('\n');
  output.document({ page, pages, rendering });
  printRendering(rendering, output);
  output.line();
  output.line(`page ${page} of ${pages}; nothing was signed`);
  return EXIT.done;
}

/** Loads an approver's key file. */
export function loadKey(file: string): ApproverKey {
  try {
    const next = 'give --key the file that `effectmatch keygen` wrote; nothing was signed';
    return withNext('ERR_EM_KEYRING_INVALID', next, () => loadApproverKey(file));
  } catch (cause) {
    if (!hasCode(cause, 'ERR_EM_NOT_FOUND')) throw cause;
    const message = `no key at ${file}; nothing was signed`;
    const next =
      'make a key with `effectmatch keygen NAME` and add its public key to the configuration';
    throw new GuidedError('ERR_EM_NOT_FOUND', message, next, cause);
  }
}
