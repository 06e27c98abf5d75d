-- What is registered, as it is now. Everything is named with its schema, so that no object of the
-- application can answer for one of the server. Parameters 1 and 2 are the schemas and names asked for,
-- unless a statement says otherwise; answers come in that order.

-- name: relations
-- The shape of each table. Parameter 3: extensions whose native functions are trusted. A default is
-- `defaultBuiltIn` if its stored expression has only node kinds that call nothing but the functions
-- they name, as PostgreSQL 15 and later call them, and these functions are immutable and built in or
-- trusted. Stored strings are printed as numbers, so a string cannot pose as a node.
with
  trusted (oid) as materialized (
    select
      c.oid
    from
      pg_catalog.pg_depend d
      join pg_catalog.pg_extension e on e.oid = d.refobjid
      join pg_catalog.pg_proc c on c.oid = d.objid
      join pg_catalog.pg_language l on l.oid = c.prolang
    where
      d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass
      and d.deptype = 'e'
      and d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
      and e.extname = any ($3::pg_catalog.name[])
      and l.lanname in ('c', 'internal')
  )
select
  case
    when c.oid is not null then pg_catalog.json_build_object(
      'oid', c.oid::pg_catalog.int8,
      'kind', c.relkind,
      'rowSecurity', c.relrowsecurity,
      -- Why changes or reads of its rows would not be exact, and what to do about it.
      'fault', case
        when c.relkind not in ('r', 'p') then 'it is ' || case c.relkind
          when 'v' then 'a view; name the tables beneath it here, and the view itself in `views` if operations write through it'
          when 'm' then 'a materialized view, which only a refresh changes'
          when 'f' then 'a foreign table, whose rows are on another server'
          when 'S' then 'a sequence'
          when 'c' then 'a composite type'
          when 't' then 'a TOAST table'
          else 'an index'
        end
        else coalesce(
          (
            select
              case
                when pg_catalog.count(*) = 0 then 'it has no columns'
                when pg_catalog.bool_or(a.attname = '__proto__') then 'a column is named __proto__; rename it'
                else pg_catalog.min(pg_catalog.format('column "%s" is computed when read and never recorded; make it STORED', a.attname)) filter (
                  where
                    a.attgenerated = 'v'
                )
              end
            from
              pg_catalog.pg_attribute a
            where
              a.attrelid = c.oid
              and a.attnum > 0
              and not a.attisdropped
          ),
          (
            select
              'it inherits from ' || pg_catalog.string_agg(pg_catalog.format('%I.%I', n2.nspname, c2.relname), ', ') || '; use partitions instead'
            from
              pg_catalog.pg_inherits i
              join pg_catalog.pg_class c2 on c2.oid = i.inhparent
              join pg_catalog.pg_namespace n2 on n2.oid = c2.relnamespace
            where
              i.inhrelid = c.oid
              and not c.relispartition
          ),
          (
            select
              pg_catalog.string_agg(pg_catalog.format('%I.%I', n2.nspname, c2.relname), ', ') || ' inherits from it, with rows that have further columns; use partitions'
            from
              pg_catalog.pg_inherits i
              join pg_catalog.pg_class c2 on c2.oid = i.inhrelid
              join pg_catalog.pg_namespace n2 on n2.oid = c2.relnamespace
            where
              i.inhparent = c.oid
              and c.relkind <> 'p'
          ),
          (
            select
              pg_catalog.min(pg_catalog.format('rule "%s" rewrites statements on it; use a trigger instead', r.rulename))
            from
              pg_catalog.pg_rewrite r
            where
              r.ev_class = c.oid
          ),
          (
            select
              case
                when l.oid = c.oid then 'it'
                else 'its partition ' || case n5.nspname
                  when 'public' then ''
                  else pg_catalog.quote_ident(n5.nspname) || '.'
                end || pg_catalog.quote_ident(l.relname)
              end || case
                when l.relkind = 'f' then ' is a foreign table, whose rows are on another server'
                when l.relpersistence = 'u' then ' is unlogged and would be empty after a crash; use SET LOGGED'
                else ' is temporary, so no other session has it'
              end
            from
              pg_catalog.pg_class l
              join pg_catalog.pg_namespace n5 on n5.oid = l.relnamespace
            where
              (
                l.relkind = 'f'
                or l.relpersistence <> 'p'
              )
              and (
                l.oid = c.oid
                or l.oid in (
                  select
                    p.relid
                  from
                    pg_catalog.pg_partition_tree(c.oid) p
                  where
                    p.isleaf
                    and c.relkind = 'p'
                )
              )
            order by
              l.oid <> c.oid,
              l.oid
            limit
              1
          )
        )
      end,
      'columns', coalesce(
        (
          select
            pg_catalog.json_agg(
              pg_catalog.json_build_object(
                'name', a.attname,
                'notNull', a.attnotnull,
                'generated', a.attgenerated,
                'identity', a.attidentity <> '',
                'defaultText', coalesce(
                  pg_catalog.pg_get_expr(ad.adbin, ad.adrelid),
                  pg_catalog.pg_get_expr(own.typdefaultbin, 0)
                ),
                'defaultBuiltIn', (
                  not exists (
                    select
                    from
                      pg_catalog.regexp_matches(tree.text, '\{([A-Z]+)', 'g') as m (found)
                    where
                      found[1] !~ '^(?:CONST|COERCETODOMAINVALUE|COERCETODOMAIN|COERCEVIAIO|RELABELTYPE|COLLATEEXPR|FUNCEXPR|OPEXPR|DISTINCTEXPR|NULLIFEXPR|SCALARARRAYOPEXPR|BOOLEXPR|NULLTEST|BOOLEANTEST|ARRAY|ARRAYEXPR|ARRAYCOERCEEXPR|CASE|CASEEXPR|WHEN|CASEWHEN|CASETESTEXPR|COALESCE|COALESCEEXPR|SUBSCRIPTINGREF)$'
                  )
                  and not exists (
                    select
                    from
                      pg_catalog.regexp_matches(tree.text, ':(?:funcid|opfuncid) ([0-9]+)', 'g') as m (found)
                      left join pg_catalog.pg_proc p on p.oid = found[1]::pg_catalog.oid
                    where
                      p.oid is null
                      or p.provolatile <> 'i'
                      or (
                        p.oid::pg_catalog.oid >= 16384
                        and p.oid::pg_catalog.oid not in (
                          select
                            v.oid
                          from
                            trusted v
                        )
                      )
                  )
                ),
                'defaultTypes', (
                  select
                    coalesce(pg_catalog.json_agg(x.oid), '[]')
                  from
                    (
                      select distinct
                        found[1]::pg_catalog.int8
                      from
                        pg_catalog.regexp_matches(tree.text, ':[a-z_]*type(?:id|Id)? ([0-9]+)', 'g') as m (found)
                      where
                        found[1]::pg_catalog.int8 >= 16384
                    ) as x (oid)
                ),
                'type', (
                  with recursive
                    beneath as (
                      select
                        ty.oid,
                        ty.typbasetype,
                        ty.typtype
                      from
                        pg_catalog.pg_type ty
                      where
                        ty.oid = a.atttypid
                      union all
                      select
                        ty.oid,
                        ty.typbasetype,
                        ty.typtype
                      from
                        beneath b
                        join pg_catalog.pg_type ty on ty.oid = b.typbasetype
                      where
                        b.typtype = 'd'
                    )
                  select
                    pg_catalog.json_build_object(
                      'oid', a.atttypid::pg_catalog.int8,
                      'schema', outer_space.nspname,
                      'name', outer_type.typname,
                      'formatted', case
                        when a.atttypmod >= 0 then pg_catalog.format_type(a.atttypid, a.atttypmod)
                      end,
                      'domain', outer_type.typtype = 'd',
                      'base', ty.typname,
                      'baseSchema', n3.nspname,
                      'kind', ty.typtype
                    )
                  from
                    beneath b
                    join pg_catalog.pg_type ty on ty.oid = b.oid
                    join pg_catalog.pg_namespace n3 on n3.oid = ty.typnamespace
                    join pg_catalog.pg_type outer_type on outer_type.oid = a.atttypid
                    join pg_catalog.pg_namespace outer_space on outer_space.oid = outer_type.typnamespace
                  where
                    b.typtype <> 'd'
                ),
                'sequence', (
                  select
                    pg_catalog.json_build_object(
                      'oid', s.seqrelid::pg_catalog.int8,
                      'schema', n4.nspname,
                      'name', c4.relname,
                      'increment', s.seqincrement::pg_catalog.text,
                      'start', s.seqstart::pg_catalog.text,
                      'cache', s.seqcache::pg_catalog.text
                    )
                  from
                    pg_catalog.pg_depend d
                    join pg_catalog.pg_sequence s on s.seqrelid = case
                      when a.attidentity = '' then d.refobjid
                      else d.objid
                    end
                    join pg_catalog.pg_class c4 on c4.oid = s.seqrelid
                    join pg_catalog.pg_namespace n4 on n4.oid = c4.relnamespace
                  where
                    case
                      when a.attidentity = '' then d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass
                      and d.objid = ad.oid
                      and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                      else d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                      and d.refobjid = a.attrelid
                      and d.refobjsubid = a.attnum
                      and d.deptype = 'i'
                      and d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                    end
                  limit
                    1
                ),
                'draws', (
                  select
                    coalesce(
                      pg_catalog.json_agg(
                        pg_catalog.json_build_object(
                          'oid', s.seqrelid::pg_catalog.int8,
                          'schema', n4.nspname,
                          'name', c4.relname,
                          'increment', s.seqincrement::pg_catalog.text,
                          'start', s.seqstart::pg_catalog.text,
                          'cache', s.seqcache::pg_catalog.text
                        )
                      ),
                      '[]'
                    )
                  from
                    (
                      select
                        d.refobjid
                      from
                        pg_catalog.pg_depend d
                      where
                        d.classid = 'pg_catalog.pg_attrdef'::pg_catalog.regclass
                        and d.objid = ad.oid
                        and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                      union
                      select
                        d.objid
                      from
                        pg_catalog.pg_depend d
                      where
                        d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
                        and d.refobjid = a.attrelid
                        and d.refobjsubid = a.attnum
                        and d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
                        and d.deptype in ('a', 'i')
                    ) as u (oid)
                    join pg_catalog.pg_sequence s on s.seqrelid = u.oid
                    join pg_catalog.pg_class c4 on c4.oid = s.seqrelid
                    join pg_catalog.pg_namespace n4 on n4.oid = c4.relnamespace
                )
              )
              order by
                a.attnum
            )
          from
            pg_catalog.pg_attribute a
            left join pg_catalog.pg_attrdef ad on ad.adrelid = a.attrelid
            and ad.adnum = a.attnum
            left join pg_catalog.pg_type own on own.oid = a.atttypid
            cross join lateral (
              select
                coalesce(ad.adbin, own.typdefaultbin)::pg_catalog.text as text
            ) as tree
          where
            a.attrelid = c.oid
            and a.attnum > 0
            and not a.attisdropped
        ),
        '[]'
      ),
      'key', (
        select
          coalesce(
            pg_catalog.json_agg(
              a.attname
              order by
                k.at
            ),
            '[]'
          )
        from
          pg_catalog.pg_index i
          cross join lateral pg_catalog.unnest(i.indkey::pg_catalog.int2[]) with ordinality as k (number, at)
          join pg_catalog.pg_attribute a on a.attrelid = i.indrelid
          and a.attnum = k.number
        where
          i.indrelid = c.oid
          and i.indisprimary
          and k.at <= i.indnkeyatts
      ),
      'foreignKeys', (
        select
          coalesce(
            pg_catalog.json_agg(
              pg_catalog.json_build_object(
                'column', a.attname,
                'referredTable', k.confrelid::pg_catalog.int8,
                'referredColumn', a2.attname
              )
            ),
            '[]'
          )
        from
          pg_catalog.pg_constraint k
          cross join lateral rows
        from
          (pg_catalog.unnest(k.conkey), pg_catalog.unnest(k.confkey)) as p (own, referred)
          join pg_catalog.pg_attribute a on a.attrelid = k.conrelid
          and a.attnum = p.own
          join pg_catalog.pg_attribute a2 on a2.attrelid = k.confrelid
          and a2.attnum = p.referred
        where
          k.conrelid = c.oid
          and k.contype = 'f'
          and k.conparentid = 0
      ),
      'leaves', coalesce(
        (
          select
            pg_catalog.json_agg(
              pg_catalog.json_build_object(
                'oid', l.oid::pg_catalog.int8,
                'schema', n5.nspname,
                'name', l.relname,
                'columns', (
                  select
                    pg_catalog.json_agg(
                      a.attname
                      order by
                        a.attnum
                    )
                  from
                    pg_catalog.pg_attribute a
                  where
                    a.attrelid = l.oid
                    and a.attnum > 0
                    and not a.attisdropped
                )
              )
              order by
                l.oid
            )
          from
            pg_catalog.pg_partition_tree(c.oid) p
            join pg_catalog.pg_class l on l.oid = p.relid
            join pg_catalog.pg_namespace n5 on n5.oid = l.relnamespace
          where
            p.isleaf
            and c.relkind = 'p'
            and l.relkind <> 'p'
        ),
        '[]'
      )
    )
  end as found
