create table done (id bigserial primary key, name text not null, due bigint not null, node text not null);
