"""./dev chaos --regions: two regions that mirror each other's events (docs/regions.md), with the mirror killed, its links silenced
and cut, topics made again, events repeated, users erased and a Redis emptied. After each of these, both regions must hold
exactly what was produced in either. Prints how long events take from one region to the other, and how often a cap is exceeded
while they are apart. Whatever goes wrong is a problem that is printed, with the command that runs the same again."""
import collections
import contextlib
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

from events import BATCH, LIMIT, Epoch, Expected, Message, campaign, event
from judge import Verdict, compare
from processes import wait_until
from record import Record, fingerprint
from regions import DEAD_LETTERS, PARTITIONS, RETENTION_MS, TOPIC, Region
from resp import Redis
from services import ROOT, Failure, write
from traffic import ALLOWED_FUTURE, RETENTION, dead_letters, now_ms

from confluent_kafka import Consumer, Producer, TopicPartition

PATIENCE = 180  # seconds until both regions must hold the same, and as many more as they were apart
PROBES, SERVED = 100, 100  # users
ROUNDS_APART = 40  # of traffic, at most: so many that no record outgrows its bound, because a trimmed one has less to compare
# What was measured by a run that ends early.
SUMMARY = ["""
{result}: two regions, seed {seed}, {cut} s apart""", """\
  events       {produced} messages produced; {users} users, whose records and answers were compared in both regions""", """\
  propagation  from the moment that an impression is published until a check is capped by it, ms: in its own region
               p50 {within_p50:.0f}, p99 {within_p99:.0f}; in the other p50 {across_p50:.0f}, p99 {across_p99:.0f},
               and back p50 {back_p50:.0f}, p99 {back_p99:.0f}""", """\
  over cap     {served} users with a cap of {limit}, served in both regions in turn: {together_beyond} impressions beyond it
               while connected; {apart_beyond} while apart, at most {apart_beyond_max} of one user""", """\
  mirror       repeated {repeated} messages after a kill -9"""]
RULES = {"version": 1, "campaigns": [], "rules": [
    {"id": f"{window}-{kind}", "scope": "campaign", "target": "*", "event_type": kind, "limit": limit,
     "window": {"kind": "sliding", "length": window}}
    for window, kind, limit in (("24h", "impression", LIMIT), ("7d", "impression", 6), ("30d", "click", 1))]}