from
  rows
from
  (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) with ordinality as w (schema, name, at)
  left join pg_catalog.pg_namespace n on n.nspname = w.schema
  left join pg_catalog.pg_class c on c.relnamespace = n.oid
  and c.relname = w.name
order by
  w.at;

-- name: tables
-- Every table that could have been meant, for suggestions.
select
  n.nspname as schema,
  c.relname as name
from
  pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
where
  c.relkind in ('r', 'p')
  and not c.relispartition
  and n.nspname not in ('pg_catalog', 'information_schema', 'effectmatch')
  and n.nspname !~ '^pg_(toast|temp)'
order by
  1,
  2
limit
  10000;

-- name: types
-- Everything that values of these types are made of, and the code of the application that reading a
-- value runs. Parameter 1: object ids of types; parameter 2: extensions whose native functions are
-- trusted. An extension's owner may add types and functions to it, but not native ones.
with recursive
  trusted (oid) as materialized (
    select
      c.oid
    from
      pg_catalog.pg_depend d
      join pg_catalog.pg_extension e on e.oid = d.refobjid
      join pg_catalog.pg_proc c on c.oid = d.objid
      join pg_catalog.pg_language l on l.oid = c.prolang
    where
      d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass
      and d.deptype = 'e'
      and d.refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass
      and e.extname = any ($2::pg_catalog.name[])
      and l.lanname in ('c', 'internal')
  ),
  beneath (oid) as (
    select
      pg_catalog.unnest($1::pg_catalog.int8[])
    union
    select
      p.oid
    from
      beneath b
      join pg_catalog.pg_type t on t.oid = b.oid::pg_catalog.oid
      cross join lateral (
        select
          t.typbasetype::pg_catalog.int8
        where
          t.typtype = 'd'
        union all
        select
          t.typelem::pg_catalog.int8
        where
          t.typelem <> 0
        union all
        select
          a.atttypid::pg_catalog.int8
        from
          pg_catalog.pg_attribute a
        where
          t.typtype = 'c'
          and a.attrelid = t.typrelid
          and a.attnum > 0
          and not a.attisdropped
        union all
        select
          r.rngsubtype::pg_catalog.int8
        from
          pg_catalog.pg_range r
        where
          r.rngtypid = t.oid
        union all
        select
          r.rngtypid::pg_catalog.int8
        from
          pg_catalog.pg_range r
        where
          r.rngmultitypid = t.oid
        union all
        select
          x.oid
        from
          pg_catalog.pg_constraint k
          cross join lateral (
            select distinct
              found[1]::pg_catalog.int8
            from
              pg_catalog.regexp_matches(k.conbin::pg_catalog.text, ':[a-z_]*type(?:id|Id)? ([0-9]+)', 'g') as m (found)
            where
              found[1]::pg_catalog.int8 >= 16384
          ) as x (oid)
        where
          k.contypid = t.oid
          and k.conbin is not null
      ) as p (oid)
    where
      p.oid >= 16384
  )
