"""Apache Kafka for services.py: broker and KRaft controller in one JVM; PORT is the broker, PORT + 1 the controller.
Arguments behind -- are lines for server.properties (key=value), but for those of our own:
fcap.accounts=NAME,… opens PORT + 2 for these accounts, each with its name as its password, by SASL PLAIN or what
sasl.enabled.mechanisms says. There they may do only what ACLs allow; PORT stays open to whoever administers them.
fcap.listeners=NAME,… opens a further port for each, to be used with fcap.accounts; listener.security.protocol.map and
listener.name.… say how they work.
fcap.version=VERSION is another Kafka than kafka/pom.xml has."""
import os
import shutil
import subprocess
import sys
import time
import zlib

from processes import read, wait_until
from services import ROOT, Failure, Server, lock, port_busy, say, write

sys.path.append("/usr/lib/python3/dist-packages")  # scripts/service starts without it, for speed
try:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient, NewTopic
except ImportError:
    raise Failure("confluent_kafka is missing; run ./dev build once, or: apt-get install python3-confluent-kafka") from None

CLUSTER_ID = "ZmNhcC1kZXYtY2x1c3Rlcg"
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={directory}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
log.index.size.max.bytes=1048576
num.network.threads=2
num.io.threads=2
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""
ACCOUNTS = """authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},{further}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,ACCOUNTS:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.accounts.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
listener.name.accounts.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.accounts.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
"""
JAVA = ("java -XX:+UseSerialGC -Xms128m -Xmx400m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn "
        "-Dorg.slf4j.simpleLogger.showDateTime=true").split()
# The archive of classes takes a minute of processor time to write, on a busy machine several of them.
HANG_SECONDS = 300
LOG_TIME = "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS"


