create table ticks (id bigserial primary key, minute timestamptz not null, instance text not null);
create table sent (id bigserial primary key, mail text not null);
