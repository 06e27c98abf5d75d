/** How often a parser looked at an object that was handed to it, and how large that object is. */
export interface Work {
  readonly looks: number;
  readonly nodes: number;
}

/**
 * Hands over a view of a value that counts every look at it. Counting is fair where timing is not.
 */
export function countWork(value: unknown, parse: (view: unknown) => unknown): Work {
  let looks = 0;
  const views = new WeakMap<object, object>();
  const viewOf = (inner: unknown): unknown => {
    if (typeof inner !== 'object' || inner === null) return inner;
    const view = views.get(inner) ?? new Proxy(inner, handler);
    views.set(inner, view);
    return view;
  };
  const handler: ProxyHandler<object> = {
    get(target, property) {
      looks += 1;
      return viewOf(Reflect.get(target, property));
    },
    has(target, property) {
      looks += 1;
      return Reflect.has(target, property);
    },
    getOwnPropertyDescriptor(target, property) {
      looks += 1;
      const found = Reflect.getOwnPropertyDescriptor(target, property);
      return found !== undefined && 'value' in found
        ? { ...found, value: viewOf(found.value) }
        : found;
    },
    ownKeys(target) {
      const keys = Reflect.ownKeys(target);
      looks += 1 + keys.length;
      return keys;
    },
  };
  try {
    parse(viewOf(value));
  } catch {} // whether it is refused is another test
  return { looks, nodes: countNodes(value, new Set()) };
}

function countNodes(value: unknown, seen: Set<unknown>): number {
  if (typeof value !== 'object' || value === null || seen.has(value)) return 1;
  seen.add(value);
  return Object.values(value).reduce<number>((sum, inner) => sum + countNodes(inner, seen), 1);
}
