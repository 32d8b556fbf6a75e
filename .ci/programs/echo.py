"""Echoes, or sends random bytes on connections at once and compares what comes back: echo.py server|client PORT [CONNECTIONS]"""

import asyncio
import os
import sys

ROLE, PORT = sys.argv[1], int(sys.argv[2])


async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.write_eof()
    writer.close()


async def ask():
    reader, writer = await asyncio.open_connection("127.0.0.1", PORT)
    sent = os.urandom(262144)

    async def send():
        writer.write(sent)
        await writer.drain()
        writer.write_eof()

    sending = asyncio.create_task(send())
    came = await reader.read(-1)
    await sending
    writer.close()
    assert came == sent, f"{len(came)} bytes"


async def main():
    if ROLE == "server":
        await (await asyncio.start_server(echo, "127.0.0.1", PORT)).serve_forever()
    await asyncio.gather(*[ask() for _ in range(int(sys.argv[3]))])


asyncio.run(main())
