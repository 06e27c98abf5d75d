// What axe finds on a page that is open in Chromium.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { integration } from '../integration.ts';

/** Serious and critical findings, in the light and in the dark, and whether it fits 360 pixels. */
export async function findBarriers(page: Page): Promise<readonly string[]> {
  const place = createRequire(join(integration('console'), 'x.js')).resolve('axe-core/axe.min.js');
  const axe = readFileSync(place, 'utf8');
  const size = page.viewportSize();
  await page.setViewportSize({ width: 360, height: 740 });
  const found: string[] = [];
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
    if (width !== 360) found.push(`${width} pixels wide`);
    await page.evaluate(axe);
    const lines = (await page.evaluate(`axe.run(document, {
      resultTypes: ['violations'],
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
    }).then(({ violations }) => violations.map(({ id, impact, nodes }) =>
      [id, impact, nodes[0].html.slice(0, 200)].join(' | ')))`)) as readonly string[];
    const serious = lines.filter((line) => / \| (?:serious|critical) \| /.test(line));
    found.push(...serious.map((line) => `${colorScheme}: ${line}`));
  }
  await page.emulateMedia({ colorScheme: 'light' });
  if (size !== null) await page.setViewportSize(size);
  return found;
}
