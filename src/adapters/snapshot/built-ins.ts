type Properties = ReadonlyMap<PropertyKey, PropertyDescriptor>;

/** Kept from before any tool has run, because a tool may overwrite them. */
const { assign, create, is: isSame } = Object;
const { defineProperty, deleteProperty, getOwnPropertyDescriptor, ownKeys } = Reflect;

/**
 * What plain JSON leads to when a tool follows a path that the agent chose: `__proto__` of every kind of value, and
 * `constructor` from there.
 */
const REACHABLE: readonly object[] = [Object, Array, String, Number, Boolean, Function].flatMap((maker) => [
  maker,
  maker.prototype as object,
]);

/** One built-in object as it was: its properties by name, and the same in their order. */
interface Known {
  readonly object: object;
  readonly properties: Properties;
  readonly names: readonly PropertyKey[];
  readonly was: readonly PropertyDescriptor[];
}

let running = 0;
/** How often something was found and put back. */
let spoilings = 0;
let known: readonly Known[] = REACHABLE.map(readKnown);

/**
 * Runs the calls of an action. `isIntact` says whether the built-in objects of the process were left alone since it
 * began, by this action and by all that run beside it, and puts back what was written to them: otherwise the whole
 * process, the comparison included, would find it on every object.
 *
 * The state to return to is taken when no action is running, so that none takes the changes of another for given. It
 * is read anew only where the application itself has changed something since the last time.
 */
export async function overAction<T>(work: (isIntact: () => boolean) => Promise<T>): Promise<T> {
  if (running === 0 && !isUntouched()) known = REACHABLE.map(readKnown);
  running += 1;
  const before = spoilings;
  try {
    return await work(() => {
      if (!isUntouched() && !restore()) spoilings += 1;
      return spoilings === before;
    });
  } finally {
    running -= 1;
  }
}

function readKnown(object: object): Known {
  const properties = readProperties(object);
  return { object, properties, names: [...properties.keys()], was: [...properties.values()] };
}

function readProperties(object: object): Properties {
  // Without a prototype: what somebody adds to all objects must not read as part of a description.
  return new Map(ownKeys(object).map((name) => [name, assign(create(null), getOwnPropertyDescriptor(object, name))]));
}

/** Whether nothing was written, by a look that costs little and calls nothing that a tool may have replaced. */
function isUntouched(): boolean {
  for (let place = 0; place < known.length; place += 1) {
    const entry = known[place];
    if (entry === undefined) return false;
    const { object, names, was } = entry;
    const now = ownKeys(object);
    if (now.length !== names.length) return false;
    for (let index = 0; index < names.length; index += 1) {
      const name = names[index];
      const before = was[index];
      if (name === undefined || before === undefined || now[index] !== name) return false;
      if (!isUnchanged(getOwnPropertyDescriptor(object, name), before)) return false;
    }
  }
  return true;
}

function isUnchanged(now: PropertyDescriptor | undefined, was: PropertyDescriptor): boolean {
  return now !== undefined && isSame(now.value, was.value) && now.get === was.get && now.set === was.set;
}

/** Puts everything back and says whether it was as it is. Names that were added go first: they are on all objects. */
function restore(): boolean {
  let intact = true;
  for (const { object, properties } of known) {
    for (const name of ownKeys(object)) {
      if (properties.has(name)) continue;
      deleteProperty(object, name);
      intact = false;
    }
  }
  for (const { object, properties } of known) {
    for (const [name, was] of properties) {
      if (isUnchanged(getOwnPropertyDescriptor(object, name), was)) continue;
      defineProperty(object, name, was);
      intact = false;
    }
  }
  return intact;
}
