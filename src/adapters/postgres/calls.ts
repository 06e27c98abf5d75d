/**
 * The trusted functions as they are called on sessions of the execution login, prepared when a
 * session begins: parsing and planning these calls every time costs as much as what they do. Code of the
 * application could remove one and put its own in its place; it cannot prepare one that the server
 * does not mark as its own, and the last check at COMMIT demands that all of these are there.
 */
export const CALLS = {
  effectmatch_open: 'select * from effectmatch.open($1, $2, $3, $4)',
  effectmatch_observe: 'select * from effectmatch.observe($1, $2)',
  effectmatch_promote: 'select effectmatch.promote($1, $2, $3, $4, $5, $6, $7)',
} as const;
