import { fetchSignable, type Signable, sendLicense } from './documents.ts';
import { button, paragraph, type Say } from './elements.ts';
import { confirmReading } from './reading.ts';
import { findSigners, type Signer, signerButtons, siteOf } from './signers.ts';

/** Offers to sign the selected requests. The approver reads each one; each gets its own license. */
export async function offerBulk(box: HTMLElement): Promise<void> {
  const signers = await findSigners(siteOf(box));
  const buttons = signerButtons(signers, (signer, say) => signChosen(box, signer, say));
  const none = paragraph(
    'This device has no key that can sign these. Open a request to create one.',
  );
  const usual = document.querySelectorAll<HTMLInputElement>('input[data-usual]');
  const all = button(`Select the ${usual.length} usual ones`, () => {
    for (const one of usual) one.checked = true;
  });
  const more = usual.length > 0 ? [all] : [];
  box.replaceChildren(...more, ...(buttons.length === 0 ? [none] : buttons));
}

async function signChosen(box: HTMLElement, signer: Signer, say: Say): Promise<void> {
  const chosen = [...document.querySelectorAll<HTMLInputElement>('input[name=id]:checked')];
  const open = chosen.filter(({ dataset }) => dataset.first !== signer.issuer);
  if (open.length === 0)
    throw new Error(`select at least one request that ${signer.issuer} has not signed`);
  const signables = await Promise.all(
    open.map(({ value, dataset }) => fetchSignable(value, dataset.first ?? '', say)),
  );
  const seconds = signables.filter(({ first }) => first !== undefined).length;
  const also = seconds === 0 ? '' : ` Another person has already signed ${seconds} of them.`;
  const expiresIn = await confirmReading({
    title: `Sign these ${signables.length} as ${signer.issuer}?`,
    aside: `Each one gets its own signature. Unusual ones come first.${also}`,
    documents: signables.map(({ document: read }) => read),
    asksLifetime: seconds < signables.length,
  });
  if (expiresIn === undefined) return;
  for (const one of chosen) one.checked = false;
  const { form } = siteOf(box);
  report(await signAll(signables, { form, say }, (one) => one.sign(signer, expiresIn)));
}

/** Signs one request after another. A refused one does not stop the others. */
async function signAll(
  signables: readonly Signable[],
  { form, say }: { readonly form: string; readonly say: Say },
  sign: (one: Signable) => ReturnType<Signable['sign']>,
): Promise<readonly string[]> {
  const refused: string[] = [];
  for (const [index, one] of signables.entries()) {
    const { request } = one;
    await say(`Signing ${index + 1} of ${signables.length}…`);
    const answer = await sendLicense({ form, request, say }, await sign(one), 'application/json');
    const { tone, text } = (await answer.json()) as { tone: string; text: string };
    if (tone !== 'good') refused.push(`${request.slice(0, 12)}: ${text}`);
  }
  return [`${signables.length - refused.length} of ${signables.length} signed.`, ...refused];
}

/** Shows the results at the top and refreshes the list of remaining requests. */
function report([done = '', ...refused]: readonly string[]): void {
  const notice = document.createElement('div');
  notice.className = refused.length === 0 ? 'notice good' : 'notice bad';
  notice.setAttribute('role', 'status');
  notice.append(paragraph(done, 'done'), ...refused.map((line) => paragraph(line)));
  document.querySelector('main')?.prepend(notice);
  notice.scrollIntoView({ block: 'nearest' });
  document.dispatchEvent(new Event('answered'));
}
