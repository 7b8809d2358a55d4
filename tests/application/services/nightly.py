"""A batch job that gives a user 5 credits: by what it has read (wrong), in one statement (right), or not (a status)."""

import os
import sys

import psycopg2

way, number = sys.argv[1:]
database = psycopg2.connect(os.environ["DATABASE_URL"])
with database, database.cursor() as cursor:
    if way == "wrong":
        cursor.execute("SELECT remaining FROM users WHERE id = 1")
        remaining = cursor.fetchone()[0] + 5
        cursor.execute("UPDATE users SET remaining = %s WHERE id = 1", (remaining,))
    if way == "right":
        cursor.execute("UPDATE users SET remaining = remaining + 5 WHERE id = 1")
database.close()
sys.exit(0 if way in ("wrong", "right") else int(number) + 2)
