"""The part `outages`: how long it takes until fcap-updater's metrics and /readyz show the true state of an outage. It runs as
delivered, with its default settings, over real servers that are frozen, killed, or not where the configuration says.

Each row waits until everything that is true of its outage is shown at once: lag, connection, readiness with its reason; then,
where the outage can end, until the updater is ready again and lags behind by nothing."""
import json
import subprocess
import sys
import time

from report import table
from service import BUILD, running
from services import Failure, Server, make
from updater_server import Updater

PATIENCE = 90  # seconds; whatever takes longer is a failure, not a measurement
PARTITIONS = 4
POLL = 0.1
BOUND = 10
LAG, PARTITION_LAG = "fcap_updater_lag_messages", "fcap_updater_partition_lag_messages"
OLDEST = "fcap_updater_oldest_unacknowledged_event_timestamp_seconds"


class Shown:
    """What an updater shows at one moment."""

    def __init__(self, updater):
        self.at = time.monotonic()
        self.why = updater.page("readyz")
        # Samples by name and labels; one that is missing is not 0 here.
        self.samples = dict(line.rsplit(" ", 1) for line in updater.page("metrics").splitlines() if not line.startswith("#"))

    def value(self, name, label=""):
        """The sum over labels, or over those with this one; None: there is no sample."""
        found = [float(value) for key, value in self.samples.items() if key.partition("{")[0] == name and label in key]
        return sum(found) if found else None

    def ready(self):
        return self.value("fcap_updater_ready") == 1

    def lags(self, messages):
        """Also tells how old the oldest of them is, and that it is not ready."""
        return self.value(LAG) == messages and self.value(OLDEST) is not None and not self.ready()

    def kafka_unknown(self):
        """Nothing is claimed of what only Kafka knows."""
        return (self.value("fcap_updater_kafka_connected") == 0 and self.value(LAG) is None and self.value(OLDEST) is None
                and not self.ready() and "no broker has answered" in self.why)


