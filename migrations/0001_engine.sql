-- The engine's own tables. One text for SQLite and PostgreSQL: bigint, double precision and text only; time is
-- UTC milliseconds; booleans are 0 or 1; keys are text made by volund (ULID), never autoincrement.

create table switch (
    id text not null primary key,
    node text not null,
    profile text not null,
    from_profile text,
    phase text not null,
    state_json text not null,
    is_open bigint not null check (is_open in (0, 1)),
    asked_by text not null,
    reason text not null,
    remedy text,
    created_ms bigint not null,
    since_ms bigint not null,
    until_ms bigint,
    version bigint not null
);

create unique index switch_one_open on switch (node) where is_open = 1;
create index switch_by_node on switch (node, created_ms, id);

create table transition (
    id text not null primary key,
    switch_id text not null references switch (id),
    node text not null,
    at_ms bigint not null,
    phase text not null,
    reason text not null
);

create index transition_by_node on transition (node, id);

create table settled (
    node text not null primary key,
    profile text not null,
    at_ms bigint not null
);

create table assignment (
    node text not null primary key,
    profile text not null,
    asked_by text not null,
    at_ms bigint not null,
    owner text not null check (owner in ('file', 'live'))
);

create table attempt (
    node text not null,
    id_ms bigint not null,
    kernel_whole_ms bigint,
    switch_id text references switch (id),
    ticket text,
    ticket_state text not null check (ticket_state in ('live', 'spent', 'claimed')),
    nonce text,
    answer_json text,
    renewals bigint not null,
    primary key (node, id_ms)
);

create index attempt_by_ticket on attempt (ticket);