select
  coalesce(
    pg_catalog.json_agg(
      pg_catalog.json_build_object(
        'oid', t.oid::pg_catalog.int8,
        'schema', n.nspname,
        'name', t.typname,
        'kind', t.typtype,
        'base', case
          when t.typtype = 'd' then pg_catalog.json_build_object(
            'oid', t.typbasetype::pg_catalog.int8,
            'text', pg_catalog.format_type(t.typbasetype, t.typtypmod)
          )
        end,
        'element', case
          when t.typinput = 'pg_catalog.array_in'::pg_catalog.regproc then pg_catalog.json_build_object('oid', t.typelem::pg_catalog.int8, 'text', pg_catalog.format_type(t.typelem, -1))
        end,
        'parts', (
          select
            coalesce(pg_catalog.json_agg(p.oid), '[]')
          from
            (
              select
                t.typbasetype::pg_catalog.int8
              where
                t.typtype = 'd'
              union all
              select
                t.typelem::pg_catalog.int8
              where
                t.typelem <> 0
              union all
              select
                a.atttypid::pg_catalog.int8
              from
                pg_catalog.pg_attribute a
              where
                t.typtype = 'c'
                and a.attrelid = t.typrelid
                and a.attnum > 0
                and not a.attisdropped
              union all
              select
                r.rngsubtype::pg_catalog.int8
              from
                pg_catalog.pg_range r
              where
                r.rngtypid = t.oid
              union all
              select
                r.rngtypid::pg_catalog.int8
              from
                pg_catalog.pg_range r
              where
                r.rngmultitypid = t.oid
              union all
              select
                x.oid
              from
                pg_catalog.pg_constraint k
                cross join lateral (
                  select distinct
                    found[1]::pg_catalog.int8
                  from
                    pg_catalog.regexp_matches(k.conbin::pg_catalog.text, ':[a-z_]*type(?:id|Id)? ([0-9]+)', 'g') as m (found)
                  where
                    found[1]::pg_catalog.int8 >= 16384
                ) as x (oid)
              where
                k.contypid = t.oid
                and k.conbin is not null
            ) as p (oid)
          where
            p.oid >= 16384
        ),
        'code', case
          when (
            t.typinput::pg_catalog.oid >= 16384
            and t.typinput::pg_catalog.oid not in (
              select
                v.oid
              from
                trusted v
            )
          )
          or (
            t.typoutput::pg_catalog.oid >= 16384
            and t.typoutput::pg_catalog.oid not in (
              select
                v.oid
              from
                trusted v
            )
          )
          or (
            t.typmodin::pg_catalog.oid >= 16384
            and t.typmodin::pg_catalog.oid not in (
              select
                v.oid
              from
                trusted v
            )
          ) then 'has input and output functions that are not built in'
          when exists (
            select
            from
              pg_catalog.pg_range r
            where
              r.rngtypid = t.oid
              and (
                (
                  r.rngcanonical::pg_catalog.oid >= 16384
                  and r.rngcanonical::pg_catalog.oid not in (
                    select
                      v.oid
                    from
                      trusted v
                  )
                )
                or exists (
                  select
                  from
                    pg_catalog.pg_opclass c
                    join pg_catalog.pg_amproc f on f.amprocfamily = c.opcfamily
                  where
                    c.oid = r.rngsubopc
                    and (
                      f.amproc::pg_catalog.oid >= 16384
                      and f.amproc::pg_catalog.oid not in (
                        select
                          v.oid
                        from
                          trusted v
                      )
                    )
                )
              )
          ) then 'has functions of the application for its bounds'
          when exists (
            select
            from
              pg_catalog.pg_amproc f
            where
              f.amproclefttype = t.oid
              and (
                f.amproc::pg_catalog.oid >= 16384
                and f.amproc::pg_catalog.oid not in (
                  select
                    v.oid
                  from
                    trusted v
                )
              )
          ) then 'is compared by a function of the application'
          else(
            select
              'has the check ' || pg_catalog.quote_ident(k.conname) || ', which calls more than immutable built-in functions'
            from
              pg_catalog.pg_constraint k
            where
              k.contypid = t.oid
              and k.conbin is not null
              and not (
                not exists (
                  select
                  from
                    pg_catalog.regexp_matches(k.conbin::pg_catalog.text, '\{([A-Z]+)', 'g') as m (found)
                  where
                    found[1] !~ '^(?:CONST|COERCETODOMAINVALUE|COERCETODOMAIN|COERCEVIAIO|RELABELTYPE|COLLATEEXPR|FUNCEXPR|OPEXPR|DISTINCTEXPR|NULLIFEXPR|SCALARARRAYOPEXPR|BOOLEXPR|NULLTEST|BOOLEANTEST|ARRAY|ARRAYEXPR|ARRAYCOERCEEXPR|CASE|CASEEXPR|WHEN|CASEWHEN|CASETESTEXPR|COALESCE|COALESCEEXPR|SUBSCRIPTINGREF)$'
                )
                and not exists (
                  select
                  from
                    pg_catalog.regexp_matches(k.conbin::pg_catalog.text, ':(?:funcid|opfuncid) ([0-9]+)', 'g') as m (found)
                    left join pg_catalog.pg_proc p on p.oid = found[1]::pg_catalog.oid
                  where
                    p.oid is null
                    or p.provolatile <> 'i'
                    or (
                      p.oid::pg_catalog.oid >= 16384
                      and p.oid::pg_catalog.oid not in (
                        select
                          v.oid
                        from
                          trusted v
                      )
                    )
                )
              )
            order by
              k.conname
            limit
              1
          )
        end
      )
    ),
    '[]'
  )
