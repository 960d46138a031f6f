"""Ad servers with hard caps, while the faults happen: two processes reserve, record, release, choose for pages and share notes, for
the same users at the same time. Most of what they may show is published with its event id and the reservation's time, some is left
to expire, some is released. What they were answered is judged after each round (promises.py), with what the records hold."""
import collections
import functools
import heapq
import itertools
import random
import threading
import time

from client import Client
from events import LIMIT, Message, campaign, event, mixed
from promises import DECIDED, LIFE_MAX, Call, Memory, Promises, Published
from record import Record, fingerprint, id_hash
from services import Failure
from world import TOPIC

from confluent_kafka import Producer

RATE = 40  # impressions per second that somebody wants to show
AT_ONCE, USERS_AT_ONCE, GROUPS_OF_A_USER = 4, 12, 60
HARD, NOTED = (0, 1), 2  # campaigns of a user: with hard caps, and with shared notes
SHARED_FOR = 5 * 60_000  # a note
THREADS, DEADLINE_MS = 3, 15
PATIENCE = 300  # seconds until everything must be counted, and known of each call, when all is well again
TRIES = 5
FAILOVER, REPLICATION = "a failover that no fault meant", 5  # seconds for which both masters may have been written to

Ask = collections.namedtuple("Ask", "kind user campaign event life words client", defaults=(LIFE_MAX, "", None))


def now_ms():
    return 1000 * time.time()


def is_hard(user):
    return "-hard" in user


