// Tables of the paper that need parts which do not exist yet. They are listed, and say so.
import { NotRun, type Study } from '../study.ts';

function notRunStudy(name: string, about: string, why: string): Study {
  return {
    name,
    about: `${about} (not run yet)`,
    run: () => Promise.reject(new NotRun(why)),
  };
}

export const topologiesStudy: Study = notRunStudy(
  'topologies',
  '4 topologies of dependent operations under 4 disruptions',
  'there are no workflows of dependent operations yet; 4 topologies × 4 disruptions × 5 will be run when there are',
);
