import { type Rows, TABLES } from './office.ts';

type Stored = Readonly<Record<string, unknown>>;
type Cell = Readonly<Record<string, unknown>>;

/** One difference between two states of the database, found by comparing rows. */
interface Difference {
  readonly op: string;
  readonly target: string;
  readonly id: unknown;
  readonly before: Stored | undefined;
  readonly after: Stored | undefined;
}

/** What changed between two readings. */
export function compareRows(before: Rows, after: Rows): readonly Difference[] {
  return TABLES.flatMap((target) => {
    const ids = new Set([...before[target].keys(), ...after[target].keys()]);
    return [...ids].flatMap((id) => {
      const [old, now] = [before[target].get(id), after[target].get(id)];
      if (JSON.stringify(old) === JSON.stringify(now)) return [];
      const op = old === undefined ? 'insert' : now === undefined ? 'delete' : 'update';
      return [{ op, target, id, before: old, after: now }];
    });
  });
}

interface Shown {
  readonly op: string;
  readonly target: string;
  readonly key?: Readonly<Record<string, Cell>>;
  readonly before?: Readonly<Record<string, Cell>>;
  readonly after?: Readonly<Record<string, Cell>>;
  readonly count: number;
}

/**
 * Whether what became durable is what the approver was shown, by trying every assignment. Written
 * without the product's comparison: exact cells must be equal, labels mean one value each, and
 * `now` means the time of the execution.
 */
export function isWhatWasShown(
  shown: readonly Shown[],
  found: readonly Difference[],
  ran: { readonly fromMs: number; readonly toMs: number },
): boolean {
  const wanted = shown.flatMap((effect) => Array.from({ length: effect.count }, () => effect));
  if (wanted.length !== found.length) return false;
  const used = new Set<Difference>();

  function assign(index: number, labels: ReadonlyMap<string, unknown>): boolean {
    const effect = wanted[index];
    if (effect === undefined) return true;
    for (const difference of found) {
      if (used.has(difference)) continue;
      const after = fit(effect, difference, labels);
      if (after === undefined) continue;
      used.add(difference);
      if (assign(index + 1, after)) return true;
      used.delete(difference);
    }
    return false;
  }

  function fit(effect: Shown, difference: Difference, known: ReadonlyMap<string, unknown>) {
    if (effect.op !== difference.op || effect.target !== difference.target) return undefined;
    const labels = new Map(known);
    const sides = [
      [effect.key, { id: difference.id } as Stored],
      [effect.before, difference.before],
      [effect.after, difference.after],
    ] as const;
    for (const [cells, row] of sides) {
      for (const [column, cell] of Object.entries(cells ?? {})) {
        if (!fits(cell, row?.[column], labels)) return undefined;
      }
    }
    if (effect.op !== 'update') return labels;
    const changed = Object.keys(difference.after ?? {}).filter(
      (column) => difference.before?.[column] !== difference.after?.[column],
    );
    return changed.every((column) => Object.hasOwn(effect.after ?? {}, column))
      ? labels
      : undefined;
  }

  function fits(cell: Cell, value: unknown, labels: Map<string, unknown>): boolean {
    if ('is' in cell) return value === plain(cell.is);
    if ('generated' in cell) {
      const label = String(cell.generated);
      if (labels.has(label)) return labels.get(label) === value;
      labels.set(label, value);
      return true;
    }
    if (!('now' in cell)) return false;
    const ms =
      typeof value === 'string' ? Date.parse(`${value.replace(' ', 'T')}Z`) : Number(value) * 1000;
    return ms >= ran.fromMs - 2500 && ms <= ran.toMs + 2500;
  }

  return assign(0, new Map());
}

function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const [[tag, text] = ['', '']] = Object.entries(value);
  return tag === '$real' ? Number(text) : tag === '$int' ? Number(BigInt(String(text))) : value;
}
