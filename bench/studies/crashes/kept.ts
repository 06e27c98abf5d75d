// What the files of an installation say when a round is over, kept with the record of the round.
import { readFacts } from '../../../test/crash/facts.ts';
import { type Installation, taskOf } from '../../../test/crash/installation.ts';
import { keepFact, keepState } from '../../facts.ts';

/** Keeps for each operation its claims, verdicts, marker and releases, as plain SQL reads them. */
export async function keepInstallation(installation: Installation): Promise<void> {
  const { journals, markers, state, releases } = await readFacts(installation);
  const lines = journals.flat();
  keepState('rows or files', state);
  for (const operation of installation.operations) {
    const own = lines.filter(({ record }) => record.task === taskOf(operation));
    const marker = markers.find(({ occurrence }) => occurrence === operation.occurrence);
    keepFact({
      operation: operation.n,
      claims: own.filter(({ kind }) => kind === 'claim').length,
      verdicts: own.flatMap(({ kind, record }) => (kind === 'terminal' ? [record.kind] : [])),
      marker: marker?.disposition ?? null,
      released: releases.filter((n) => n === operation.n).length,
    });
  }
}
