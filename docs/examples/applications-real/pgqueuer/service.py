"""An instance of a service with PGQueuer: it notes a tick each minute, and sends the mails that are in its queue."""

import asyncio
import os
import sys

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job, Schedule
from pgqueuer.queries import Queries


async def healthy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    writer.close()


async def main() -> None:
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    own = await asyncpg.connect(os.environ["DATABASE_URL"])
    driver = AsyncpgDriver(connection)
    if await own.fetchval("select to_regclass('pgqueuer_schedules') is null"):
        await Queries(driver).install()
    service = PgQueuer(driver)

    @service.schedule("tick", "* * * * *")
    async def tick(schedule: Schedule) -> None:
        await own.execute("insert into ticks (minute, instance) values (date_trunc('minute', now()), $1)", sys.argv[2])

    @service.entrypoint("mail")
    async def mail(job: Job) -> None:
        await own.execute("insert into sent (mail) values ($1)", job.payload.decode())

    await asyncio.start_server(healthy, "127.0.0.1", int(sys.argv[1]))
    await service.run()


asyncio.run(main())
