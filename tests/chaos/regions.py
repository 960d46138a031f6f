"""Two regions: for each a Redis, a broker, and one updater per topic, its own and the mirror of the other's. MirrorMaker 2 copies
the topic of each region to the other's broker, over a link that can be silenced and cut, with an account that may do what
docs/regions.md lists and no more."""
import json
import os
import socket
import struct

from events import signing_keys
from kafka_server import Kafka
from proxy import Proxy
from record import Record
from resp import Redis
from services import Failure, Server, choose_port, make, write
from updater_server import Updater

from confluent_kafka.admin import ConfigResource

TOPIC, DEAD_LETTERS = "impressions", "impressions.dead"
PARTITIONS, RETENTION_MS = 3, 40 * 86_400_000
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
# The broker listens for its own region, for the mirror that runs there, and for the other region's, which comes over the link.
LISTENERS = f"""
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller}},ACCOUNTS://127.0.0.1:{{accounts}},\
LINK://127.0.0.1:{{far}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},ACCOUNTS://127.0.0.1:{{accounts}},LINK://127.0.0.1:{{link}}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,ACCOUNTS:SASL_PLAINTEXT,LINK:SASL_PLAINTEXT
listener.name.link.plain.sasl.jaas.config={LOGIN} user_mirror="mirror";
fcap.accounts=mirror
group.min.session.timeout.ms=2000"""
# docs/regions.md, but for what follows from one broker, impatient tests and no TLS.
MIRROR = """clusters = {source}, {target}
{source}.bootstrap.servers = {source_brokers}
{target}.bootstrap.servers = {target_brokers}
{source}->{target}.enabled = true
{source}->{target}.topics = impressions
{source}.consumer.isolation.level = read_committed
emit.heartbeats.enabled = false
emit.checkpoints.enabled = false
emit.offset-syncs.enabled = false
sync.topic.acls.enabled = false
replication.factor = 1
config.storage.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
{target}.session.timeout.ms = 3000
{target}.heartbeat.interval.ms = 1000
{target}.plugin.discovery = service_load
security.protocol = SASL_PLAINTEXT
sasl.mechanism = PLAIN
sasl.jaas.config = {login} username="mirror" password="mirror";
"""
# The mirror's rights, as in docs/regions.md; the numbers are those of Kafka's protocol.
TOPIC_NAMED, GROUP_NAMED, LITERAL, PREFIXED = 2, 3, 3, 4
READ, WRITE, CREATE, ALTER, DESCRIBE_CONFIGS, ALTER_CONFIGS = 3, 4, 5, 7, 10, 11
AT_SOURCE = [(TOPIC_NAMED, LITERAL, "impressions", (READ, DESCRIBE_CONFIGS))]
AT_TARGET = [(TOPIC_NAMED, LITERAL, "{source}.impressions", (CREATE, WRITE, ALTER, ALTER_CONFIGS)),
             (TOPIC_NAMED, PREFIXED, "mm2-", (CREATE, READ, WRITE, DESCRIBE_CONFIGS)),
             (GROUP_NAMED, LITERAL, "{source}-mm2", (READ,))]


def text(words):
    return struct.pack(">h", len(words)) + words.encode()


def grant(port, rights, source):
    """Debian's client for Python knows no ACLs, so this is the request CreateAcls itself, in version 1."""
    acls = [struct.pack(">b", kind) + text(name.format(source=source)) + struct.pack(">b", pattern) + text("User:mirror") +
            text("*") + struct.pack(">bb", operation, 3)  # allowed
            for kind, pattern, name, operations in rights for operation in operations]
    request = struct.pack(">hhihi", 30, 1, 0, -1, len(acls)) + b"".join(acls)
    with socket.create_connection(("127.0.0.1", port), 30) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = answers.read(*struct.unpack(">i", answers.read(4)))
    if any(answer[12:]):
        raise Failure(f"Kafka refused the mirror's rights: {answer!r}")


