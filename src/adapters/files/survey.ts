import { lstatSync } from 'node:fs';
import { deniedOutlets, fingerprint, identifyFile, openOutlet } from '../../backend/setup.ts';
import type { Outlet, Survey } from '../../protocol/boundary.ts';
import { CHANNELS } from './evidence.ts';
import { type FolderLayout, isOurLink } from './layout.ts';
import { MAX_PATH_BYTES } from './paths.ts';

/** Outlets through which file changes could leave the folder, and what closes them. */
const CLOSED = deniedOutlets({
  'commands and programs':
    'none is run: an action is a list of operations that the adapter carries out itself',
  'paths outside the root':
    'every path is relative and spelled in one form; no link on the way is followed',
  'symbolic links out of the root':
    'link targets are checked when made and again in the whole candidate',
  'hard links': 'no operation makes one; changed files must have one link',
  'devices, pipes and sockets': 'no operation makes one; the walk refuses them',
  'set-user-id, set-group-id and sticky bits': 'no operation sets one; the walk refuses them',
  'names that some file systems take for one':
    'the walk refuses names that differ only in case or Unicode form',
  'files shared with other versions': 'never written: each change makes a new inode',
  'control folder and older versions': 'outside the candidate',
});

const ENFORCEMENT = fingerprint([CLOSED, CHANNELS, MAX_PATH_BYTES, process.versions.sqlite]);

/** Identifies the control folder and file, to notice if they were replaced. */
export function identifyControl(layout: FolderLayout): string {
  const { control, versions, database } = layout;
  return [control, versions, database].map((path) => identifyFile(path, 'itself')).join(' ');
}

/** Lists every outlet of an action in its current state. */
export function surveyFolder(
  layout: FolderLayout,
  opened: { readonly backend: string; readonly identity: string },
): Survey {
  const identity = identifyControl(layout);
  const problems: Outlet[] = [];
  if (!isOurLink(layout))
    problems.push(
      openOutlet('root', 'it is not the link that EffectMatch made; put the link back'),
    );
  if (identity !== opened.identity)
    problems.push(
      openOutlet('control folder', 'another one, or other rights, since it was opened; reopen it'),
    );
  const mode = lstatSync(layout.control, { throwIfNoEntry: false })?.mode ?? 0;
  if ((mode & 0o022) !== 0)
    problems.push(openOutlet('control folder', 'others may write to it; take that right away'));
  const observed: Outlet = {
    outlet: 'files and folders below the root',
    disposition: 'observed',
    by: 'walk of the candidate',
  };
  return {
    backend: opened.backend,
    executor: 'file operations of the adapter in a separate folder for each stage',
    outlets: Object.freeze([observed, ...CLOSED, ...problems]),
    configuration: fingerprint([layout.root, layout.control]),
    credentials: fingerprint([identity, process.getuid?.() ?? null]),
    enforcement: ENFORCEMENT,
  };
}
