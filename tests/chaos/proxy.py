#!/usr/bin/python3 -E
"""A TCP proxy in a process of its own, whose connections can be cut, delayed, silenced and dropped. As a program:
proxy.py PORT TO carries connections from one port to the other, and does what the lines on its standard input say."""
import asyncio
import contextlib
import random
import subprocess
import sys

PIECE = 1 << 16


class Carrier:
    """`delay` is in seconds, at most; while it is `silent`, nothing passes, and nothing is closed; `dropping` is the share of
    pieces in whose place their connection is cut."""

    def __init__(self, port, to):
        self.port, self.to = port, to
        self.chance = random.Random(port)
        self.transports = set()
        self.set("0", "0", "0")

    def set(self, delay, silent, dropping):
        self.delay, self.silent, self.dropping = float(delay), silent == "1", float(dropping)

    async def run(self):
        await asyncio.start_server(self.serve, "127.0.0.1", self.port)
        orders = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
        print("ready", flush=True)
        while line := (await orders.readline()).decode():
            if line == "cut\n":
                print(len(self.transports) // 2, flush=True)
                for transport in list(self.transports):
                    transport.abort()
            else:
                self.set(*line.split())
                print("done", flush=True)

    async def serve(self, reader, writer):
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.transport.abort()
            return
        transports = {writer.transport, back.transport}
        self.transports |= transports
        ways = [asyncio.ensure_future(self.carry(*way)) for way in ((reader, back), (there, writer))]
        with contextlib.suppress(asyncio.CancelledError):  # this program ends
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        self.transports -= transports
        for way in ways:
            way.cancel()
        for transport in transports:
            transport.abort()

    async def carry(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(PIECE):
                if self.delay:
                    await asyncio.sleep(self.delay * self.chance.random())
                while self.silent:
                    await asyncio.sleep(0.02)
                if self.chance.random() < self.dropping:
                    return
                writer.write(data)
                await writer.drain()


class Proxy:
    def __init__(self, port, to):
        self.port = port
        self.process = subprocess.Popen([sys.executable, "-E", __file__, str(port), str(to)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.answer()

    def address(self):
        return f"127.0.0.1:{self.port}"

    def order(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self):
        if line := self.process.stdout.readline():
            return line.strip()
        raise OSError("the proxy has ended")

    def cut(self):
        """How many connections were cut."""
        return int(self.order("cut"))

    def set(self, delay=0.0, silent=False, dropping=0.0):
        self.order(f"{delay} {int(silent)} {dropping}")

    def stop(self):
        """It ends when its orders do."""
        self.process.stdin.close()
        self.process.wait(10)


if __name__ == "__main__":
    asyncio.run(Carrier(int(sys.argv[1]), int(sys.argv[2])).run())
