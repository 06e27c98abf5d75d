// What changed since the branch left another one: files, and the lines of each.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

const git = (...args) =>
  execFileSync('git', args, { encoding: 'utf8', stdio: 'pipe', maxBuffer: 256 * 1024 * 1024 });

/**
 * Changed lines by file, from 1: committed or not, and every line of a file that git does not know
 * yet.
 */
export function changedLines(ref) {
  const changed = new Map();
  let lines;
  for (const line of git(
    'diff',
    '--merge-base',
    '--unified=0',
    '--no-color',
    '--no-ext-diff',
    ref,
  ).split('\n')) {
    const file = /^\+\+\+ b\/(.*)$/.exec(line)?.[1];
    if (file !== undefined) {
      lines = new Set();
      changed.set(file, lines);
    }
    const [, first, count = '1'] = /^@@ -\S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (first !== undefined) addRange(lines, Number(first), Number(count));
  }
  for (const file of git('ls-files', '--others', '--exclude-standard', '--', 'src')
    .split('\n')
    .filter(Boolean)) {
    changed.set(file, addRange(new Set(), 1, readFileSync(file, 'utf8').split('\n').length));
  }
  return changed;
}

function addRange(lines, first, count) {
  for (let line = first; line < first + count; line += 1) lines.add(line);
  return lines;
}
