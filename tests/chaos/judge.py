"""The judge of a whole round: what Redis holds against what Kafka was given, record by record."""
import time

from events import is_crowded
from processes import wait_until
from record import Malformed, Record
from reserving import PATIENCE, is_hard
from resp import Redis
from traffic import RETENTION
from watch import claimed
from world import PARTITIONS

PREFIX = "fcap:{"
NAMED = 5  # how many of a kind a problem names
TRIMMED_ENTRIES_MIN = 300  # that a record keeps at least: somewhat less than half of ledger.record_bytes_max, where an entry takes 24 bytes


def wait_counted(world):
    """Whether the updaters say that all is counted; traffic must be paused. Otherwise what they say instead."""
    since = time.time() + 3  # they ask every two seconds where the partitions end

    def all_counted():
        time.sleep(0.3)
        shown = [updater.shown() for updater in world.updaters if updater.running()]
        return (all(shown) and sum(found.value("assigned_partitions") or 0 for found in shown) == PARTITIONS
                and (claimed(shown) or 0) > since and all(found.value("lag_messages") in (0, None) for found in shown))

    if wait_until(all_counted, PATIENCE):
        return ""
    return "\n".join(f"{updater.log}: {found and found.why}, lag {found and found.value('lag_messages')}, "
                     f"gap {found and found.value('gap_offsets')}"
                     for updater in world.updaters if updater.running() for found in [updater.shown()])


class Verdict:
    """What differs, by kind."""

    def __init__(self):
        self.entries = self.users = self.trimmed = self.record_bytes = 0
        self.wrong = {}
        self.hard = {}  # records of users with hard caps, and when each was read

    def differs(self, kind, what):
        self.wrong.setdefault(kind, []).append(what)

    def problems(self):
        return [f"{kind}: {len(found)}, among them {'; '.join(found[:NAMED])}" for kind, found in self.wrong.items()]


def judge(world, traffic):
    """Everything must be counted, and traffic paused."""
    expected, verdict = traffic.expect(), Verdict()
    left, values = {}, {}
    for node in world.masters():
        with Redis(node.port, 60) as redis:
            keys = sorted(set(redis.keys()))
            for key in set(keys) & set(left):
                verdict.differs("keys on two shards", key.decode())
            left |= zip(keys, redis.all([["PTTL", key] for key in keys]))
            now = 1000 * time.time()
            mine = [key for key in keys if key.startswith(f"{PREFIX}{traffic.epoch.name}-".encode())]
            values |= zip(mine, redis.all([["GET", key] for key in mine]))
    for key, ttl in left.items():
        if ttl == -1:
            verdict.differs("keys without an expiry", key.decode())
    read_at = 1000 * time.time()
    users = {f"{PREFIX}{user}}}".encode() for user in {*expected.entries, *expected.erased_before}}
    for key in sorted(users | set(values)):
        user = key.decode()[len(PREFIX):-1]
        try:
            record = Record(values.get(key) or b"")
        except Malformed as reason:
            verdict.differs("records that cannot be read", f"{user}: {reason}")
            continue
        verdict.users, verdict.record_bytes = verdict.users + 1, verdict.record_bytes + len(values.get(key) or b"")
        compare(verdict, user, record, *expected.of(user))
        if is_hard(user):
            verdict.hard[user] = read_at, record
        elif record.reservations:
            verdict.differs("reservations that nobody made", user)
        newest = max((time for time, _ in record.entries.values()), default=0)
        if 0 < left.get(key, 0) and now + left[key] < newest + RETENTION - 1000:
            verdict.differs("keys that expire before their newest event does", user)
    if missing := traffic.missing_dead_letters():
        verdict.differs("messages that were refused and are not in the dead-letter topic", "; ".join(
            value.decode() for value in missing[:NAMED]) + f" ({len(missing)} in all)")
    return verdict


def compare(verdict, user, record, expected, erased_before):
    verdict.entries += len(record.entries)
    if record.erased_before != erased_before:
        verdict.differs("erasures that the record does not have", f"{user}: {record.erased_before} instead of {erased_before}")
    if record.complete_since > 0:
        verdict.trimmed += 1
        if not is_crowded(user):
            verdict.differs("records that were trimmed although they are small", f"{user}: {len(record.entries)} entries")
        elif len(record.entries) < TRIMMED_ENTRIES_MIN and erased_before < record.complete_since:
            verdict.differs("records that were trimmed too far", f"{user}: {len(record.entries)} entries")
    for identity, value in expected.items():
        if value[0] >= record.complete_since and record.entries.get(identity) != value:
            kind = "events lost" if identity not in record.entries else "events with another time or creative"
            verdict.differs(kind, f"{user}: {identity} {value} {record.entries.get(identity)}")
    for identity, value in record.entries.items():
        if identity not in expected:
            verdict.differs("entries that nothing explains (twice, erased, refused or another user's)", f"{user}: {identity} {value}")