from
  beneath b
  join pg_catalog.pg_type t on t.oid = b.oid::pg_catalog.oid
  join pg_catalog.pg_namespace n on n.oid = t.typnamespace;

-- name: entry_points
-- The functions and procedures of each name, and names in the same schema for suggestions. A type is
-- also spelt without its schema if that is `public`.
select
  (
    select
      pg_catalog.json_agg(
        pg_catalog.json_build_object(
          'oid', p.oid::pg_catalog.int8,
          'prokind', p.prokind,
          'identity', pg_catalog.pg_get_function_identity_arguments(p.oid),
          'variadic', p.provariadic <> 0,
          'arguments', (
            select
              coalesce(
                pg_catalog.json_agg(
                  pg_catalog.json_build_object(
                    'mode', coalesce(p.proargmodes[a.at], 'i'),
                    'printed', pg_catalog.format_type(t.oid, null),
                    'spellings', pg_catalog.json_build_array(
                      pg_catalog.quote_ident(tn.nspname) || '.' || pg_catalog.quote_ident(t.typname),
                      case
                        when tn.nspname in ('pg_catalog', 'public') then pg_catalog.quote_ident(t.typname)
                      end,
                      (
                        select
                          pg_catalog.quote_ident(e.typname) || '[]'
                        from
                          pg_catalog.pg_type e
                          join pg_catalog.pg_namespace en on en.oid = e.typnamespace
                        where
                          e.typarray = t.oid
                          and en.nspname in ('pg_catalog', 'public')
                      )
                    ),
                    'type', pg_catalog.quote_ident(tn.nspname) || '.' || pg_catalog.quote_ident(t.typname)
                  )
                  order by
                    a.at
                ),
                '[]'
              )
            from
              pg_catalog.unnest(coalesce(p.proallargtypes, p.proargtypes::pg_catalog.oid[])) with ordinality as a (type, at)
              join pg_catalog.pg_type t on t.oid = a.type
              join pg_catalog.pg_namespace tn on tn.oid = t.typnamespace
            where
              coalesce(p.proargmodes[a.at], 'i') <> 't'
          )
        )
      )
    from
      pg_catalog.pg_proc p
    where
      p.pronamespace = n.oid
      and p.proname = w.name
  ),
  (
    select
      pg_catalog.json_agg(distinct p.proname)
    from
      pg_catalog.pg_proc p
    where
      p.pronamespace = n.oid
      and n.nspname <> 'pg_catalog'
  )
