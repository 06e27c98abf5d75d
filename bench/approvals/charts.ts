import { type DatabasePacket, rowsOf, type TextRow, textIn } from './rows.ts';

const RANKS = 10;

/** Parses an amount into cents. The source's amounts have two decimals. */
function cents(text: string): number {
  const [, whole, part] = /^(\d+)\.(\d\d)$/.exec(text) ?? [];
  if (whole === undefined || part === undefined)
    throw new Error(`"${text}" is no amount with two decimals`);
  return Number(whole) * 100 + Number(part);
}

function amount(inCents: number): string {
  return `${Math.floor(inCents / 100)}.${String(inCents % 100).padStart(2, '0')}`;
}

function sumOf<T>(items: readonly T[], value: (item: T) => number): number {
  return items.reduce((sum, item) => sum + value(item), 0);
}

/**
 * One row for each month with an invoice. Invoice totals are summed separately from the lines,
 * because each invoice has several lines.
 */
export function summaryRows({ initial }: DatabasePacket): readonly TextRow[] {
  const lines = Map.groupBy(rowsOf(initial, 'InvoiceLine'), (line) => textIn(line, 'InvoiceId'));
  const months = Map.groupBy(rowsOf(initial, 'Invoice'), (invoice) =>
    textIn(invoice, 'InvoiceDate').slice(0, 7),
  );
  return [...months].map(([month, invoices]) => {
    const revenue = sumOf(invoices, (invoice) => cents(textIn(invoice, 'Total')));
    const sold = sumOf(invoices, (invoice) =>
      sumOf(lines.get(textIn(invoice, 'InvoiceId')) ?? [], (line) =>
        Number(textIn(line, 'Quantity')),
      ),
    );
    return {
      year_month: month,
      total_invoices: String(invoices.length),
      total_revenue: amount(revenue),
      total_tracks_sold: String(sold),
      // All amounts are positive, so half a cent rounds up.
      average_invoice_value: amount(Math.round(revenue / invoices.length)),
      unique_customers: String(
        new Set(invoices.map((invoice) => textIn(invoice, 'CustomerId'))).size,
      ),
    };
  });
}

interface Sales {
  readonly id: string;
  readonly name: string;
  readonly units: number;
  readonly revenue: number;
}

/**
 * The top ten tracks by units sold, and the top ten albums and artists by revenue. Ties are sorted
 * by name.
 */
export function chartRows(packet: DatabasePacket): readonly TextRow[] {
  const { initial, byName } = packet;
  const tracks = new Map(
    rowsOf(initial, 'Track').map((track) => [textIn(track, 'TrackId'), track]),
  );
  const albums = new Map(
    rowsOf(initial, 'Album').map((album) => [textIn(album, 'AlbumId'), album]),
  );
  const albumOf = (track: string) => tracks.get(track)?.AlbumId ?? undefined;
  const artistOf = (track: string) => albums.get(albumOf(track) ?? '')?.ArtistId ?? undefined;
  const charts = [
    {
      chart: 'top_tracks',
      relation: 'Track',
      name: 'Name',
      by: 'units',
      owner: (track: string) => track,
    },
    { chart: 'top_albums', relation: 'Album', name: 'Title', by: 'revenue', owner: albumOf },
    { chart: 'top_artists', relation: 'Artist', name: 'Name', by: 'revenue', owner: artistOf },
  ] as const;
  return charts.flatMap(({ chart, relation, name, by, owner }) => {
    const place = new Map(byName[relation].map((id, index) => [id, index]));
    const sales = salesBy(packet, relation, name, owner);
    const ranked = sales.sort(
      (a, b) => b[by] - a[by] || (place.get(a.id) ?? 0) - (place.get(b.id) ?? 0),
    );
    return ranked.slice(0, RANKS).map((item, index) => ({
      chart_type: chart,
      rank_position: String(index + 1),
      item_id: item.id,
      item_name: item.name,
      total_revenue: amount(item.revenue),
    }));
  });
}

/** The sales of each item. Items without sales are left out. */
function salesBy(
  { initial }: DatabasePacket,
  relation: string,
  name: string,
  owner: (track: string) => string | undefined,
): Sales[] {
  const names = new Map(
    rowsOf(initial, relation).map((row) => [textIn(row, `${relation}Id`), textIn(row, name)]),
  );
  const groups = Map.groupBy(rowsOf(initial, 'InvoiceLine'), (line) =>
    owner(textIn(line, 'TrackId')),
  );
  return [...groups].flatMap(([id, lines]) => {
    const known = id === undefined ? undefined : names.get(id);
    if (id === undefined || known === undefined) return [];
    const units = sumOf(lines, (line) => Number(textIn(line, 'Quantity')));
    const revenue = sumOf(
      lines,
      (line) => cents(textIn(line, 'UnitPrice')) * Number(textIn(line, 'Quantity')),
    );
    return units > 0 ? [{ id, name: known, units, revenue }] : [];
  });
}
