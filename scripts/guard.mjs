// Fails clearly on a Node that cannot run this project. `npm ci --ignore-scripts` leaves the pinned
// Node out silently.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 12)) {
  console.error(
    `EffectMatch needs Node 24.12 or newer; this is ${process.version}.\n` +
      'Contributors: run `npm ci` with install scripts allowed, it pins Node 24 for npm scripts.\n' +
      'Users: install Node 24.12 or newer and run the command again.',
  );
  process.exit(1);
}
