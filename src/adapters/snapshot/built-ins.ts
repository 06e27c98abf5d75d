type Properties = ReadonlyMap<PropertyKey, PropertyDescriptor>;

/** Kept from before any tool has run, because a tool may overwrite them. */
const { assign, create, is: isSame } = Object;
const {
  defineProperty,
  deleteProperty,
  get: getProperty,
  getOwnPropertyDescriptor,
  ownKeys,
} = Reflect;
const { getPrototypeOf, setPrototypeOf } = Reflect;

/**
 * What plain JSON leads to when a tool follows a path that the agent chose: `__proto__` of every
 * kind of value, and `constructor` from there.
 */
const REACHABLE: readonly object[] = [Object, Array, String, Number, Boolean, Function].flatMap(
  (maker) => [maker, maker.prototype as object],
);

/** One built-in object as it was. */
interface Known {
  readonly object: object;
  /** Its prototype, which a path through `__proto__` twice replaces. */
  readonly above: object | null;
  readonly properties: Properties;
  /**
   * Values that tell by themselves whether they were overwritten or deleted, and the names under
   * which they are read.
   */
  readonly names: readonly PropertyKey[];
  readonly values: readonly unknown[];
  /** The others: accessors, and values that would also be inherited. */
  readonly others: readonly PropertyKey[];
}

let running = 0;
/** How often something was found and put back. */
let spoilings = 0;
let known: readonly Known[] = REACHABLE.map(readKnown);

/**
 * Runs the calls of an action. `isIntact` says whether the built-in objects of the process were
 * left alone since it began, by this action and by all that run beside it, and puts back what was
 * written to them: otherwise the whole process, the comparison included, would find it on every
 * object.
 *
 * The state to return to is taken when no action is running, so that none takes the changes of
 * another for given. It is read anew only where the application itself has changed something since
 * the last time.
 */
export async function overAction<T>(work: (isIntact: () => boolean) => Promise<T>): Promise<T> {
  if (running === 0 && !isUntouched()) known = REACHABLE.map(readKnown);
  running += 1;
  const before = spoilings;
  try {
    return await work(() => countSpoilings() === before);
  } finally {
    running -= 1;
  }
}

/**
 * How often something was found and put back, now included. While tools of any action run, what
 * they write is in the way of every comparison in the process: where this number has moved since a
 * candidate was made, it may have been misjudged.
 */
export function countSpoilings(): number {
  if (running > 0 && !isUntouched() && !restore()) spoilings += 1;
  return spoilings;
}

/**
 * For a tool that goes on after its time was up: it counts as running until it ends, and is looked
 * after then.
 */
export function untilEnded(end: Promise<unknown>): void {
  running += 1;
  const ended = (): void => {
    countSpoilings();
    running -= 1;
  };
  end.then(ended, ended);
}

function readKnown(object: object): Known {
  const properties = readProperties(object);
  const above = getPrototypeOf(object);
  const tells = ([name, { get, set, value }]: readonly [
    PropertyKey,
    PropertyDescriptor,
  ]): boolean =>
    get === undefined &&
    set === undefined &&
    (above === null || !isSame(getProperty(above, name), value));
  const telling = [...properties].filter(tells);
  return {
    object,
    above,
    properties,
    names: telling.map(([name]) => name),
    values: telling.map(([, { value }]) => value),
    others: [...properties].filter((entry) => !tells(entry)).map(([name]) => name),
  };
}

function readProperties(object: object): Properties {
  // Without a prototype: what somebody adds to all objects must not read as part of a description.
  return new Map(
    ownKeys(object).map((name) => [
      name,
      assign(create(null), getOwnPropertyDescriptor(object, name)),
    ]),
  );
}

/**
 * Whether nothing was written, in half the time of comparing descriptions: as many names as before,
 * and under each of the old ones what was there. Calls nothing that can be replaced by writing.
 */
function isUntouched(): boolean {
  for (let place = 0; place < known.length; place += 1) {
    const { object, above, properties, names, values, others } = known[place] as Known;
    if (getPrototypeOf(object) !== above) return false;
    if (ownKeys(object).length !== properties.size) return false;
    for (let index = 0; index < names.length; index += 1) {
      if (!isSame(object[names[index] as keyof object], values[index])) return false;
    }
    for (let index = 0; index < others.length; index += 1) {
      const name = others[index] as PropertyKey;
      if (!isUnchanged(getOwnPropertyDescriptor(object, name), properties.get(name))) return false;
    }
  }
  return true;
}

function isUnchanged(
  now: PropertyDescriptor | undefined,
  was: PropertyDescriptor | undefined,
): boolean {
  return (
    now !== undefined &&
    was !== undefined &&
    isSame(now.value, was.value) &&
    now.get === was.get &&
    now.set === was.set
  );
}

/**
 * Puts everything back and says whether it was as it is. Names that were added go first: they are
 * on all objects. No array is iterated over, since that may be what was spoilt.
 */
function restore(): boolean {
  let intact = true;
  for (let place = 0; place < known.length; place += 1) {
    const { object, above, properties } = known[place] as Known;
    if (getPrototypeOf(object) !== above) {
      setPrototypeOf(object, above);
      intact = false;
    }
    const names = ownKeys(object);
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index] as PropertyKey;
      if (properties.has(name)) continue;
      deleteProperty(object, name);
      intact = false;
    }
  }
  for (let place = 0; place < known.length; place += 1) {
    const { object, properties } = known[place] as Known;
    properties.forEach((was, name) => {
      if (isUnchanged(getOwnPropertyDescriptor(object, name), was)) return;
      defineProperty(object, name, was);
      intact = false;
    });
  }
  return intact;
}
