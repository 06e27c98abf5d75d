import { contentOfResolution, writeResolution } from '../../crypto/decision.ts';
import { digestRecord, occurrenceId } from '../../crypto/digest.ts';
import { type License, licenseRecord } from '../../protocol/license.ts';
import { approvedRecord } from '../../protocol/manifest.ts';
import type { ExecutionId, OccurrenceId } from '../../protocol/record.ts';
import { renderLicense } from '../../protocol/render-license.ts';
import type { Finding } from '../../protocol/resolution.ts';
import { paragraph, preformatted, submit } from './elements.ts';
import { confirm } from './reading.ts';
import { findSigners, keysHere, type Signer, signerButtons, siteOf } from './signers.ts';

/** Lets an operator sign what happened to an effect that the evidence did not establish. */
export async function offerResolving(box: HTMLElement): Promise<void> {
  const site = siteOf(box);
  const signers = await findSigners(site);
  const buttons = signerButtons(signers, (signer) => resolve(box, signer));
  const isOpen = signers.length === 0;
  const parts = { isOpen, role: 'operator', refresh: () => offerResolving(box) };
  box.replaceChildren(...buttons, await keysHere(site, parts));
}

async function resolve(box: HTMLElement, signer: Signer): Promise<void> {
  const occurrence = (box.dataset.occurrence ?? '') as OccurrenceId;
  const choice = document.querySelector<HTMLSelectElement>('#finding');
  const field = document.querySelector<HTMLTextAreaElement>('#evidence');
  const evidence = field?.value.trim() ?? '';
  if (evidence === '') throw new Error('describe your evidence');
  const { license, execution, text } = await fetchClaim(occurrence);
  const isSigned = await confirm({
    title: `Sign this decision as ${signer.issuer}?`,
    content: [
      paragraph('This may or may not have happened:'),
      preformatted(text),
      paragraph(`What you found: ${choice?.selectedOptions[0]?.text ?? ''}.`, 'state'),
      paragraph('Your evidence:'),
      preformatted(evidence),
      paragraph('It sends nothing and releases nothing.'),
    ],
  });
  if (!isSigned) return;
  const lineage = digestRecord(licenseRecord, license);
  const finding = (choice?.value ?? '') as Finding;
  const decider = { name: signer.issuer, key: signer.key, nowMs: Date.now() };
  const decided = writeResolution(decider, { occurrence, execution, lineage, finding, evidence });
  const signature = await signer.sign(contentOfResolution(decided));
  const { form } = siteOf(box);
  const resolution = JSON.stringify({ ...decided, signature });
  const fields = { form, evidence, resolution };
  await submit(`/operations/resolve/${occurrence}`, fields, { redirect: 'manual' });
  location.reload();
}

/** Fetches the license of an occurrence and the outcome that the license names. */
async function fetchClaim(occurrence: OccurrenceId) {
  const answer = await fetch(`/history/${occurrence}/claim.json`);
  const found = (await answer.json()) as Record<'license' | 'approved' | 'execution', unknown>;
  const license = licenseRecord.parse(found.license);
  if (!occurrencesOf(license).includes(occurrence))
    throw new Error('the server sent the license of another occurrence');
  const approved = approvedRecord.parse(found.approved);
  const isPlain = approved.registration.values === 'plain';
  if (isPlain && digestRecord(approvedRecord, approved) !== license.approved)
    throw new Error('the server sent a different outcome from the one that was approved');
  const text = isPlain
    ? renderLicense(license, approved)
    : `${license.task}, in ${license.adapter}; this deployment does not keep the values`;
  return { license, execution: found.execution as ExecutionId, text };
}

function occurrencesOf(record: License): readonly OccurrenceId[] {
  const { issuer, nonce, occurrences } = record;
  const license = digestRecord(licenseRecord, record);
  return Array.from({ length: occurrences }, (_, index) =>
    occurrenceId({ issuer, nonce, license, index }),
  );
}