class Reserves:
    def __init__(self, world, traffic, problem, seed):
        self.world, self.traffic, self.seed = world, traffic, seed
        self.lock, self.due, self.numbers = threading.Lock(), [], itertools.count()
        self.running, self.made, self.outcomes = 0, 0, collections.Counter()
        self.over, self.published_count, self.campaigns_seen, self.checks, self.checked = collections.Counter(), 0, 0, 0, {}
        self.flowing, self.ending = threading.Event(), threading.Event()
        self.clients = [Client(world, f"ad-server{n}", world.reserver_url(), THREADS, DEADLINE_MS, problem, self.answered) for n in (1, 2)]
        self.begin_epoch()
        threading.Thread(target=self.run, daemon=True).start()
        if world.replicated():
            threading.Thread(target=self.watch_master, daemon=True).start()

    def begin_epoch(self):
        """A producer belongs to one creation of the topic."""
        self.calls, self.published, self.messages = [], {}, []
        self.producer = Producer({"bootstrap.servers": self.traffic.brokers, "acks": "all", "message.timeout.ms": 0, "linger.ms": 5,
                                  "log_level": 2})

    # Impressions: each is a generator that gives what it asks, and is sent the answer, or gives how many seconds it waits.

    def run(self):
        due = time.monotonic()
        while self.clients[0].running():
            self.producer.poll(0)
            if self.flowing.is_set() and time.monotonic() >= due:
                due = max(due + AT_ONCE / RATE, time.monotonic() - 1)
                for _ in range(AT_ONCE):
                    self.begin(self.made)
                    self.made += 1
            while (one := self.next_due()) is not None:
                self.advance(one, None)
            time.sleep(0.005)

    def watch_master(self):
        """A failover that no fault meant, of a master that a busy machine has held up, may take something, too."""
        known = {}
        while self.clients[0].running():
            for shard, named in self.world.named_masters().items():
                replaced = known.get(shard) and named and named != known[shard]
                if replaced and named != self.world.handed_over.pop(shard, None):
                    slots = self.world.slots_of(shard)
                    if not self.world.losing(10, slots):
                        self.world.begin_loss(FAILOVER, 2 * REPLICATION, slots).end = now_ms() + 1000 * REPLICATION
                known[shard] = named or known.get(shard)
            time.sleep(0.5)

    def next_due(self):
        with self.lock:
            if self.due and self.due[0][0] <= time.monotonic():
                return heapq.heappop(self.due)[2]
        return None

    def begin(self, n):
        group, chance = n // AT_ONCE, mixed(self.seed ^ n ^ 0x9999)
        user = f"{self.traffic.epoch.name}-hard{group // GROUPS_OF_A_USER * USERS_AT_ONCE + mixed(self.seed ^ group) % USERS_AT_ONCE}"
        shown, event_id = campaign(user, HARD[chance % len(HARD)]), f"{self.traffic.epoch.name}-r{n}"
        kinds = [self.confirmed] * 9 + [self.unconfirmed] * 3 + [self.released] * 3 + [self.recorded] * 2 + [self.page] * 2 + [self.noted]
        with self.lock:
            self.running += 1
        self.advance(kinds[(chance >> 8) % len(kinds)](random.Random(chance), user, shown, event_id), None)

    def advance(self, impression, answer):
        try:
            step = impression.send(answer)
        except StopIteration:
            with self.lock:
                self.running -= 1
            return
        if isinstance(step, Ask):
            client = next(self.numbers) % 2 if step.client is None else step.client
            self.clients[client].put((impression, step, now_ms()),
                                     f"{step.kind} {step.user} {step.words or f'{step.campaign} {step.event}'}")
        else:
            with self.lock:
                heapq.heappush(self.due, (time.monotonic() + (min(step, 0.3) if self.ending.is_set() else step), next(self.numbers), impression))

    def answered(self, asked, words):
        (impression, ask, began), answered = asked, now_ms()
        if impression is None:
            self.checked[ask.user, ask.campaign] = words
            return
        found = page_calls(ask, began, answered, words) if ask.kind == "page" else [Call(
            ask.kind, ask.user, ask.campaign, ask.event, began, answered, words[0], words[1], int(words[2]), int(words[3]), ask.life)]
        with self.lock:
            self.calls += found
            if ask.kind in ("reserve", "record", "page"):
                self.outcomes["unknown" if words[1] == "unknown" else words[0]] += 1
        self.advance(impression, found if ask.kind == "page" else found[0])

    def known(self, ask):
        """Repeats the call until its outcome is known, and a few times where it was not decided. A record() of which one attempt may
        have written its entry is repeated until it is decided: what is in Redis must be published."""
        written = False
        for tries in itertools.count():
            call = yield ask
            first = call[0] if isinstance(call, list) else call
            written |= ask.kind == "record" and first.outcome == "unknown"
            if first.outcome != "unknown" and (first.reason in DECIDED or tries >= TRIES and not written):
                return call
            yield 0.3 if first.outcome == "unknown" else 1.0

    def reserve(self, user, shown, event_id, life=LIFE_MAX):
        return self.known(Ask("reserve", user, shown, event_id, life, f"{shown} {event_id} {life}"))

    def confirmed(self, chance, user, shown, event_id):
        call = yield from self.reserve(user, shown, event_id)
        if call.outcome != "allowed":
            return
        yield chance.uniform(0, 3)
        if chance.random() < 0.3:
            again = yield from self.reserve(user, shown, event_id)
            call = again if again.outcome == "allowed" else call
        self.publish(call)
        if chance.random() < 0.3:
            yield chance.uniform(0, 3)
            again = yield from self.reserve(user, shown, event_id)
            self.publish(again)

    def unconfirmed(self, chance, user, shown, event_id):
        life = chance.randrange(2000, 10_000)
        call = yield from self.reserve(user, shown, event_id, life)
        if call.outcome == "allowed" and chance.random() < 0.5:
            yield chance.uniform(0, 1.5 * life / 1000)
            yield from self.reserve(user, shown, event_id, life)

    def released(self, chance, user, shown, event_id):
        call = yield from self.reserve(user, shown, event_id)
        if call.outcome != "allowed":
            return
        yield chance.uniform(0, 2)
        call = yield from self.known(Ask("release", user, shown, event_id))
        if chance.random() < 0.5:
            yield chance.uniform(0, 5)
            yield from self.reserve(user, shown, event_id)

    def recorded(self, chance, user, shown, event_id):
        reserved = None
        if chance.random() < 0.5:
            reserved = yield from self.reserve(user, shown, event_id)
            if reserved.outcome != "allowed":
                return
            yield chance.uniform(0, 2)
        call = yield from self.known(Ask("record", user, shown, event_id))
        self.publish(call if call.outcome == "allowed" or reserved is None else reserved)

    def page(self, chance, user, _, event_id):
        ids = [f"{event_id}-{slot}" for slot in range(2)]
        ranked = [campaign(user, number) for number in chance.sample(HARD, len(HARD))]
        ask = Ask("page", user, ranked, ids, words=" ".join(ids + ranked))
        calls = yield from self.known(ask)
        yield chance.uniform(0, 3)
        if chance.random() < 0.4:
            calls = calls + (yield from self.known(ask))
        for call in calls:
            self.publish(call)

    def noted(self, chance, user, _, event_id):
        ask = Ask("note", user, campaign(user, NOTED), event_id, SHARED_FOR, client=chance.randrange(2))
        call = yield ask
        if call.outcome == "allowed" and chance.random() < 0.3:
            yield 0.5
            yield ask._replace(kind="take_back")
        else:
            self.publish(call)

    # What was shown.

    def publish(self, call):
        """With the time that was returned. One that was returned later, after a loss, counts."""
        if call.outcome != "allowed":
            return
        name, number = (call.user, call.event), int(call.campaign.rpartition("-c")[2])
        message = Message(call.user, event(call.user, number, call.event, call.time), False)
        with self.lock:
            published = self.published.setdefault(name, Published(call.campaign, now_ms()))
            self.messages.append(message)
        self.producer.produce(TOPIC, message.value, message.user, on_delivery=functools.partial(delivered, published))

    def flow(self):
        self.ending.clear()
        self.flowing.set()

    def settle(self):
        """Every impression comes to its end, and Kafka has all that was published; all must be well."""
        self.flowing.clear()
        with self.lock:
            self.ending.set()
            self.due = sorted((min(due, time.monotonic() + 0.3), *rest) for due, *rest in self.due)
        until = time.monotonic() + PATIENCE
        while self.running and time.monotonic() < until:
            time.sleep(0.05)
        if self.running:
            raise Failure(f"after {PATIENCE} s {self.running} hard calls are still not answered, or of unknown outcome")
        if self.producer.flush(60):
            raise Failure("the broker took no message for 60 s")
        for message in self.messages:
            self.traffic.expected.add(message, 0, now_ms())
        self.published_count += len(self.messages)
        self.messages = []

    # The judgement of a round: everything must be settled and counted.

    def judge(self, verdict, records):
        """`records`: by user, when it was read, and what it says."""
        memory = Memory(self.world.losses_of_redis(), self.world.claims)
        promises = Promises(self.calls, self.published, memory, self.world.gaps, LIMIT, verdict.differs)
        promises.judge()
        for user in {user for user, _ in promises.campaigns}:
            read_at, record = records.get(user) or (now_ms(), Record())
            promises.judge_record(user, record, read_at, lambda shown, event_id: (id_hash(shown), 0, fingerprint(event_id)))
        self.over += promises.over
        self.campaigns_seen += len(promises.campaigns)
        self.judge_checks(verdict, records)
        # What was judged is over: the next round is about other users.
        self.calls, self.published = [], {}
        self.made = -(-self.made // (AT_ONCE * GROUPS_OF_A_USER)) * AT_ONCE * GROUPS_OF_A_USER

    def judge_checks(self, verdict, records):
        """That checks count each confirmed reservation once, and none that has expired or was released: as the records say."""
        asked = {(user, campaign(user, number)): record for user, (read_at, record) in records.items() for number in HARD
                 if not any(abs(one.expires - read_at) < 20_000 and not one.released for one in record.reservations.values())}
        self.checked, began = {}, time.monotonic()
        for number, (user, shown) in enumerate(asked):
            self.clients[number % 2].put((None, Ask("check", user, shown, ""), now_ms()), f"check {user} {shown}")
        while len(self.checked) < len(asked) and time.monotonic() < began + 10:
            time.sleep(0.02)
        checked = dict(self.checked)  # a late answer may still come
        self.checks += sum(words[0] == "passed" for words in checked.values())
        if len(checked) < len(asked):
            verdict.differs("checks that are not answered within 10 s", f"{len(asked) - len(checked)} of {len(asked)}")
        for (user, shown), words in checked.items():
            count = asked[user, shown].count(id_hash(shown), now_ms())
            # It may say that something is missing: Checkers look every second whether a gap is closed.
            if words[0] == "passed" and not words[1].startswith("capped" if count >= LIMIT else "allowed"):
                verdict.differs("checks that count otherwise than the record says", f"{shown}: {words[1]}, {count} of {LIMIT}")

    def stop(self):
        self.flowing.clear()
        for client in self.clients:
            client.stop()


def delivered(published, error, _):
    if not error:
        published.delivered = min(published.delivered, now_ms())


def page_calls(ask, began, answered, words):
    """What a page's answer says, slot by slot. Where it is unknown, each slot may have got any campaign."""
    if words[1] == "unknown":
        return [Call("page", ask.user, shown, event_id, began, answered, words[0], "unknown") for event_id in ask.event for shown in ask.campaign]
    found = []
    for event_id, shown, time_, expires in zip(ask.event, words[2::3], words[3::3], words[4::3]):
        if shown == "-":
            reason = "capped" if words[0] in DECIDED else words[0]
            found.append(Call("page", ask.user, "", event_id, began, answered, reason, "refused"))
        else:  # of a page that was not decided, what the record held already is named
            reason = words[0] if words[0] in ("done", "repeated") else "repeated"
            found.append(Call("page", ask.user, shown, event_id, began, answered, reason, "allowed", int(time_), int(expires)))
    return found