from
  rows
from
  (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) with ordinality as w (schema, name, at)
  left join pg_catalog.pg_namespace n on n.nspname = w.schema
order by
  w.at;

-- name: existing
-- Which of these names a table or view has, in the order asked. Parameter 1: schemas; parameter 2:
-- names.
select
  c.oid is not null
from
  rows
from
  (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) with ordinality as w (schema, name, at)
  left join pg_catalog.pg_namespace n on n.nspname = w.schema
  left join pg_catalog.pg_class c on c.relnamespace = n.oid
  and c.relname = w.name
order by
  w.at;

-- name: views
-- What can be written through each view, and views in the same schema for suggestions.
select
  case
    when c.oid is not null then pg_catalog.json_build_object(
      'oid', c.oid::pg_catalog.int8,
      'kind', c.relkind,
      'rules', (
        select
          coalesce(pg_catalog.json_agg(r.rulename), '[]')
        from
          pg_catalog.pg_rewrite r
        where
          r.ev_class = c.oid
          and r.ev_type <> '1'
      ),
      'writes', pg_catalog.pg_relation_is_updatable(c.oid, true)
    )
  end,
  (
    select
      pg_catalog.json_agg(v.relname)
    from
      pg_catalog.pg_class v
    where
      v.relnamespace = n.oid
      and v.relkind = 'v'
      and n.nspname <> 'pg_catalog'
  )
