-- The credits of the chat service, and the requests of the worker.
create table users (id int primary key, credits int not null);
insert into users values (1, 10);

create table requests (id int primary key, answered boolean not null);
insert into requests values (1, false);
create table answers (request int not null);