class Client:
    """An ad server of one region: asks a Checker, and publishes what was shown."""

    def __init__(self, region, build, log):
        self.region, self.answers = region, queue.SimpleQueue()
        self.connect()
        self.checks = subprocess.Popen(
            [f"{build}/tests/chaos/fcap-chaos-checks", f"redis://{region.redis.address()}", "1", "100", str(LIMIT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def connect(self):
        """A producer belongs to one creation of the topic. It repeats no message, because what the topic holds is counted; and
        whoever flushes it decides for how long it tries."""
        self.producer = Producer({"bootstrap.servers": self.region.kafka.address(), "enable.idempotence": True,
                                  "message.timeout.ms": 0, "linger.ms": 0, "log_level": 2})

    def read(self):
        for line in self.checks.stdout:
            if not line.startswith("timer"):
                self.answers.put(line.split())
        self.answers.put(None)

    def capped(self, user):
        """Whether its first campaign is capped; an answer without the history does not count."""
        until = time.monotonic() + PATIENCE
        while (left := until - time.monotonic()) > 0:
            with contextlib.suppress(BrokenPipeError):  # then it has ended, and no answer comes
                self.checks.stdin.write(f"0 check {user} {campaign(user, 0)}\n")
                self.checks.stdin.flush()
            try:
                answer = self.answers.get(timeout=left)
            except queue.Empty:
                break
            if answer is None:
                raise Failure(f"the checks of {self.region.name} have ended with {self.checks.wait(30)}")
            if answer[2] == "passed":
                return answer[3].startswith("capped")
        raise Failure(f"no check of {self.region.name} has read the history of {user} for {PATIENCE} s")

    def stop(self):
        with contextlib.suppress(BrokenPipeError):
            self.checks.stdin.close()
        if code := self.checks.wait(30):
            raise Failure(f"the checks of {self.region.name} have ended with {code}")


class Run:
    def __init__(self, given, directory, report):
        self.given, self.directory, self.report = given, directory, report
        self.build = os.environ.get("FCAP_BUILD_DIR", f"{ROOT}/build/release")
        self.patience = PATIENCE + given.cut
        self.epoch, self.expected = Epoch(given.seed, 0), Expected()
        self.produced, self.dead = collections.Counter(), set()
        self.numbers = {"seed": given.seed, "cut": given.cut, "limit": LIMIT, "served": SERVED}
        self.regions, self.clients, self.step = [], [], "start"

    def attempt(self, action):
        """Whatever it raises is a problem; so is an interruption."""
        try:
            action()
        except (Exception, SystemExit) as error:
            if not isinstance(error, Failure):
                self.report.say(traceback.format_exc())
            self.report.problem(f"{self.step}: {error if isinstance(error, Failure) else repr(error)}")

    def start(self):
        for name in ("east", "west"):
            self.regions.append(Region(name, self.directory, f"{self.build}/updater/fcap-updater"))
        with ThreadPoolExecutor() as pool:
            list(pool.map(Region.start, self.regions))
            list(pool.map(Region.join, self.regions, reversed(self.regions)))
        log = open(f"{self.directory}/checks.log", "wb")
        for region in self.regions:
            self.clients.append(Client(region, self.build, log))
        write(f"{self.directory}/rules.json", json.dumps(RULES))

    def stop(self):
        self.step += ", stopping"
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda one: one.stop(), (*self.clients, *self.regions)))

    # Producing.

    def send(self, client, message, oldest=0):
        client.producer.produce(TOPIC, message.value, message.user)
        self.produced[client.region.name] += 1
        if message.dead:
            self.dead.add(message.value)
        else:
            self.expected.add(message, oldest, now_ms() + ALLOWED_FUTURE)

    def traffic(self, batches):
        """Each message in one of the regions, some in both."""
        for _ in range(batches):
            now, first = now_ms(), len(self.epoch.made_at) * BATCH
            for n, message in enumerate(self.epoch.batch(now), first):
                for place in (0, 1) if n % 20 == 0 else (n % 2,):
                    self.send(self.clients[place], message, now - RETENTION)
        self.flush()

    def aborted(self):
        """An event of a transaction that is aborted counts nowhere."""
        client = self.clients[0]
        producer = Producer({"bootstrap.servers": client.region.kafka.address(), "transactional.id": "aborted", "log_level": 2})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce(TOPIC, event("aborted", 0, "aborted", now_ms()), "aborted")
        producer.flush(60)
        producer.abort_transaction(60)
        self.produced[client.region.name] += 2  # with the mark of the abort

    def flush(self):
        for client in self.clients:
            if client.producer.flush(60):
                raise Failure("a broker took no message for 60 s")

    def show(self, client, user, number):
        message = Message(user, event(user, 0, f"{user}-{number}", now_ms()), False)
        self.send(client, message)
        return message

    # What both must hold.

    def differences(self):
        found = []
        for region in self.regions:
            verdict, records = Verdict(), region.records()
            for user in {*records, *self.expected.entries, *self.expected.erased_before}:
                compare(verdict, user, records.get(user, Record()), *self.expected.of(user))
            if verdict.trimmed:
                found.append(f"{region.name}: {verdict.trimmed} records were trimmed, so less was compared")
            found += [f"{region.name}: {problem}" for problem in verdict.problems()]
        return found

    def agree(self, after):
        began = time.monotonic()
        while (found := self.differences()) and time.monotonic() - began < self.patience:
            time.sleep(1)
        for problem in found:
            self.report.problem(f"after {after}: {problem}")
        became = "do not hold what they must" if found else "hold the same"
        self.report.say(f"{after}: both regions {became} after {time.monotonic() - began:.1f} s")

    # The steps.

    def measure(self):
        """From the moment an ad server publishes until a check in a region is capped by it."""
        for name, places in (("within", (0, 0)), ("across", (0, 1)), ("back", (1, 0))):
            taken, (source, target) = [], (self.clients[place] for place in places)
            for number in range(PROBES):
                user = f"probe-{name}-{number}"
                began = time.monotonic()
                for shown in range(LIMIT):
                    self.show(source, user, shown)
                if not wait_until(lambda: target.capped(user), self.patience):
                    raise Failure(f"{user} was not capped in {target.region.name}")
                taken.append(1000 * (time.monotonic() - began))
            taken.sort()
            self.numbers[f"{name}_p50"], self.numbers[f"{name}_p99"] = taken[PROBES // 2], taken[PROBES * 99 // 100]

    def serve(self, name):
        """Both regions show each user's campaign in turn, as long as their checks allow it. How far beyond the cap that was."""
        users, shown = [f"{name}-{number}" for number in range(SERVED)], collections.Counter()
        while True:
            before = shown.total()
            for client in self.clients:
                identities = []
                for user in users:
                    if not client.capped(user):
                        self.show(client, user, shown[user])
                        identities.append((user, fingerprint(f"{user}-{shown[user]}")))
                        shown[user] += 1
                self.flush()
                with Redis(client.region.redis.port) as redis:
                    if not wait_until(lambda: all(self.counted(redis, *one) for one in identities), self.patience):
                        raise Failure(f"{client.region.name} does not count what it has shown")
            if max(shown.values()) > LIMIT * len(self.regions):
                raise Failure(f"{name}: checks with a cap of {LIMIT} allowed {max(shown.values())} impressions of one user")
            if shown.total() == before:
                break
        beyond = [count - LIMIT for count in shown.values()]
        self.numbers[f"{name}_beyond"], self.numbers[f"{name}_beyond_max"] = sum(beyond), max(beyond)

    @staticmethod
    def counted(redis, user, print_):
        return any(identity[2] == print_ for identity in Record(redis("GET", f"fcap:{{{user}}}") or b"").entries)

    def apart(self):
        """Neither region hears of the other for some seconds, and then all connections are cut."""
        began = time.monotonic()
        for region in self.regions:
            region.link.set(silent=True)
        self.serve("apart")
        self.erase("apart-0", self.clients[0])
        while time.monotonic() - began < self.given.cut:
            self.traffic(10)
            time.sleep(max(0.5, self.given.cut / ROUNDS_APART))
        for region in self.regions:
            region.link.cut()
            region.link.set()
        self.agree(f"{self.given.cut} s apart")
        if self.numbers["apart_beyond_max"] != LIMIT * (len(self.regions) - 1):
            self.report.problem(f"apart, a cap of {LIMIT} was exceeded by {self.numbers['apart_beyond_max']}")

    def erase(self, user, client):
        """By the command, in one region; and then an event from before arrives late in the other."""
        at = now_ms()
        self.run("cli/fcap", "erase", user, "--yes", "--at", str(at), "--brokers", client.region.kafka.address())
        self.produced[client.region.name] += 1
        self.expected.erased_before[user] = at
        late = self.clients[1 - self.clients.index(client)]
        self.send(late, Message(user, event(user, 0, f"{user}-late", at - 1000), False))
        self.flush()

    def killed(self):
        """MirrorMaker stores every minute how far it has come, so after a kill it repeats messages."""
        region = self.regions[1]
        self.traffic(20)
        region.mirror.kill()
        self.traffic(20)
        region.mirror.start()
        self.agree("the mirror was killed")
        self.numbers["repeated"] = self.held(region, region.mirrored) - self.held(self.regions[0], TOPIC)
        if self.numbers["repeated"] <= 0:
            self.report.problem("the mirror that was killed has repeated nothing, so duplicates were not tested")

    @staticmethod
    def held(region, topic):
        """How many messages were ever written to this topic."""
        consumer = Consumer({"bootstrap.servers": region.kafka.address(), "group.id": "chaos", "log_level": 2})
        with contextlib.closing(consumer):
            return sum(consumer.get_watermark_offsets(TopicPartition(topic, n), 30)[1] for n in range(PARTITIONS))

    def replays(self):
        for region in self.regions:
            for updater in region.updaters:
                summary = self.run("updater/fcap-updater", "replay", "--json", "--quiet",
                                   "--config", f"{updater.home}/updater.json")
                if not json.loads(summary)["changed_nothing"]:
                    self.report.problem(f"{region.name}: a replay changed something: {summary}")
        self.agree("replays")

    def topic_recreated(self):
        """The mirror's topic and what it knows of its progress are deleted: it copies everything again."""
        region = self.regions[1]
        region.mirror.kill()
        self.delete(region, region.mirrored, "mm2-offsets.east.internal")
        self.traffic(5)
        region.mirror.start()
        self.agree("the mirrored topic was deleted")

    def source_recreated(self):
        """The topic that the mirror copies is made again, and what the mirror knows of its progress is deleted. It is the last
        step: afterwards the topics do not hold all that is counted."""
        source, target = self.regions
        target.mirror.kill()
        self.delete(source, TOPIC)
        self.delete(target, "mm2-offsets.east.internal")
        if not wait_until(source.create_topic, 60):
            raise Failure(f"{TOPIC} could not be made again in {source.name}")
        self.clients[0].connect()
        self.traffic(5)
        target.mirror.start()
        self.agree("the source topic was made again")

    @staticmethod
    def delete(region, *topics):
        admin = region.kafka.admin()  # which must outlive its request
        for done in admin.delete_topics(list(topics), operation_timeout=30).values():
            done.result(60)

    def emptied(self):
        """Without the mirror and the other region, both groups say which events may be missing, and fill Redis from their own
        topics. It is slow, so that there is time to see that."""
        seen, region = set(), self.regions[1]
        region.mirror.kill()
        for one in self.regions:
            one.link.set(silent=True)
            one.link.cut()
        region.redis_link.set(delay=0.5)
        with Redis(region.redis.port) as redis:
            redis("FLUSHALL")
        until = time.monotonic() + 30
        while len(seen) < 2 and time.monotonic() < until:
            time.sleep(0.01)
            seen |= set(self.missing(region) or {})
        region.redis_link.set()
        self.agree("FLUSHALL in a region that is alone")
        if seen != {f"fcap-updater:{TOPIC}", f"fcap-updater-mirror:{region.mirrored}"}:
            self.report.problem(f"after FLUSHALL only these said what was missing: {seen}")
        if not wait_until(lambda: not self.missing(region), self.patience):
            self.report.problem(f"what was filled is still said to be missing: {self.missing(region)}")
        for one in self.regions:
            one.link.set()
        region.mirror.start()
        self.traffic(5)
        self.agree("the mirror and the other region were back")

    @staticmethod
    def missing(region):
        with Redis(region.redis.port) as redis:
            return json.loads(redis("GET", "fcap:!config") or b"{}").get("missing_before_ms")

    # At the end.

    def judge(self):
        """Both regions answer the same for every user, by the command."""
        users, now, said = sorted({*self.expected.entries, *self.expected.erased_before}), now_ms(), []
        questions = [{"user": user, "at": now, "candidates": [campaign(user, n) for n in range(3)]} for user in users]
        for region in self.regions:
            checks = self.ask(region, "check", questions, "--rules", f"{self.directory}/rules.json")
            shown = self.ask(region, "show", [{"user": user} for user in users])
            self.run("cli/fcap", "audit", "--config", f"{region.updaters[0].home}/updater.json", "--rules",
                     f"{self.directory}/rules.json", "--also-topic", region.mirrored)
            said.append(checks + [[one[name] for name in ("entry_count", "erased_before", "campaigns")] for one in shown])
            self.judge_region(region)
        if wrong := [(east, west) for east, west in zip(*said) if east != west]:
            self.report.problem(f"the regions' answers differ {len(wrong)} times: {wrong[0]}")
        self.numbers["users"] = len(users)

    def ask(self, region, subcommand, lines, *arguments):
        answers = self.run("cli/fcap", subcommand, "--json", "--redis", region.redis.address(), "--input", "-", *arguments,
                           input="".join(json.dumps(line) + "\n" for line in lines))
        return [json.loads(line) for line in answers.splitlines()]

    def judge_region(self, region):
        other = region.mirror.source
        internal = {f"mm2-{what}.{other.name}.internal" for what in ("configs", "offsets", "status")}
        if region.topics() != {TOPIC, DEAD_LETTERS, region.mirrored, *internal}:
            self.report.problem(f"{region.name} has the topics {region.topics()}")
        if region.retention_ms(region.mirrored) != RETENTION_MS:
            self.report.problem(f"{region.name}: the copy is kept for {region.retention_ms(region.mirrored)} ms")
        if self.held(region, TOPIC) != self.produced[region.name]:
            self.report.problem(f"{region.name}: {self.held(region, TOPIC)} messages of its own, not {self.produced[region.name]}")
        if missing := self.dead - set(dead_letters(region.kafka.address())):
            self.report.problem(f"{region.name}: {len(missing)} refused messages are not in {DEAD_LETTERS}")
        with Redis(region.redis.port) as redis:
            marks = {f"fcap:!mark:{{0}}:{group}:{topic}:{n}".encode() for n in range(PARTITIONS)
                     for group, topic in (("fcap-updater", TOPIC), ("fcap-updater-mirror", region.mirrored))}
            if missing := marks - set(redis.keys()):
                self.report.problem(f"{region.name}: marks are missing: {missing}")
            # A record gets its expiry by a command behind the one that makes it.
            if not wait_until(lambda: not self.endless(redis), 10):
                self.report.problem(f"{region.name}: keys without an expiry: {self.endless(redis)[:5]}")

    @staticmethod
    def endless(redis):
        keys = list(redis.keys())
        return [key for key, left in zip(keys, redis.all([["PTTL", key] for key in keys])) if left == -1]

    def run(self, program, *arguments, **options):
        done = subprocess.run([f"{self.build}/{program}", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, timeout=2 * self.patience, **options)
        if done.returncode:
            raise Failure(f"{program} {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def all(self):
        self.start()
        self.report.say("two regions are up")
        for region in self.regions:
            for updater in region.updaters:
                self.run("updater/fcap-updater", "check-config", "--connect", "--config", f"{updater.home}/updater.json")
        for step in (self.first, self.measure, self.together, self.apart, self.killed, self.replays, self.topic_recreated,
                     self.emptied, self.judge, self.source_recreated):
            self.step = step.__name__
            step()

    def first(self):
        self.aborted()
        self.traffic(100)
        self.agree("first traffic")

    def together(self):
        self.serve("together")

    def summary(self):
        result = "FAILED" if self.report.problems else "held"
        self.numbers |= {"result": result, "produced": self.produced.total()}
        for part in SUMMARY:
            with contextlib.suppress(KeyError):  # it was not measured
                print(part.format(**self.numbers))
        for problem in self.report.problems:
            print(f"  WRONG        {problem['text']}")
        if self.report.problems:
            print(f"  again:       {again(self.given)}")
        if self.given.json:
            write(self.given.json, json.dumps({**self.numbers, "problems": self.report.problems}, indent=2))
        return not self.report.problems


def again(given):
    return f"./dev chaos --regions --cut {given.cut} --seed {given.seed}"


def main(given, report):
    directory = tempfile.mkdtemp(prefix="fcap-regions.")
    report.say(f"{again(given)}: starting the servers")
    run = Run(given, directory, report)
    run.attempt(run.all)
    run.attempt(run.stop)
    if run.summary():
        shutil.rmtree(directory)
        return 0
    report.say(f"logs and data are in {directory}")
    return 1
