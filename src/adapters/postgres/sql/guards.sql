-- The checks at COMMIT. A transaction of the execution login commits only with its marker, and only if
-- it wrote nothing after its observation: the check that the marker brings along runs last, because
-- nothing can queue a check behind it without a write that it sees.

-- name: drop_settled
drop trigger if exists effectmatch_settled on effectmatch.marker;

-- name: settled
create constraint trigger effectmatch_settled after insert on effectmatch.marker
deferrable initially deferred for each row when (new.xid is not null)
execute function effectmatch.settle();

-- name: enable_settled
alter table effectmatch.marker enable always trigger effectmatch_settled;

-- name: drop_guard
drop trigger if exists effectmatch_guard on effectmatch.stage;

-- name: guard
create constraint trigger effectmatch_guard after insert on effectmatch.stage
deferrable initially deferred for each row
execute function effectmatch.guard();

-- name: enable_guard
alter table effectmatch.stage enable always trigger effectmatch_guard;
