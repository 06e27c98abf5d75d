-- What provisioning installs. Every statement can be repeated. `database` is the control database,
-- `business` the database with the registered tables.

-- name: create_owner
-- Owns the records: triggers and procedures run with its rights. No session can log in as it.
create user if not exists :'owner'@'localhost' account lock;

-- name: create_login
create user if not exists :'login'@'%';

-- name: set_password
alter user :'login'@'%' identified by :'password';

-- name: create_database
create database if not exists :"database" character set utf8mb4 collate utf8mb4_bin;

-- name: create_deployment
-- Who this database is, and the key by which `promote` knows the runtime.
create table if not exists :"database".deployment (
  version int not null primary key,
  backend varchar(64) not null,
  inner_pad binary(64) not null,
  outer_pad binary(64) not null
) engine = innodb;

-- name: create_marker
create table if not exists :"database".marker (
  occurrence varchar(255) character set ascii collate ascii_bin not null primary key,
  disposition enum('committed', 'void') not null,
  text longtext not null,
  seal_key varchar(255) not null,
  seal_mac varchar(255) not null
) engine = innodb;

-- name: create_stage
-- The stages that are open now. A row that can be read from another session belongs to a stage that
-- was committed without its marker: `promote` removes the row in the transaction that commits.
create table if not exists :"database".stage (
  connection bigint unsigned not null primary key,
  token bigint unsigned not null,
  occurrence varchar(255) character set ascii collate ascii_bin not null
) engine = innodb;

-- name: create_record
-- Every row that was written in a stage, by recorders. Rows of committed stages are removed later.
create table if not exists :"database".record (
  id bigint unsigned not null auto_increment primary key,
  stage bigint unsigned not null,
  relation varchar(64) not null,
  op enum('insert', 'update', 'delete', 'chosen') not null,
  before_image longblob,
  after_image longblob,
  key (stage)
) engine = innodb;

-- name: create_probe
create table if not exists :"database".probe (
  token varchar(255) not null primary key
) engine = innodb;

-- name: create_open
create or replace definer = :'owner'@'localhost'
procedure :"database".open(in stage_token bigint unsigned, in stage_occurrence varchar(255))
sql security definer modifies sql data
begin
  insert into :"database".stage (connection, token, occurrence)
  values (connection_id(), stage_token, stage_occurrence);
  select unix_timestamp(sysdate(3)), (
    select disposition from :"database".marker where occurrence = stage_occurrence
  );
end;

-- name: create_observe
create or replace definer = :'owner'@'localhost'
procedure :"database".observe()
sql security definer reads sql data
begin
  select relation, op, before_image, after_image, unix_timestamp(sysdate(3))
  from :"database".record
  where stage = (select token from :"database".stage where connection = connection_id())
  order by id;
end;

-- name: create_promote
-- Agents cannot call procedures. If one could, it would still need the key of the deployment.
create or replace definer = :'owner'@'localhost'
procedure :"database".promote(
  in marker_occurrence varchar(255),
  in marker_text longtext character set utf8mb4,
  in marker_key varchar(255),
  in marker_mac varchar(255),
  in proof varchar(64)
)
sql security definer modifies sql data
begin
  declare expected varchar(64);
  select sha2(concat(outer_pad, unhex(sha2(concat(inner_pad, concat_ws(char(10),
    connection_id(), hex(marker_occurrence), hex(marker_key), hex(marker_mac), sha2(marker_text, 256)
  )), 256))), 256) into expected from :"database".deployment;
  if not (expected <=> proof) then
    signal sqlstate '45000' set message_text = 'effectmatch: the promotion is not authentic';
  end if;
  delete from :"database".stage
  where connection = connection_id() and occurrence = marker_occurrence;
  if row_count() <> 1 then
    signal sqlstate '45000' set message_text = 'effectmatch: there is no such stage';
  end if;
  insert into :"database".marker (occurrence, disposition, text, seal_key, seal_mac)
  values (marker_occurrence, 'committed', marker_text, marker_key, marker_mac);
end;

-- name: grant_records
grant select, insert, delete, execute, trigger on :"database".* to :'owner'@'localhost';

-- name: grant_control
grant select, insert, delete, create temporary tables on :"database".* to :'control'@'%';

-- name: grant_metadata
-- SELECT, SHOW VIEW and TRIGGER show definitions and engines; PROCESS shows the undo entries.
grant select, show view, trigger, process on *.* to :'control'@'%';

-- name: grant_open
grant execute on procedure :"database".open to :'execution'@'%';

-- name: grant_observe
grant execute on procedure :"database".observe to :'execution'@'%';

-- name: grant_promote
grant execute on procedure :"database".promote to :'execution'@'%';

-- name: grant_probe
grant select, insert on :"database".probe to :'execution'@'%';

-- name: grant_recording
-- The recorders read the rows that they record.
grant select, trigger on :"business".:"relation" to :'owner'@'localhost';

-- name: grant_writing
grant select, insert, update, delete on :"business".:"relation" to :'execution'@'%';

-- name: grant_reading
grant select on :"business".:"relation" to :'execution'@'%';

-- name: drop_recorder
drop trigger if exists :"business".:"trigger";

-- name: drop_database
drop database if exists :"database";

-- name: drop_table
drop table if exists :"database".:"table";

-- name: drop_procedure
drop procedure if exists :"database".:"procedure";

-- name: drop_owner
drop user if exists :'owner'@'localhost';

-- name: revoke_login
revoke all privileges, grant option from :'login'@'%';
