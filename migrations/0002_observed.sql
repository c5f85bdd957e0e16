-- What was seen of the machines. A sighting of an unknown machine has the empty text as its node.

create table sighting (
    id text not null primary key,
    node text not null,
    at_ms bigint not null,
    mac text,
    peer text,
    attempt_ms bigint,
    what_json text not null
);

create index sighting_by_node on sighting (node, id);
create index sighting_by_attempt on sighting (node, attempt_ms, id);

create table facts (
    node text not null primary key,
    at_ms bigint not null,
    generation bigint not null,
    json text not null,
    raw_json text not null
);

create table power_state (
    node text not null primary key,
    is_on bigint check (is_on in (0, 1)),
    at_ms bigint not null
);

create table bmc_fact (
    node text not null primary key,
    guid text,
    suite bigint,
    trouble text,
    at_ms bigint not null
);