def fetched_jars(version):
    """Apache Kafka's server jars, once per user and version: the directory that holds them in jars/."""
    pom = f"{ROOT}/scripts/kafka/pom.xml"
    cache = os.environ.get("FCAP_CACHE_DIR") or os.path.expanduser("~/.cache/fcap")
    # A changed pom is another directory, so an update never mixes jars.
    home = f"{cache}/kafka-{zlib.crc32(f'{version}{read(pom)}'.encode())}"
    os.makedirs(home, exist_ok=True)
    with lock(f"{home}/lock"):
        if not os.path.exists(f"{home}/jars"):
            say("fetching Apache Kafka's jars (54 MB, once) …")
            shutil.rmtree(f"{home}/jars.new", ignore_errors=True)
            maven = subprocess.run(
                ["mvn", "-B", "-q", "-f", pom, *([f"-Dkafka.version={version}"] if version else []), "dependency:copy-dependencies",
                 "-DincludeScope=runtime", f"-DoutputDirectory={home}/jars.new"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
            if maven.returncode != 0:
                raise Failure(f"Kafka's jars could not be fetched from Maven Central:\n{maven.stdout[-4000:]}")
            os.rename(f"{home}/jars.new", f"{home}/jars")
    return home


class Kafka(Server):
    kind, address_name = "kafka", "brokers"
    needs = {"java": "openjdk-17-jre-headless", "mvn": "maven"}
    patience = 90

    def setting(self, name):
        """The last of this name, as Kafka takes it."""
        return next((line.partition("=")[2] for line in reversed(self.extra) if line.startswith(f"{name}=")), "")

    def names(self, setting):
        return [name for name in self.setting(setting).split(",") if name]

    @property
    def accounts(self):
        return self.names("fcap.accounts")

    @property
    def listeners(self):
        """Those on the ports from PORT + 2 on."""
        return ["ACCOUNTS", *self.names("fcap.listeners")] if self.accounts else []

    @property
    def ports(self):
        return 2 + len(self.listeners)

    def further_address(self, listener):
        return f"127.0.0.1:{self.port + 2 + self.listeners.index(listener)}"

    def java(self, *arguments):
        return [*JAVA, LOG_TIME, f"-Djava.io.tmpdir={self.home}", "-cp", f"{self.jars}/jars/*", *arguments]

    def prepare(self):
        java = os.stat(shutil.which("java"))
        self.jars = fetched_jars(self.setting("fcap.version"))
        self.archive = f"{self.jars}/classes-{int(java.st_mtime)}-{java.st_size}.jsa"
        with lock(f"{self.jars}/lock"):
            if not os.path.exists(self.archive):
                self.archive_classes()
        self.configure(f"{self.home}/data")

    def configure(self, directory):
        """Writes server.properties, and formats the directory as Kafka wants it. Only accounts of SCRAM need Kafka's own tool
        for that, and so a second JVM."""
        users = " ".join(f'user_{name}="{name}"' for name in self.accounts)
        further = ",".join(f"{listener}://{self.further_address(listener)}" for listener in self.listeners)
        lines = (PROPERTIES + (ACCOUNTS if users else "")).format(
            directory=directory, users=users, port=self.port, controller=self.port + 1, further=further)
        properties = f"{self.home}/server.properties"
        write(properties, lines + "".join(f"{line}\n" for line in self.extra if not line.startswith("fcap.")))
        if os.path.exists(f"{directory}/meta.properties"):
            return
        scram = [f"{mechanism}=[name={name},password={name}]" for name in self.accounts
                 for mechanism in self.setting("sasl.enabled.mechanisms").split(",") if mechanism.startswith("SCRAM")]
        if not scram:
            os.makedirs(directory, exist_ok=True)
            write(f"{directory}/meta.properties", f"version=1\nnode.id=1\ncluster.id={CLUSTER_ID}\n")
            return
        tool = self.java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", properties)
        if self.launch(*tool, *(word for user in scram for word in ("--add-scram", user))).wait() != 0:
            raise self.failed("Kafka's storage could not be formatted")

    def archive_classes(self):
        """An archive of loaded classes, written by one start and stop of a broker, halves the processor time of every later
        start. The JVM ignores one that does not fit it; without one, all goes on, only slower."""
        say("preparing Apache Kafka (once, some seconds) …")
        self.configure(f"{self.home}/training")
        broker = self.launch(*self.java(f"-XX:ArchiveClassesAtExit={self.archive}.new", "kafka.Kafka",
                                        f"{self.home}/server.properties"))
        try:
            wait_until(self.ready, HANG_SECONDS)
            broker.terminate()
            broker.wait(HANG_SECONDS)
        finally:
            broker.kill()
        shutil.rmtree(f"{self.home}/training")
        with open(f"{self.archive}.new", "ab"):
            pass
        os.replace(f"{self.archive}.new", self.archive)

    def command(self):
        return self.java(f"-XX:SharedArchiveFile={self.archive}", "-Xlog:cds=off",
                         *os.environ.get("FCAP_KAFKA_JAVA_OPTIONS", "").split(), "kafka.Kafka", f"{self.home}/server.properties")

    def admin(self):
        return AdminClient({"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 0})

    def ready(self):
        try:
            return port_busy(self.port) and len(self.admin().list_topics(timeout=2).brokers) == 1
        except KafkaException:
            return False

    def describe(self):
        return super().describe() | {
            f"{listener.lower()}_brokers": self.further_address(listener) for listener in self.listeners}

    def create_topic(self, name, partitions, *settings):
        """Whether the topic is new; one that exists is left as it is."""
        self.running_pid()
        topic = NewTopic(name, int(partitions), 1, config=dict(setting.split("=", 1) for setting in settings))
        until, timed_out = time.monotonic() + 90, False
        while True:
            admin = self.admin()
            try:
                admin.create_topics([topic], request_timeout=15)[name].result(30)
                return True
            except KafkaException as failure:
                error = failure.args[0]
                if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                    return timed_out
                # A client that was told that there is no controller, as by a broker that was stalled, does not ask again.
                timed_out = error.code() in (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT)
                # A broker that was stalled has missed its heartbeats, and comes back a moment later.
                fenced = error.code() == KafkaError.INVALID_REPLICATION_FACTOR
                if not (timed_out or fenced) or time.monotonic() > until:
                    raise Failure(f"topic {name}: {error.str()}") from None
                time.sleep(0.1)
            except TimeoutError:
                raise Failure(f"topic {name}: the broker has not answered for 30 s") from None
