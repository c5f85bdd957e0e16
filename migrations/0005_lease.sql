-- What became of addresses the boot services gave away: a copy for pages and scripts. The truth is their own log;
-- nothing is decided by this table.
create table lease (
    network    text   not null,
    address    text   not null,           -- dotted
    mac        text   not null,           -- for 'taken' the one it was kept from
    state      text   not null,           -- bound, released, taken
    at_ms      bigint not null,
    until_ms   bigint not null,
    host_name  text   not null,
    location   text,                      -- relay and its option 82
    primary key (network, address)
);

create index lease_by_mac on lease (mac);
