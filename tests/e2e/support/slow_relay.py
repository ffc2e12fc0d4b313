#!/usr/bin/env python3
"""Forwards TCP connections to their original destination, with a delay.

usage: slow_relay.py PORT SECONDS. Expects connections that the kernel has redirected to PORT, and
runs as a user whose own connections are not redirected. Prints "ready" when it listens.
"""
import asyncio
import socket
import struct
import sys

ORIGINAL_DST = 80  # SO_ORIGINAL_DST of netfilter
CHUNK = 65536


async def carry(reader, writer, delay):
    """Forwards all data in order, each chunk `delay` seconds after it arrived."""
    queue = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def deliver():
        while True:
            due, chunk = await queue.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not chunk:
                break
            writer.write(chunk)
            await writer.drain()
        writer.close()

    task = asyncio.create_task(deliver())
    try:
        while True:
            chunk = await reader.read(CHUNK)
            queue.put_nowait((loop.time() + delay, chunk))
            if not chunk:
                break
        await task
    except ConnectionError:
        task.cancel()
        writer.close()


def destination(connection):
    port, address = struct.unpack("!2xH4s8x",
                                  connection.getsockopt(socket.SOL_IP, ORIGINAL_DST, 16))
    return socket.inet_ntoa(address), port


async def main(port, delay):
    async def accept(reader, writer):
        there = await asyncio.open_connection(
            *destination(writer.get_extra_info("socket")))
        await asyncio.gather(carry(reader, there[1], delay), carry(there[0], writer, delay))

    server = await asyncio.start_server(accept, "127.0.0.1", port)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), float(sys.argv[2])))
