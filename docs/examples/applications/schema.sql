-- The tables of all examples, and the rows that each schedule begins with.
create table users (id int primary key, credits int not null);
insert into users values (1, 10), (2, 10);

create table articles (id int primary key, stock int not null);
insert into articles values (1, 1);

create table events (id int primary key, seats int not null);
insert into events values (1, 1);
create table bookings (id serial primary key);

create table jobs (id int primary key, done boolean not null);
insert into jobs values (1, false), (2, false), (3, false);
create table mails (job int not null);
