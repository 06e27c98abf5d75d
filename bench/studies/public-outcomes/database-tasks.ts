import type { TaskName } from '../../data/mcpmark.ts';
import type { WritePolicy } from './call-rules.ts';
import type { Keys } from './database-effects.ts';

const CHINOOK: Keys = {
  Album: ['AlbumId'],
  Artist: ['ArtistId'],
  Customer: ['CustomerId'],
  Employee: ['EmployeeId'],
  Genre: ['GenreId'],
  Invoice: ['InvoiceId'],
  InvoiceLine: ['InvoiceLineId'],
  MediaType: ['MediaTypeId'],
  Playlist: ['PlaylistId'],
  PlaylistTrack: ['PlaylistId', 'TrackId'],
  Track: ['TrackId'],
};

/**
 * What is known about a task before anyone runs it, and the faults that a fixture can hide beneath
 * its statements.
 */
export interface DatabaseTask {
  /** All registered relations, those included that the task does not write. */
  readonly keys: Keys;
  /** The writes that the request calls for; what call-level rules allow. */
  readonly policy: WritePolicy;
  readonly fixtures: { readonly [name in Fixture]: string };
}

export type Fixture = 'hidden extra write' | 'missing row' | 'altered value';

/** A write that no task calls for: hidden in a fixture, or submitted openly. */
export const EXPLICIT_WRITE = `update "Genre" set "Name" = 'Changed' where "GenreId" = 1`;

export const DATABASE_TASKS: { readonly [name in TaskName]: DatabaseTask } = {
  customer_data_migration: {
    keys: CHINOOK,
    policy: new Set(['insert Customer']),
    fixtures: {
      'hidden extra write': writeGenre('"Customer"'),
      'missing row': beforeInsert(
        '"Customer"',
        `if new."CustomerId" = 160 then return null; end if;`,
      ),
      'altered value': beforeInsert(
        '"Customer"',
        `if new."CustomerId" = 160 then new."LastName" := 'Altered'; end if;`,
      ),
    },
  },
  employee_hierarchy_management: {
    keys: { ...CHINOOK, employee_performance: [] },
    policy: new Set([
      'insert Employee',
      'update Employee',
      'delete Employee',
      'update Customer',
      'insert employee_performance',
    ]),
    fixtures: {
      'hidden extra write': writeGenre('employee_performance'),
      'missing row': beforeInsert(
        'employee_performance',
        'if new.employee_id = 10 then return null; end if;',
      ),
      'altered value': beforeInsert(
        'employee_performance',
        'if new.employee_id = 9 then new.performance_score := new.performance_score + 0.1; end if;',
      ),
    },
  },
  sales_and_music_charts: {
    keys: { ...CHINOOK, monthly_sales_summary: [], top_music_charts: [] },
    policy: new Set(['insert monthly_sales_summary', 'insert top_music_charts']),
    fixtures: {
      'hidden extra write': writeGenre('monthly_sales_summary'),
      'missing row': beforeInsert(
        'monthly_sales_summary',
        `if new.year_month = '2011-06' then return null; end if;`,
      ),
      'altered value': beforeInsert(
        'monthly_sales_summary',
        `if new.year_month = '2011-06' then new.total_revenue := new.total_revenue + 1; end if;`,
      ),
    },
  },
};

function writeGenre(relation: string): string {
  return `
    create function fixture() returns trigger language plpgsql as
      $$ begin ${EXPLICIT_WRITE}; return null; end $$;
    create trigger fixture after insert on ${relation} for each statement execute function fixture();`;
}

function beforeInsert(relation: string, body: string): string {
  return `
    create function fixture() returns trigger language plpgsql as $$ begin ${body} return new; end $$;
    create trigger fixture before insert on ${relation} for each row execute function fixture();`;
}
