/**
 * Whether an object in this JSON names a key twice. `JSON.parse` keeps the last one, other readers
 * the first: what such a text says depends on who reads it, so it proves nothing.
 */
export function hasRepeatedKey(json: string): boolean {
  const open: (Set<string> | undefined)[] = [];
  for (let at = 0; at < json.length; at += 1) {
    switch (json[at]) {
      case '{':
        open.push(new Set());
        break;
      case '[':
        open.push(undefined);
        break;
      case '}':
      case ']':
        open.pop();
        break;
      case '"': {
        const end = endOfString(json, at);
        const names = open.at(-1);
        if (names !== undefined && isFollowedByColon(json, end)) {
          const quoted = json.slice(at, end);
          const name = quoted.includes('\\') ? JSON.stringify(JSON.parse(quoted)) : quoted;
          if (names.has(name)) return true;
          names.add(name);
        }
        at = end - 1;
        break;
      }
    }
  }
  return false;
}

/** Where the string that starts here is over. */
function endOfString(json: string, start: number): number {
  let at = start + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

function isFollowedByColon(json: string, from: number): boolean {
  let at = from;
  while (at < json.length && ' \t\r\n'.includes(json[at] ?? '')) at += 1;
  return json[at] === ':';
}
