"""Looks at the updaters all the time, and holds them to what they say: whoever claims that everything up to an instant is counted
must have counted it."""
import threading
import time

import history
from events import TYPES, fingerprint, id_hash
from record import Malformed, Record
from resp import RedisError
from traffic import ALLOWED_FUTURE, RETENTION
from world import PARTITIONS

LOOK = 0.5  # seconds
TOLD = 15  # seconds within which an outage, a loss or a new message must show
UPDATER_MB_MAX = 600


class Watch:
    def __init__(self, world, traffic, problem):
        self.world, self.traffic, self.problem = world, traffic, problem
        self.resident_mb = self.claims = self.looks = self.not_ready = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(LOOK):
            shown = [(updater, updater.shown()) for updater in self.world.all_updaters()]
            shown = [(updater, found) for updater, found in shown if found]
            for updater, found in shown:
                self.look(updater, found)
            shown = [(updater, found) for updater, found in shown if updater is not self.world.another_group]
            self.gaps([found for _, found in shown])
            if (until := claimed([found for _, found in shown])) is not None:
                now = time.time()
                self.world.claims.append((1000 * now, 1000 * min(until, now - TOLD)))
                self.end_of_loss(until)
                self.verify(min(until, time.time() - TOLD))

    def end(self):
        self.ended.set()
        self.thread.join(60)

    def look(self, updater, shown):
        self.looks += 1
        ready, memory = shown.value("ready"), (shown.value("process_resident_memory_bytes") or 0) / 1e6
        self.not_ready += ready != 1
        if memory > UPDATER_MB_MAX > self.resident_mb:
            self.problem(f"an updater takes {memory:.0f} MB")
        self.resident_mb = max(self.resident_mb, memory)
        for what, (since, lag_is_known) in list(self.world.outages.items()):
            if shown.at - max(since, updater.steady_since) < TOLD or what not in self.world.outages:
                continue
            if ready == 1:
                self.problem(f"{what} for {shown.at - since:.0f} s, and an updater says that it is ready")
            if not lag_is_known and shown.value("lag_messages") is not None:
                self.problem(f"{what} for {shown.at - since:.0f} s, and an updater claims a lag of {shown.value('lag_messages')}")

    def gaps(self, shown):
        if not any(found.value("gap_offsets") for found in shown):
            self.world.gap_open_since = None
        elif self.world.gap_open_since is None:
            self.world.gap_open_since = time.time()
            self.world.gaps.append((1000 * time.time(), 1000 * time.time()))
        else:
            self.world.gaps[-1] = (self.world.gaps[-1][0], 1000 * time.time())

    def end_of_loss(self, until):
        with self.world.losses:
            self.world.lost = [(at, slots) for at, slots in self.world.lost if until <= at + 5]

    def verify(self, until):
        """That some of the events that Kafka has had for long, from before this time, are in Redis."""
        if self.world.redis_disturbed(TOLD):
            return
        try:
            messages = self.traffic.sample(until, 20)
            values = self.world.records([message.user for message in messages])
        except (RedisError, IndexError):
            return
        found = [(message, counted(message, value)) for message, value in zip(messages, values)]
        missing = [message for message, there in found if there is False]
        if missing:
            time.sleep(1)  # a failover that no fault meant is seen within that time
        if self.world.redis_disturbed(TOLD):
            return
        if missing:
            self.problem(f"the updaters claim that everything is counted up to {until:.3f}, and these are not: "
                         f"{[message.value.decode() for message in missing]}")
        self.claims += sum(there is not None for _, there in found)


def claimed(shown):
    """The time up to which all events are counted, by the updaters' own words; None: they do not claim it of all partitions."""
    if sum(found.value("assigned_partitions") or 0 for found in shown) != PARTITIONS:
        return None
    until = min(found.at for found in shown)
    for found in shown:
        if not found.value("assigned_partitions"):
            continue
        lag, oldest = found.value("lag_messages"), found.value("oldest_unacknowledged_event_timestamp_seconds")
        if found.value("ready") != 1 or found.value("gap_offsets") != 0 or lag is None or (lag and oldest is None):
            return None
        until = min(until, oldest or until)
    return until


def counted(message, value):
    """None: it need not be."""
    if message.dead:
        return None
    try:
        event = history.decoded(message.value)
    except (history.NoEvent, history.Nobodys):
        return None
    now = 1000 * time.time()
    if event.event_type == "erasure" or not now - RETENTION < event.time < now + ALLOWED_FUTURE:
        return None
    try:
        record = Record(value or b"")
    except Malformed:
        return False
    if event.time <= record.erased_before or event.time < record.complete_since:
        return None
    identity = (id_hash(event.campaign), TYPES.index(event.event_type), fingerprint(event.event_id))
    return record.entries.get(identity, (0, 0))[0] >= event.time
