-- Who may ask, and what was done on whose word.

create table audit (
    id text not null primary key,
    at_ms bigint not null,
    node text not null,
    verb text not null,
    asked_by text not null,
    warrant text not null,
    disks_json text not null,
    plan_hash text
);

create table account (
    name text not null primary key,
    phc text not null
);

create table token (
    name text not null primary key,
    hash text not null,
    made_by text not null,
    created_ms bigint not null,
    revoked_ms bigint
);

create unique index token_by_hash on token (hash);
