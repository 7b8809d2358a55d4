create table users (id int primary key, remaining int not null);
insert into users values (1, 10);