from
  rows
from
  (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[])) with ordinality as w (schema, name, at)
  left join pg_catalog.pg_namespace n on n.nspname = w.schema
  left join pg_catalog.pg_class c on c.relnamespace = n.oid
  and c.relname = w.name
order by
  w.at;

-- name: unreadable
-- Tables with row security that one of these roles could read only through policies. Parameter 1:
-- tables; parameter 2: roles.
select
  c.oid::int8 as oid,
  r.rolname as role
from
  pg_catalog.pg_class as c
  cross join pg_catalog.pg_roles as r
where
  c.oid = any ($1::pg_catalog.oid[])
  and r.rolname = any ($2::pg_catalog.name[])
  and c.relrowsecurity
  and not (
    r.rolsuper
    or r.rolbypassrls
    or pg_catalog.pg_has_role(r.oid, c.relowner, 'usage')
    and not c.relforcerowsecurity
  )
order by
  c.oid,
  r.rolname;

-- name: recorders
-- Row versions of the recorders of each table, if it has a row recorder, or a statement recorder for
-- each of the three operations. Parameter 1: tables.
select
  w.oid::text as oid,
  found.versions
from
  pg_catalog.unnest($1::pg_catalog.oid[]) as w (oid)
  cross join lateral (
    select
      pg_catalog.string_agg(
        t.tgname || ':' || p.proname,
        ' '
        order by
          t.tgname
      ) as names,
      pg_catalog.string_agg(
        pg_catalog.concat_ws(':', t.oid, t.xmin, p.oid, p.xmin),
        ' '
        order by
          t.tgname
      ) as versions
    from
      pg_catalog.pg_trigger as t
      join pg_catalog.pg_proc as p on p.oid = t.tgfoid
      join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
      and n.nspname = 'effectmatch'
    where
      t.tgrelid = w.oid
      and t.tgenabled = 'A'
      and p.proname <> 'refuse_truncate'
  ) as found
