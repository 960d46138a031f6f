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
from updater_server import Shown, Updater, page

PATIENCE = 90  # seconds; whatever takes longer is a failure, not a measurement
PARTITIONS = 4
POLL = 0.1
BOUND = 10
NOWHERE = "127.0.0.1:1"
LAG, OLDEST = "lag_messages", "oldest_unacknowledged_event_timestamp_seconds"


def ready(shown):
    return shown.value("ready") == 1


def lags(shown, messages):
    """Also tells how old the oldest of them is, and that it is not ready."""
    return shown.value(LAG) == messages and shown.value(OLDEST) is not None and not ready(shown)


def kafka_unknown(shown):
    """Nothing is claimed of what only Kafka knows."""
    return (shown.value("kafka_connected") == 0 and shown.value(LAG) is None and shown.value(OLDEST) is None
            and not ready(shown) and "no broker has answered" in shown.why)


class Watched(Updater):
    """The updater of one row."""

    def start(self):
        self.began = time.time()
        return super().start()

    def ready(self):
        """Whether it serves its pages, whatever they say."""
        try:
            return bool(page(self.address(), "readyz"))
        except OSError:
            return False

    def seconds(self, condition, since=None):
        """How many seconds it takes from `since`, or from now, until it shows this."""
        since = since or time.time()
        while True:
            shown = Shown(self.address())
            if condition(shown):
                return shown.at - since
            if shown.at - since > PATIENCE:
                raise Failure(f"not shown within {PATIENCE} s; it shows lag {shown.value(LAG)} and: {shown.why}")
            time.sleep(POLL)

    def settled(self):
        return self.seconds(lambda shown: ready(shown) and shown.value(LAG) == 0)

    def holds(self, condition, seconds):
        """Fails unless it goes on to show this for so many seconds."""
        end = time.time() + seconds
        while time.time() < end:
            if not condition(shown := Shown(self.address())):
                raise Failure(f"no longer shown; it shows lag {shown.value(LAG)} and: {shown.why}")
            time.sleep(POLL)


class World:
    """The servers, and the updater of one row at a time."""

    def __init__(self, directory, redis, kafka):
        self.directory, self.redis, self.kafka = directory, redis, kafka
        self.events = self.rows = 0

    def new_topic(self, dead_letters=True):
        self.rows += 1
        topic = f"impressions{self.rows}"
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
        first = updater.seconds(lambda shown: lags(shown, 20) and "redis" in shown.why.lower())
        world.produce(topic, 1000)
        second = updater.seconds(lambda shown: lags(shown, 1020) and "redis" in shown.why.lower())
        updater.holds(lambda shown: lags(shown, 1020), 5)
        world.redis.thaw()
        return max(first, second), updater.settled()


def wrong(world, condition, produced=0, **where):
    """The configuration is wrong from the start."""
    topic = world.new_topic()
    world.produce(topic, produced)
    with world.updater(topic, **where) as updater:
        return updater.seconds(condition, updater.began), None


def topic_unknown(shown):
    return (shown.value(LAG) is None and not ready(shown) and shown.value("kafka_connected") == 1
            and "the topic impresions does not exist" in shown.why)


def dead_letters_missing(world):
    topic = world.new_topic(dead_letters=False)
    with world.updater(topic) as updater:
        updater.seconds(lambda shown: shown.value(LAG) == 0)
        began = time.time()
        world.send(topic, "poison\n", "-p", "1")
        world.produce(topic, 2, "-p", "1")
        shown = updater.seconds(
            lambda shown: lags(shown, 3) and shown.value("partition_lag_messages", 'partition="1"') == 3 and "partition 1 waits" in shown.why
            and f"the topic {topic}.dead does not exist" in shown.why, began)
        world.kafka.create_topic(f"{topic}.dead", 1)
        return shown, updater.settled()


def broker_away(world, away, seconds, back):
    topic = world.new_topic()
    with world.updater(topic) as updater:
        updater.settled()
        away(world.kafka)
        shown = updater.seconds(kafka_unknown)
        updater.holds(kafka_unknown, seconds)
        back(world.kafka)
        return shown, updater.settled()


ROWS = [("redis_frozen", "Redis frozen, 20 produced, then 1,000 more", redis_frozen),
        ("redis_wrong", "Redis' address wrong from the start, 25 in the topic", lambda world: wrong(
            world, lambda shown: lags(shown, 25) and NOWHERE in shown.why, produced=25, redis=NOWHERE)),
        ("topic_wrong", "the topic's name wrong from the start", lambda world: wrong(world, topic_unknown, reads="impresions")),
        ("dead_letters_missing", "dead-letter topic missing, 3 messages wait in one partition", dead_letters_missing),
        ("broker_wrong", "the broker's address wrong from the start", lambda world: wrong(
            world, lambda shown: kafka_unknown(shown) and NOWHERE in shown.why, brokers=NOWHERE)),
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
