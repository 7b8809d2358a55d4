CREATE TABLE sent (id serial PRIMARY KEY, mail int NOT NULL);
