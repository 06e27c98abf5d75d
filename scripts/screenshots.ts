// Makes the pictures of the approver's guide: `node scripts/screenshots.ts` serves the demo, opens it in
// Chromium and writes small PNG files into docs/pictures/console.
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { openChromium } from '../test/chromium.ts';

const FOLDER = 'docs/pictures/console';
mkdirSync(FOLDER, { recursive: true });
const served = spawn(process.execPath, ['--no-warnings', 'src/cli/main.ts', 'serve', '--demo']);
let printed = '';
for await (const chunk of served.stdout.iterator({ destroyOnReturn: false })) {
  printed += chunk;
  if (printed.includes('Ctrl-C')) break;
}
const link = /http:\S+\/enter\/\S+/.exec(printed)?.[0] ?? '';
const { origin } = new URL(link);
const browser = await openChromium();
const page = await browser.newPage({ viewport: { width: 1100, height: 720 } });
await page.goto(link);
await page.waitForURL(`${origin}/`);

async function shoot(name: string): Promise<void> {
  await page.screenshot({ path: `${FOLDER}/${name}.png` });
}

await shoot('inbox');
await page.getByText('Invoice 4711 is due today').click();
await page.getByRole('button', { name: 'Register a passkey' }).waitFor();
await shoot('request');
await page.goto(`${origin}/history`);
await page.locator('tbody a').first().click();
await shoot('verdict');
await page.setViewportSize({ width: 360, height: 640 });
await page.goto(`${origin}/`);
await shoot('phone');
await browser.close();
served.kill('SIGINT');
