/**
 * Every syntax node that the managed boundary admits, with all fields that it may have. An unlisted
 * node or field refuses the statement, so additions in a later grammar are refused until they are
 * reviewed. `=` gives the type of a node that the tree does not name. `!` marks a field that is not
 * visited, because it holds no expressions.
 */
const ADMITTED = `
  SelectStmt distinctClause targetList fromClause whereClause groupClause groupDistinct havingClause
    windowClause valuesLists sortClause limitOffset limitCount limitOption lockingClause
    withClause=WithClause op all larg=SelectStmt rarg=SelectStmt
  InsertStmt relation=Target cols selectStmt onConflictClause=OnConflictClause returningList
    returningClause=ReturningClause withClause=WithClause override
  UpdateStmt relation=Target targetList whereClause fromClause returningList
    returningClause=ReturningClause withClause=WithClause
  DeleteStmt relation=Target usingClause whereClause returningList returningClause=ReturningClause
    withClause=WithClause
  MergeStmt relation=Target sourceRelation joinCondition mergeWhenClauses returningList
    returningClause=ReturningClause withClause=WithClause
  MergeWhenClause matched matchKind commandType override condition targetList values
  OnConflictClause action infer=InferClause targetList whereClause location
  InferClause indexElems whereClause conname location
  IndexElem name expr collation! ordering nulls_ordering location
  ReturningClause options exprs
  ReturningOption option value location
  WithClause ctes recursive location
  CommonTableExpr ctename aliascolnames! ctematerialized ctequery search_clause=CTESearchClause
    cycle_clause=CTECycleClause location
  CTESearchClause search_col_list! search_breadth_first search_seq_column location
  CTECycleClause cycle_col_list! cycle_mark_column cycle_mark_value cycle_mark_default
    cycle_path_column location
  Target schemaname relname inh relpersistence alias! location
  RangeVar schemaname relname inh relpersistence alias! location
  RangeSubselect lateral subquery alias!
  RangeFunction lateral ordinality is_rowsfrom functions alias! coldeflist
  RangeTableSample relation method! args repeatable location
  ColumnDef colname typeName=TypeName is_local collClause=CollateClause location
  JoinExpr jointype isNatural larg rarg usingClause! join_using_alias! quals alias! rtindex
  ResTarget name indirection val location
  ColumnRef fields location
  ParamRef number location
  A_Const ival! fval! sval! bsval! boolval! isnull location
  A_Star
  A_Expr kind name! lexpr rexpr rexpr_list_start rexpr_list_end location
  A_Indirection arg indirection
  A_Indices is_slice lidx uidx
  A_ArrayExpr elements list_start list_end location
  BoolExpr boolop args location
  NullTest arg nulltesttype argisrow location
  BooleanTest arg booltesttype location
  SubLink subLinkType subLinkId testexpr operName! subselect location
  CaseExpr arg args defresult location
  CaseWhen expr result location
  CoalesceExpr args location
  MinMaxExpr op args location
  RowExpr args row_format colnames! location
  MultiAssignRef source colno ncolumns
  SetToDefault location
  SQLValueFunction op typmod location
  GroupingSet kind content location
  GroupingFunc args location
  TypeCast arg typeName=TypeName location
  TypeName names! typmods typemod arrayBounds! location
  CollateClause arg collname! location
  FuncCall funcname! args agg_order agg_filter over=WindowDef agg_within_group agg_star agg_distinct
    func_variadic funcformat location
  NamedArgExpr arg name argnumber location
  WindowDef name refname partitionClause orderClause frameOptions startOffset endOffset location
  SortBy node sortby_dir sortby_nulls useOp! location
  LockingClause lockedRels! strength waitPolicy
  List items
  String sval
  Integer ival
  Float fval
  Boolean boolval
  JsonObjectConstructor exprs output=JsonOutput absent_on_null unique location
  JsonArrayConstructor exprs output=JsonOutput absent_on_null location
  JsonArrayQueryConstructor query output=JsonOutput format! absent_on_null location
  JsonKeyValue key value=JsonValueExpr
  JsonValueExpr raw_expr formatted_expr format!
  JsonOutput typeName=TypeName returning!
  JsonObjectAgg constructor=JsonAggConstructor arg=JsonKeyValue absent_on_null unique
  JsonArrayAgg constructor=JsonAggConstructor arg=JsonValueExpr absent_on_null
  JsonAggConstructor output=JsonOutput agg_filter agg_order over=WindowDef location
  JsonIsPredicate expr format! item_type unique_keys location
  JsonParseExpr expr=JsonValueExpr output=JsonOutput unique_keys location
  JsonScalarExpr expr output=JsonOutput location
  JsonSerializeExpr expr=JsonValueExpr output=JsonOutput location
  JsonFuncExpr op column_name context_item=JsonValueExpr pathspec passing output=JsonOutput
    on_empty=JsonBehavior on_error=JsonBehavior wrapper quotes location
  JsonArgument val=JsonValueExpr name
  JsonBehavior btype expr coerce location
`;

/**
 * What a field holds: nodes that carry their type name, one node without it, or nothing to visit.
 */
export type FieldKind =
  | { readonly kind: 'nodes' }
  | { readonly kind: 'node'; readonly name: string }
  | { readonly kind: 'opaque' };

/** The fields of each admitted node. */
export const NODES: ReadonlyMap<string, ReadonlyMap<string, FieldKind>> = readNodes();

function readNodes() {
  const nodes = new Map<string, ReadonlyMap<string, FieldKind>>();
  for (const entry of ADMITTED.trim().split(/\n {2}(?=\S)/)) {
    const [node = '', ...fields] = entry.trim().split(/\s+/);
    nodes.set(node, new Map(fields.map(readField)));
  }
  return nodes;
}

function readField(text: string): readonly [string, FieldKind] {
  if (text.endsWith('!')) return [text.slice(0, -1), { kind: 'opaque' }];
  const [field = '', name] = text.split('=');
  return [field, name === undefined ? { kind: 'nodes' } : { kind: 'node', name }];
}
