#!/usr/bin/env python3
"""Compares `fcap check` with the reference implementation where records hold reservations.

    reservations.py --fcap build/release/cli/fcap --seed 1 --count 200

As fuzz.py, but the history of each user is written to a Redis, by docs/ledger-format.md: events,
erasures and reservations in any order, in several copies. Exit code 77: there is no Redis here.
"""

import json
import os
import sys

import fuzz
import history
from generate import length_ms

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
sys.path += [os.path.join(ROOT, "scripts"), os.path.join(ROOT, "tests/chaos")]
from over_redis import over_redis
from record import fingerprint, id_hash
from resp import Redis

RELEASED, WITH_CREATIVE = 8, 4
LIFE_MAX = 86_400_000  # of a reservation, as the updater allows


def frame(tag, *fields):
    payload = b"".join(value.to_bytes(width, "little") for value, width in fields)
    return bytes([tag, len(payload)]) + payload


def event_frame(event, tag=1, flags=0, life=()):
    if event.event_type == "erasure":
        return frame(3, (event.time, 6))
    flags |= history.EVENT_TYPES.index(event.event_type)
    creative = [(id_hash(event.creative), 6)] if event.creative else []
    flags |= WITH_CREATIVE if creative else 0
    fields = [(flags, 1), (id_hash(event.campaign), 6), (event.time, 6)]
    return frame(tag, *fields, (fingerprint(event.event_id), 4), *life, *creative)


def records(case):
    """User -> record."""
    found = {}
    for line in case.lines:
        try:
            event = history.decoded(line)
        except (history.NoEvent, history.Nobodys):
            continue
        found.setdefault(event.user, []).append(event_frame(event))
    for event, expires, released in case.reserved:
        flags, life = RELEASED if released else 0, [(expires - event.time, 4)]
        found.setdefault(event.user, []).append(event_frame(event, 5, flags, life))
    # In an order that has nothing to do with time, and is the same each time.
    return {user: b"".join(sorted(frames, key=hash_of)) for user, frames in found.items()}


def updaters_config(case):
    """What an updater records of its settings; without it, no count is complete."""
    return json.dumps({
        "key_prefix": "fcap", "retention_ms": length_ms(case.retention), "id_hash": "xxh3-48",
        "null_user_ids": [history.NULL_USER_IDS[1]], "write_format": 3, "reservation": {"max_life_ms": LIFE_MAX}})


def hash_of(data):
    return fingerprint(data.hex())


class Program(fuzz.Program):
    """The command under test, which reads a Redis."""

    _refused_without_word = None  # what is no event never gets that far

    def __init__(self, fcap, directory, server):
        super().__init__(fcap, directory)
        self._server = server
        self._redis = Redis(server.port)

    def _history(self, case):
        self._redis("FLUSHALL")
        for user, record in records(case).items():
            self._redis("SET", f"fcap:{{{user}}}", record)
        self._redis("SET", "fcap:!config", updaters_config(case))
        return ["--redis", f"127.0.0.1:{self._server.port}", "--input", "-"]


def main():
    options = fuzz.parser_of(__doc__).parse_args()
    def run(directory, server):
        return fuzz.run(options, Program(os.path.abspath(options.fcap), directory, server), with_reservations=True)

    return over_redis(run)


if __name__ == "__main__":
    sys.exit(main())
