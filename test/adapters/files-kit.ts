import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { files } from '../../src/adapters/files/index.ts';
import { insert, read, update } from '../../src/protocol/draft.ts';
import type { AdapterKit } from '../../src/testing/index.ts';

/** A small site: a page, a page in a folder and a link. */
export const filesKit: AdapterKit = {
  async fresh() {
    const folder = mkdtempSync(join(tmpdir(), 'effectmatch-kit-'));
    const root = join(folder, 'site');
    mkdirSync(join(root, 'docs'), { recursive: true, mode: 0o755 });
    writeFileSync(join(root, 'index.html'), 'old\n', { mode: 0o644 });
    writeFileSync(join(root, 'docs', 'guide.md'), '# Guide\n', { mode: 0o644 });
    symlinkSync('docs/guide.md', join(root, 'guide'));
    const factory = files({ root, adopt: true });
    const write = (path: string, text: string) => ({ write: { path, text } });
    const publish = [write('index.html', 'new\n'), write('docs/news.md', 'News\n')];
    return {
      factory,
      readDurable: async () => listFolder(root),
      effect: {
        action: { operations: publish },
        leaves: [
          update('file', { path: 'index.html' }, { content: ['old\n', 'new\n'] }),
          insert('file', { path: 'docs/news.md', content: 'News\n' }),
        ],
      },
      extra: { operations: [...publish, write('docs/guide.md', 'Something else\n')] },
      failing: { operations: [...publish, { remove: { path: 'nowhere' } }] },
      reads: [
        read('file', { path: 'index.html' }),
        read('file', { path: 'docs/guide.md' }, ['mode', 'content']),
        read('file', { path: 'docs/news.md' }),
      ],
      writeInto: async (stage) => {
        const id = stage.candidate.split(':').at(-1) ?? '';
        writeFileSync(join(folder, '.site.effectmatch', 'versions', id, 'tree', 'surprise'), 'x');
      },
      close: async () => rmSync(folder, { recursive: true }),
    };
  },
};

/**
 * Everything below a folder, by path: mode and content, or where a link points. Shares nothing with
 * the adapter.
 */
export function listFolder(root: string): Readonly<Record<string, string>> {
  const listed: Record<string, string> = {};
  for (const name of readdirSync(`${root}/`, { recursive: true, encoding: 'utf8' }).sort()) {
    const file = join(`${root}/`, name);
    const stats = lstatSync(file);
    const mode = (stats.mode & 0o7777).toString(8);
    listed[name] = stats.isSymbolicLink()
      ? `-> ${readlinkSync(file)}`
      : stats.isFile()
        ? `${mode} ${readFileSync(file, 'base64')}`
        : `${mode} folder`;
  }
  return listed;
}