class Watched(Updater):
    """The updater of one row."""

    def start(self):
        self.began = time.monotonic()
        return super().start()

    def ready(self):
        """That it serves its pages, whatever they say."""
        try:
            return bool(self.page("readyz"))
        except OSError:
            return False

    def seconds(self, condition, since):
        """From then until it shows this."""
        while True:
            shown = Shown(self)
            if condition(shown):
                return shown.at - since
            if shown.at - since > PATIENCE:
                raise Failure(f"not shown within {PATIENCE} s; it shows lag {shown.value(LAG)} and: {shown.why}")
            time.sleep(POLL)

    def settled(self):
        return self.seconds(lambda shown: shown.ready() and shown.value(LAG) == 0, time.monotonic())

    def holds(self, condition, seconds):
        """That it goes on to show this."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not condition(shown := Shown(self)):
                raise Failure(f"no longer shown; it shows lag {shown.value(LAG)} and: {shown.why}")
            time.sleep(POLL)


class World:
    """The servers, and the updater of one row at a time."""

    def __init__(self, directory, redis, kafka):
        self.directory, self.redis, self.kafka = directory, redis, kafka
        self.events = 0
        self.row = 0

    def new_topic(self, dead_letters=True):
        self.row += 1
        topic = f"impressions{self.row}"
        self.kafka.create_topic(topic, PARTITIONS)
        if dead_letters:
            self.kafka.create_topic(f"{topic}.dead", 1)
        return topic

    def produce(self, topic, count, *options):
        now = int(time.time() * 1000)
        lines = ""
        for n in range(self.events, self.events + count):
            event = {"event_id": f"e{n}", "type": "impression", "user_id": f"u{n}", "campaign_id": "c", "timestamp": now}
            lines += f"u{n}|{json.dumps(event)}\n"
        self.events += count
        self.send(topic, lines, "-K", "|", *options)

    def send(self, topic, lines, *options):
        subprocess.run(["kcat", "-q", "-P", "-b", self.kafka.address(), "-t", topic, *options], input=lines, text=True, check=True)

    def updater(self, topic, *, reads=None, redis=None, brokers=None):
        updater = Watched(f"{self.directory}/{topic}", f"{BUILD}/updater/fcap-updater")
        updater.settings = {"kafka": {"brokers": [brokers or self.kafka.address()], "topic": reads or topic,
                                      "dead_letter_topic": f"{topic}.dead", "group_id": topic},
                            "redis": {"addresses": [redis or self.redis.address()]}}
        return running(updater)


# The rows: each gives the seconds until the outage was shown, and those until its end was; None: it has none.

def redis_frozen(world):
    topic = world.new_topic()
    with world.updater(topic) as updater:
        updater.settled()
        world.redis.freeze()
        world.produce(topic, 20)
        first = updater.seconds(lambda shown: shown.lags(20) and "redis" in shown.why.lower(), time.monotonic())
        world.produce(topic, 1000)
        second = updater.seconds(lambda shown: shown.lags(1020) and "redis" in shown.why.lower(), time.monotonic())
        updater.holds(lambda shown: shown.lags(1020), 5)
        world.redis.thaw()
        return max(first, second), updater.settled()


def redis_wrong(world):
    topic = world.new_topic()
    world.produce(topic, 25)
    with world.updater(topic, redis="127.0.0.1:1") as updater:
        return updater.seconds(lambda shown: shown.lags(25) and "127.0.0.1:1" in shown.why, updater.began), None


def topic_wrong(world):
    topic = world.new_topic()
    with world.updater(topic, reads="impresions") as updater:
        return updater.seconds(
            lambda shown: shown.value(LAG) is None and not shown.ready() and shown.value("fcap_updater_kafka_connected") == 1
            and "the topic impresions does not exist" in shown.why, updater.began), None


def broker_wrong(world):
    topic = world.new_topic()
    with world.updater(topic, brokers="127.0.0.1:1") as updater:
        return updater.seconds(lambda shown: shown.kafka_unknown() and "127.0.0.1:1" in shown.why, updater.began), None


def dead_letters_missing(world):
    topic = world.new_topic(dead_letters=False)
    with world.updater(topic) as updater:
        updater.seconds(lambda shown: shown.value(LAG) == 0, time.monotonic())
        began = time.monotonic()
        world.send(topic, "poison\n", "-p", "1")
        world.produce(topic, 2, "-p", "1")
        shown = updater.seconds(
            lambda shown: shown.lags(3) and shown.value(PARTITION_LAG, 'partition="1"') == 3 and "partition 1 waits" in shown.why
            and f"the topic {topic}.dead does not exist" in shown.why, began)
        world.kafka.create_topic(f"{topic}.dead", 1)
        return shown, updater.settled()


def broker_away(world, away, seconds, back):
    topic = world.new_topic()
    with world.updater(topic) as updater:
        updater.settled()
        away(world.kafka)
        shown = updater.seconds(Shown.kafka_unknown, time.monotonic())
        updater.holds(Shown.kafka_unknown, seconds)
        back(world.kafka)
        return shown, updater.settled()


ROWS = [("redis_frozen", "Redis frozen, 20 produced, then 1,000 more", redis_frozen),
        ("redis_wrong", "Redis' address wrong from the start, 25 in the topic", redis_wrong),
        ("topic_wrong", "the topic's name wrong from the start", topic_wrong),
        ("dead_letters_missing", "dead-letter topic missing, 3 messages wait in one partition", dead_letters_missing),
        ("broker_wrong", "the broker's address wrong from the start", broker_wrong),
        ("broker_frozen", "broker frozen", lambda world: broker_away(world, Server.freeze, 5, Server.thaw)),
        # Beyond the session timeout, when the member has lost its partitions.
        ("broker_killed", "broker killed", lambda world: broker_away(world, Server.kill, 50, Server.start))]
QUICK = ("redis_wrong", "topic_wrong")


def run(quick, directory):
    rows = []
    with running(make("redis", directory)) as redis, running(make("kafka", directory)) as kafka:
        world = World(directory, redis, kafka)
        for name, title, measure in ROWS:
            if quick and name not in QUICK:
                continue
            shown, again = measure(world)
            print(f"{title}: {shown:.1f} s", file=sys.stderr)
            rows.append({"name": name, "title": title, "shown": shown, "bound": BOUND, "again": again})
    return {"outage_shown_s": max(row["shown"] for row in rows), "tables": {"outages": table(
        "Until metrics and /readyz show the true state of an outage",
        "fcap-updater with its default settings. Then, where the outage ended: until it was ready and lagged by nothing.",
        [("shown", "s", 1), ("bound", "bound, s", 0), ("again", "well again, s", 1)], rows)}}