where
  found.names in (
    'effectmatch_record:record_row',
    'effectmatch_record_delete:record_delete effectmatch_record_insert:record_insert effectmatch_record_update:record_update'
  );

-- name: watched
-- Everything that can hold rows, catalogues included. TOAST tables are written only with their table;
-- only our own functions write the stage table.
select
  c.oid::int8 as oid,
  n.nspname as schema,
  c.relname as name
from
  pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where
  c.relkind in ('r', 'm')
  and not (
    n.nspname = 'effectmatch'
    and c.relname = 'stage'
  )
order by
  c.oid;

-- name: sequences
-- Sequences that a role may read. Parameter 1: the role. The CASE keeps the privilege function from
-- being asked about other relations.
select
  c.oid::int8 as oid,
  n.nspname as schema,
  c.relname as name
from
  pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where
  case
    when c.relkind = 'S'
    and c.relpersistence <> 't' then pg_catalog.has_sequence_privilege($1::text, c.oid, 'SELECT, USAGE')
    else false
  end
order by
  c.oid;

-- name: deferrable
-- Deferrable constraints in schemas that a role may use, except our own. Parameter 1: the role.
select distinct
  n.nspname as schema,
  c.conname as name
from
  pg_catalog.pg_constraint as c
  join pg_catalog.pg_namespace as n on n.oid = c.connamespace
where
  c.condeferrable
  and n.nspname <> 'effectmatch'
  and pg_catalog.has_schema_privilege($1::pg_catalog.name, n.oid, 'usage')
order by
  1,
  2;
