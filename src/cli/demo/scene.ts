import { isDeepStrictEqual } from 'node:util';
import type { Lineage, PrepareRequest, Runtime, SignedLicense, Terminal } from '../../index.ts';
import {
  approver,
  EffectMatchError,
  generateApprover,
  renderApproved,
  renderTerminal,
} from '../../index.ts';
import { type Output, printable, type Tone, toneOf, wrap } from '../output.ts';

/** Prints what happens in the demo, and stops it if anything differs from what the demo says. */
export class Scene {
  readonly folder: string;
  /** The acts so far, for `--json`. */
  readonly acts: { readonly title: string; readonly terminals: Terminal[] }[] = [];
  /** The approver's key pair. The runtime gets only the public key. */
  readonly key = generateApprover('ap-team');
  readonly #output: Output;
  /** The outcomes approved so far, and the act of each. */
  readonly #approved = new Map<string, number>();
  #shipments = 0;

  constructor(folder: string, output: Output) {
    this.folder = folder;
    this.#output = output;
  }

  /** Starts an act. */
  act(title: string): void {
    this.acts.push({ title, terminals: [] });
    this.#shipments = 0;
    this.#output.line(`\n${this.#output.paint('strong', `${this.acts.length}. ${title}`)}`);
  }

  /** Prints text with a label before its first line. */
  tell(about: string, text: string, tone: Tone = 'plain'): void {
    for (const [index, part] of wrap(printable(text), 86).entries()) {
      const label = this.#output.paint('dim', (index === 0 ? about : '').padEnd(11));
      this.#output.line(`   ${label}${this.#output.paint(tone, part)}`);
    }
  }

  /** Prints an outcome, and has the approver sign it. */
  async approve(runtime: Runtime, request: PrepareRequest): Promise<SignedLicense> {
    const proposal = await runtime.prepare(request);
    const text = renderApproved(proposal.approved);
    const before = this.#approved.get(text);
    this.tell('approved', before === undefined ? text : `as in ${before}`);
    this.#approved.set(text, before ?? this.acts.length);
    return approver(this.key).sign(proposal, { expiresIn: '10m' });
  }

  /** Prints a verdict. `expected` is its kind, or the reason of a rejection. */
  verdict(terminal: Terminal, expected: string): void {
    this.acts.at(-1)?.terminals.push(terminal);
    const text = renderTerminal(terminal).replace(/^[a-z]+/, (kind) => kind.toUpperCase());
    this.tell('verdict', text, toneOf(terminal.kind));
    this.expect(
      'verdict',
      terminal.kind === 'rejected' ? terminal.reason : terminal.kind,
      expected,
    );
  }

  /** Tries to ship, which depends on the payment. `expected` is `released`, or why it is halted. */
  async ship(runtime: Runtime, lineage: Lineage, expected: string): Promise<void> {
    const allowed = this.#shipments + (expected === 'released' ? 1 : 0);
    const release = await runtime.continuation(lineage, 'ship').release(() => {
      this.#shipments += 1;
    });
    const answer = release.kind === 'released' ? 'released' : release.why;
    const shipped =
      this.#shipments === 0
        ? 'not shipped'
        : this.#shipments === 1
          ? 'shipped once'
          : `shipped ${this.#shipments} times`;
    this.tell('shipping', `${answer === 'released' ? answer : `halted (${answer})`}: ${shipped}`);
    this.expect('shipping', [answer, this.#shipments], [expected, allowed]);
  }

  /** Stops the demo if a result is not the expected one. */
  expect(what: string, found: unknown, expected: unknown): void {
    if (isDeepStrictEqual(found, expected)) return;
    const values = `${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`;
    throw new EffectMatchError(
      'ERR_EM_INVARIANT',
      `act ${this.acts.length} of the demo, ${what}: ${values}`,
    );
  }
}
