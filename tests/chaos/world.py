"""The servers of a run, the proxies before them, and the updaters."""
import contextlib
import glob
import http.client
import json
import os
import signal
import subprocess
import threading
import time

from cluster import Cluster, wait
from events import LIMIT, signing_keys
from processes import freeze_tree, read, send, thaw_tree, wait_until
from promises import Loss
from proxy import Proxy
from resp import Redis, RedisError, slot_of
from services import ROOT, Failure, choose_port, make, write
from updater_server import Shown

PARTITIONS = 4
TOPIC, DEAD_LETTERS = "impressions", "impressions.dead"
WRITER, READER, RESERVER = "fcap-writer", "fcap-reader", "fcap-reserver"
# At most LIMIT impressions of any campaign in a day, as a hard cap, and some other rules.
RULES = f"""INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds, enforcement)
SELECT 'daily', 'campaign', '*', {LIMIT}, 'sliding', 86400, 'hard'
UNION ALL SELECT 'of-' || n, 'campaign', 'nobodys-' || n, n, 'sliding', 3600, 'soft' FROM generate_series(1, 20) AS n"""
KINDS = {"single": "redis", "sentinel": "redis-sentinel", "cluster": "redis-cluster"}
PATIENCE = 300  # seconds until another group must have its partitions, and no gaps
CLOCK_AHEAD_MS = {"ahead": 20 * 60_000, "behind": -20 * 60_000}


