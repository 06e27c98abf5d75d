import { globSync, readFileSync } from 'node:fs';

/** Every reason by which an attempt can be rejected, from the sources. */
export function rejectionReasons(): ReadonlySet<string> {
  const sources = [
    ...globSync('src/{runtime,ledger,adapters,backend,sqlite,http}/**/*.ts'),
    'src/protocol/limits.ts',
  ].map((file) => readFileSync(file, 'utf8'));
  const stated =
    /\b(?:(?:refuse|stageFailed|stagePrevented|refusedPromotion)\(\s*|reason: )'([a-z]+(?:-[a-z]+)*)'/g;
  const limits = /^ +'(limit-[a-z]+)',$/gm;
  return new Set(
    sources.flatMap((text) =>
      [...text.matchAll(stated), ...text.matchAll(limits)].map(([, reason = '']) => reason),
    ),
  );
}