class Mirror(Server):
    """MirrorMaker 2 in dedicated mode: runs where its target is, and copies one topic in one direction."""

    kind, patience = "mirror", 240

    def __init__(self, directory, source, target):
        super().__init__(directory)
        self.source, self.target = source, target

    def prepare(self):
        write(f"{self.home}/mirror.properties", MIRROR.format(
            source=self.source.name, target=self.target.name, source_brokers=self.source.link.address(),
            target_brokers=f"127.0.0.1:{self.target.kafka.port + 2}", login=LOGIN))
        grant(self.source.kafka.port, AT_SOURCE, self.source.name)
        grant(self.target.kafka.port, AT_TARGET, self.source.name)

    def command(self):
        return self.target.kafka.java(*os.environ.get("FCAP_KAFKA_JAVA_OPTIONS", "").split(),
                                      "org.apache.kafka.connect.mirror.MirrorMaker", f"{self.home}/mirror.properties")

    def ready(self):
        """The topic that it makes is there."""
        return self.target.mirrored in self.target.topics()


class Region:
    """All of it. `mirrored` is what the other region's topic is called here."""

    def __init__(self, name, directory, program):
        self.name, self.directory, self.program = name, f"{directory}/{name}", program
        os.makedirs(self.directory)
        port, far, link = (choose_port(count, self.directory) for count in (3, 1, 1))
        lines = LISTENERS.format(port=port, controller=port + 1, accounts=port + 2, far=far, link=link).split("\n")
        self.kafka, self.redis = make("kafka", self.directory, port, lines[1:]), make("redis", self.directory)
        self.link, self.redis_link, self.updaters, self.mirror = Proxy(link, far), None, [], None

    def start(self):
        self.kafka.start()
        self.redis.start()
        self.redis_link = Proxy(choose_port(1, self.directory), self.redis.port)  # of the updaters
        self.create_topic()
        self.kafka.create_topic(DEAD_LETTERS, 1)

    def create_topic(self):
        """Whether it is new; it is not while the former one is still there."""
        return self.kafka.create_topic(TOPIC, PARTITIONS, f"retention.ms={RETENTION_MS}")

    def join(self, other):
        """To be called once both have started."""
        self.mirrored = f"{other.name}.{TOPIC}"
        self.mirror = Mirror(self.directory, other, self)
        self.mirror.start()
        self.updaters = [self.updater(TOPIC, "fcap-updater"), self.updater(self.mirrored, "fcap-updater-mirror")]
        for updater in self.updaters:
            updater.start()

    def updater(self, topic, group):
        """One process per topic, with a group of its own."""
        made = Updater(f"{self.directory}/{group}", self.program)
        os.makedirs(made.home)
        write(f"{made.home}/keys.json", json.dumps(signing_keys()))
        made.settings = {
            "kafka": {"brokers": [self.kafka.address()], "topic": topic, "group_id": group, "dead_letter_topic": DEAD_LETTERS},
            "redis": {"addresses": [self.redis_link.address()]}, "compaction": {"quiet_after": "3s"},
            "signatures": {"key_file": f"{made.home}/keys.json", "required": "nothing"}, "pipeline": {"gap_messages_min": 500}}
        return made

    def stop(self):
        if self.mirror:
            self.mirror.kill()  # it would take its time
        for server in (*self.updaters, self.redis, self.kafka):
            server.stop()
        for link in filter(None, (self.link, self.redis_link)):
            link.stop()

    def topics(self):
        return {name for name in self.kafka.admin().list_topics(timeout=10).topics if not name.startswith("__")}

    def retention_ms(self, topic):
        resource, admin = ConfigResource(ConfigResource.Type.TOPIC, topic), self.kafka.admin()
        return int(admin.describe_configs([resource])[resource].result(30)["retention.ms"].value)

    def records(self):
        """By user."""
        with Redis(self.redis.port) as redis:
            keys = sorted({key for key in redis.keys() if key.startswith(b"fcap:{")})
            values = redis.all([["GET", key] for key in keys])
            return {key[6:-1].decode(): Record(value) for key, value in zip(keys, values) if value}