class Updater:
    def __init__(self, world, number, group="fcap-updater"):
        self.world, self.home, self.group = world, f"{world.directory}/updater{number}", group
        os.makedirs(self.home)
        self.port = choose_port(1, self.home)
        self.log, self.process = f"{self.home}/log", None
        self.steady_since = 0.0  # since when it has not been started or thawed
        write(f"{self.home}/password", "writer")
        write(f"{self.home}/keys.json", json.dumps(signing_keys()))
        write(f"{self.home}/config.json", json.dumps(self.settings()))

    def settings(self):
        return {"kafka": {"brokers": [self.world.broker_link.address()], "topic": TOPIC, "dead_letter_topic": DEAD_LETTERS,
                          "group_id": self.group, "properties": {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}},
                "redis": {**self.world.redis_settings(), "user": WRITER, "password_file": f"{self.home}/password"},
                "signatures": {"key_file": f"{self.home}/keys.json", "required": "nothing"},
                "pipeline": {"gap_messages_min": 3000}, "compaction": {"quiet_after": "3s"}, "http": {"port": self.port}}

    def running(self):
        process = self.process  # another thread may put it away
        return process is not None and process.poll() is None

    def must_run(self):
        """Nothing but a fault ends it."""
        if self.process and not self.running():
            self.world.problem(f"an updater has ended by itself with {self.process.returncode}: see {self.log}")

    def start(self, clock=None):
        self.steady_since = time.time()
        environment = dict(os.environ)
        if clock:
            preload, = glob.glob(f"{self.world.build}/tests/integration/libfcap_shifted_clock.so")
            environment |= {"LD_PRELOAD": preload, "FCAP_PRELOADED_CLOCK_AHEAD_MS": str(CLOCK_AHEAD_MS[clock])}
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([f"{self.world.build}/updater/fcap-updater", "run", "--config", f"{self.home}/config.json"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

    def kill(self):
        self.must_run()
        send(signal.SIGKILL, self.process.pid)
        self.process.wait()

    def stop(self):
        """Its exit code, which must be 0; orderly, where it is not frozen."""
        self.must_run()
        self.process.terminate()
        thaw_tree(self.process.pid)
        try:
            if code := self.process.wait(60):
                self.world.problem(f"an updater that was stopped has ended with {code}: see {self.log}")
            return code
        except subprocess.TimeoutExpired:
            self.world.problem(f"an updater did not stop within 60 s: see {self.log}")
            self.kill()
            return None

    def freeze_for(self, seconds):
        freeze_tree(self.process.pid)
        time.sleep(seconds)
        self.thaw()

    def thaw(self):
        self.steady_since = time.time()
        thaw_tree(self.process.pid)

    def shown(self):
        """None: it does not answer."""
        if not self.running():
            return None
        try:
            return Shown(f"127.0.0.1:{self.port}")
        except (OSError, ValueError, http.client.HTTPException):
            return None


class World:
    """Node 0 of a single Redis is that Redis itself."""

    def __init__(self, directory, build, redis, report):
        self.directory, self.build, self.say, self.problem = directory, build, report.say, report.problem
        self.sentinel, self.clustered = redis == "sentinel", redis == "cluster"
        users = f"{directory}/users.acl"
        write(users, "user default on nopass ~* &* +@all\n" + "".join(
            read(f"{ROOT}/redis/acl/{name}.acl").replace(" off ", f" on >{name} ") for name in ("writer", "reader", "reserver")))
        self.redis = make(KINDS[redis], directory, extra=["--aclfile", users])
        self.cluster = Cluster(self.redis) if self.clustered else None
        self.moving, self.handed_over = threading.Lock(), {}  # slots of a cluster; shard: to whom it goes without a loss
        kafka_port, link_port = choose_port(2, directory), choose_port(1, directory)
        self.kafka = make("kafka", directory, kafka_port, [f"advertised.listeners=PLAINTEXT://127.0.0.1:{link_port}",
                                                          "group.min.session.timeout.ms=2000"])
        self.broker_link, self.redis_link = Proxy(link_port, kafka_port), None
        self.postgres = make("postgres", directory)
        self.losses, self.lost = threading.Lock(), []  # (when, slots) Redis may have lost what every check must know
        self.redis_losses = []  # what Redis may have forgotten, for hard caps
        self.claims = []  # of the updaters: (when, up to when everything was counted), in ms
        self.gap_open_since, self.gaps = None, []  # the spans in which one was seen open, in ms
        self.outages = {}  # what lasts: since when, and whether the lag can be known meanwhile
        self.disturbing, self.disturbed_at = 0, 0.0  # how many faults of Redis are under way, and when the last one was
        self.updaters, self.another_group, self.traffic, self.started = [], None, None, False

    def start(self):
        for server in (self.kafka, self.redis, self.postgres):
            server.start()
        subprocess.run([f"{ROOT}/sql/migrate", self.postgres.address()], stdout=subprocess.DEVNULL, check=True)
        self.sql(RULES)
        if not self.sentinel and not self.clustered:
            self.redis_link = Proxy(choose_port(1, self.directory), self.redis.port)
        self.kafka.create_topic(TOPIC, PARTITIONS)
        self.kafka.create_topic(DEAD_LETTERS, 1)
        self.updaters = [Updater(self, number) for number in (1, 2, 3)]
        # It writes every event a second time, to the same Redis, as the updater of another region's copy does. What the first group
        # had lost would be there then: so it rests in every other round.
        self.another_group = Updater(self, 4, "another")
        for updater in self.updaters[:2]:
            updater.start()
        self.started = True

    def steady_updaters(self):
        """Those that run but for faults: updater 3 comes and goes."""
        return [updater for updater in self.all_updaters() if updater.process and updater not in self.updaters[2:]]

    def begin_another_group(self):
        self.another_group.start()
        if not wait_until(lambda: (shown := self.another_group.shown()) and shown.value("assigned_partitions") == PARTITIONS, PATIENCE):
            raise Failure(f"another group did not get all partitions within {PATIENCE} s: see {self.another_group.log}")

    def fill_another_group(self):
        """It writes everything a second time, and a check is complete only if no group lacks anything."""
        if self.another_group.process and not wait_until(
                lambda: (shown := self.another_group.shown()) and shown.value("assigned_partitions") == PARTITIONS
                and shown.value("gap_offsets") == 0 and shown.value("lag_messages") == 0, PATIENCE):
            raise Failure(f"another group has not written everything after {PATIENCE} s: see {self.another_group.log}")

    def end_another_group(self):
        self.another_group.stop()
        self.another_group.process = None

    def stop_updaters(self):
        """Each must end with 0."""
        for updater in filter(Updater.running, self.all_updaters()):
            updater.stop()
            updater.process = None

    def stop(self):
        if self.started:
            self.heal()
            self.stop_updaters()
        for server in (self.redis, self.kafka, self.postgres):
            server.stop()
        for link in filter(None, (self.broker_link, self.redis_link)):
            link.stop()

    def all_updaters(self):
        return self.updaters + [updater for updater in [self.another_group] if updater]

    def redis_settings(self):
        if self.sentinel:
            return {"topology": "sentinel", "addresses": [node.address() for node in self.redis.nodes[3:]], "sentinel_master": "fcap"}
        if self.clustered:
            return {"topology": "cluster", "addresses": [node.address() for node in self.redis.members[:3]]}
        return {"addresses": [self.redis_link.address()]}

    def sql(self, statement):
        """Its answer."""
        psql = ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", statement, self.postgres.address()]
        return subprocess.run(psql, stdout=subprocess.PIPE, text=True, check=True, timeout=60).stdout.strip()

    def checks_url(self):
        replicas = "?replica_reads=when_master_fails" if self.replicated() else ""
        return f"{self.url_of(READER, 'reader')}{replicas}"

    def reserver_url(self):
        return self.url_of(RESERVER, "reserver")

    def url_of(self, user, password):
        address = self.redis.address() if self.replicated() else f"redis://{self.redis_link.address()}"
        return address.replace("://", f"://{user}:{password}@")

    def replicated(self):
        return self.sentinel or self.clustered

    def servers(self):
        return self.redis.nodes[:3] if self.sentinel else self.redis.members if self.clustered else [self.redis]

    def masters(self):
        """The masters of all shards; empty while one is missing."""
        return self.cluster.masters() if self.clustered else [node for node in [self.master()] if node]

    def named_masters(self):
        """The port of each shard's master, by the word of those that decide it."""
        return self.cluster.named_masters() if self.clustered else {0: self.named_master()}

    def slots_of(self, shard):
        """The slots of a cluster's shard; None: every user may be concerned."""
        with contextlib.suppress(RedisError):
            if self.clustered and (master := self.cluster.master(shard)):
                return self.cluster.own(master).slots()
        return None

    def records(self, users):
        """What Redis holds of them."""
        if not (masters := self.masters()):
            raise RedisError("there is no master")
        owners = self.cluster.owners() if self.clustered else None
        if owners is not None and not all(slot_of(user) in owners for user in users):
            raise RedisError("slots get another owner just now")
        found = {}
        for node in masters:
            mine = [user for user in users if owners is None or owners.get(slot_of(user)) is node]
            with Redis(node.port, 5) as redis:
                found |= dict(zip(mine, redis.all([["GET", f"fcap:{{{user}}}"] for user in mine])))
        return [found.get(user) for user in users]

    def master(self):
        """None: there is none, or it does not answer. One that comes back after it was replaced calls itself a master for a while:
        the Sentinels' word counts."""
        if not self.sentinel:
            return self.redis if self.redis.ready() else None
        port = self.named_master()
        return next((node for node in self.servers()
                     if node.port == port and "role:master" in node.ask("INFO replication")), None)

    def named_master(self):
        """The port of the master by the word of the Sentinels that answer; None while they disagree."""
        said = set()
        for node in self.redis.nodes[3:]:
            with contextlib.suppress(RedisError), Redis(node.port, 2) as redis:
                said.add(int(redis("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "fcap")[1]))
        return said.pop() if len(said) == 1 else None

    def ask_master(self, *words):
        node = self.master()
        if node is None:
            raise RedisError("there is no master")
        with Redis(node.port, 5) as redis:
            return redis(*words)

    def configured(self):
        """Whether clients will find out at once that they may reserve."""
        with contextlib.suppress(RedisError):
            node = self.cluster.owners().get(slot_of("fcap:!config")) if self.clustered else self.master()
            if node is not None:
                with Redis(node.port, 5) as redis:
                    return redis("EXISTS", "fcap:!config") == 1
        return False

    def tell_all(self, *words):
        """Every server that runs; how many have answered."""
        return self.tell(self.servers(), *words)

    def tell(self, nodes, *words):
        told = 0
        for node in nodes:
            with contextlib.suppress(RedisError), Redis(node.port, 2) as redis:
                redis(*words)
                told += 1
        return told

    def lose(self, slots=None):
        """To be called before Redis loses what the certain caps rest on, of the users in these slots; None: of all."""
        with self.losses:
            self.lost.append((time.time(), slots))

    def lost_at(self, user):
        """When Redis may have lost what every check of a user must know; None: it has all of that."""
        with self.losses:
            return max((at for at, slots in self.lost if slots is None or slot_of(user) in slots), default=None)

    @contextlib.contextmanager
    def loss(self, what, slots, seconds_before, seconds_after):
        """What is done in it may take what Redis was told of the users in these slots: begin_loss()."""
        one = self.begin_loss(what, seconds_before, slots)
        try:
            yield
        finally:
            one.end = 1000 * (time.time() + seconds_after)

    def begin_loss(self, what, seconds_before, slots=None):
        """A fault begins that may take what Redis was told since then; everything where `seconds_before` is None."""
        now = 1000 * time.time()
        with self.losses:
            self.redis_losses.append(Loss(what, now, 0.0 if seconds_before is None else now - 1000 * seconds_before, slots=slots))
            return self.redis_losses[-1]

    def losing(self, seconds, slots):
        """Whether a fault that may take something of these slots lasts, or has ended within the last seconds."""
        return any(loss.end > 1000 * (time.time() - seconds) and (None in (loss.slots, slots) or loss.slots & slots)
                   for loss in self.losses_of_redis())

    def losses_of_redis(self):
        with self.losses:
            return list(self.redis_losses)

    def redis_disturbed(self, seconds):
        """Whether something is under way that may take what Redis was told, or was that recently."""
        return self.disturbing > 0 or time.time() - self.disturbed_at < seconds or self.losing(seconds, None)

    @contextlib.contextmanager
    def outage(self, what, lag_is_known):
        self.outages[what] = (time.time(), lag_is_known)
        try:
            yield
        finally:
            del self.outages[what]

    def heal(self):
        """Ends whatever a fault has left."""
        for link in filter(None, (self.broker_link, self.redis_link)):
            link.set()
        for server in [*(self.servers() if self.clustered else self.redis.nodes), self.kafka, self.postgres]:
            if server.running():
                server.thaw()
            else:
                server.start()
        for updater in self.steady_updaters():
            updater.must_run()
            if updater.running():
                updater.thaw()
            else:
                updater.start()
        if self.sentinel and not wait_until(lambda: self.master() and self.redis.formed(), 60):
            raise Failure("the Redis servers did not find each other again")
        if self.clustered and not wait(self.cluster.well):
            raise Failure("the nodes of the cluster did not find each other again")
        self.tell_all("CONFIG", "SET", "maxmemory", "0")
        self.tell_all("ACL", "LOAD")
        self.kafka.create_topic(DEAD_LETTERS, 1)
