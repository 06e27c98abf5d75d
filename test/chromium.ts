import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';
import { installPackage } from './debian.ts';

const PROGRAMS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const MISSING = 'Chromium is not installed here; run `apt-get install chromium`';

/** For the `skip` of a test; under CI a skip for this reason fails the run. */
export function skipWithoutChromium(): string | false {
  return findChromium() === undefined ? MISSING : false;
}

/** Installs the package if it is missing and this account may do so. */
export function installChromium(): void {
  if (findChromium() === undefined) installPackage('chromium');
}

/** A real browser without a window. */
export async function openChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) throw new Error(MISSING);
  // Root may not use the sandbox; pages come from this machine alone.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return await chromium.launch({ executablePath, args });
}

function findChromium(): string | undefined {
  return PROGRAMS.find((program) => existsSync(program));
}
