-- What boots taught of machines and of their models: which loader firmware starts, how it goes on to its own disk.

create table learnt (
    subject_kind text not null check (subject_kind in ('node', 'model')),
    subject text not null,
    way_kind text not null check (way_kind in ('loader', 'local')),
    way text not null,
    standing text not null check (standing in ('doubted', 'failed', 'works')),
    points bigint not null,
    at_ms bigint not null,
    primary key (subject_kind, subject, way_kind, way)
);
