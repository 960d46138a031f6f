"""Apache Kafka for services.py: broker and KRaft controller in one JVM; PORT is the broker, PORT + 1 the controller.
Arguments behind -- are lines for server.properties (key=value). One of them is our own: fcap.accounts=NAME,… opens
PORT + 2 for these accounts (SASL PLAIN, each with its name as its password), which may do only what ACLs allow; PORT
stays open to whoever administers them."""
import os
import shutil
import subprocess
import sys
import zlib

from processes import read, wait_until
from services import ROOT, Failure, Server, lock, port_busy, require, say, write

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
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs={directory}
auto.create.topics.enable=false
default.replication.factor=1
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
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
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller},ACCOUNTS://127.0.0.1:{accounts}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},ACCOUNTS://127.0.0.1:{accounts}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,ACCOUNTS:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.accounts.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {users};
"""


def fetched_jars():
    """Apache Kafka's server jars, once per user and version: the directory that holds them in jars/."""
    pom = f"{ROOT}/scripts/kafka/pom.xml"
    # A changed pom is another directory, so an update never mixes jars.
    home = f"{os.environ.get('FCAP_CACHE_DIR') or os.path.expanduser('~/.cache/fcap')}/kafka-{zlib.crc32(read(pom).encode())}"
    os.makedirs(home, exist_ok=True)
    with lock(f"{home}/lock"):
        if not os.path.exists(f"{home}/jars"):
            say("fetching Apache Kafka's jars (43 MB, once) …")
            shutil.rmtree(f"{home}/jars.new", ignore_errors=True)
            maven = subprocess.run(
                [require("mvn", "maven"), "-B", "-q", "-f", pom, "dependency:copy-dependencies", "-DincludeScope=runtime",
                 f"-DoutputDirectory={home}/jars.new"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
            if maven.returncode != 0:
                raise Failure(f"Kafka's jars could not be fetched from Maven Central:\n{maven.stdout[-4000:]}")
            os.rename(f"{home}/jars.new", f"{home}/jars")
    return home


class Kafka(Server):
    kind, address_name = "kafka", "brokers"
    patience = 90

    @property
    def accounts(self):
        given = [line.partition("=")[2] for line in self.extra if line.startswith("fcap.accounts=")]
        return given[-1].split(",") if given else []

    @property
    def scram(self):
        return self.accounts if "sasl.enabled.mechanisms=SCRAM-SHA-256" in self.extra else []

    @property
    def ports(self):
        return 3 if self.accounts else 2

    def write_properties(self, path, directory):
        users = " ".join(f'user_{name}="{name}"' for name in self.accounts)
        text = PROPERTIES + (ACCOUNTS if users else "")
        write(path, text.format(directory=directory, users=users, port=self.port, controller=self.port + 1, accounts=self.port + 2) +
              "".join(f"{line}\n" for line in self.extra if not line.startswith("fcap.")))

    def java(self, options, *main):
        return ["java", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-Dorg.slf4j.simpleLogger.showDateTime=true",
                "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS", f"-Djava.io.tmpdir={self.home}",
                *options, "-cp", f"{self.jars}/jars/*", *main]

    def prepare(self):
        java = os.stat(require("java", "openjdk-17-jre-headless"))
        self.jars = fetched_jars()
        # Users of SCRAM are part of what is formatted.
        formatted = f"{self.home}/formatted" if self.scram else f"{self.jars}/formatted"
        self.archive = f"{self.jars}/classes-{int(java.st_mtime)}-{java.st_size}.jsa"
        with lock(f"{self.jars}/lock"):
            if not os.path.exists(formatted):
                self.format(formatted)
            if not os.path.exists(self.archive):
                self.archive_classes(formatted)
        self.write_properties(f"{self.home}/server.properties", f"{self.home}/data")
        if not os.path.exists(f"{self.home}/data/meta.properties"):
            shutil.copytree(formatted, f"{self.home}/data", dirs_exist_ok=True)

    def format(self, formatted):
        """Formatting needs a JVM of its own (two seconds), and every instance of ours may look alike: loopback only, one
        node. So it is done once and copied."""
        shutil.rmtree(f"{formatted}.new", ignore_errors=True)
        properties = f"{self.home}/format.properties"
        self.write_properties(properties, f"{formatted}.new")
        users = [word for name in self.scram for word in ("--add-scram", f"SCRAM-SHA-256=[name={name},password={name}]")]
        if not self.logged(*self.java(["-Xmx128m"], "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", properties, *users)):
            raise self.failed("Kafka's storage could not be formatted")
        os.rename(f"{formatted}.new", formatted)

    def archive_classes(self, formatted):
        """An archive of loaded classes, written by one start and stop of a broker, halves the processor time of every
        later start. The JVM ignores one that does not fit it; without one, all goes on, only slower."""
        say("preparing Apache Kafka (once, some seconds) …")
        training = f"{self.home}/training"
        shutil.copytree(formatted, training, dirs_exist_ok=True)
        self.write_properties(f"{training}.properties", training)
        with open(self.log, "ab") as log, subprocess.Popen(
                self.java(["-Xmx400m", f"-XX:ArchiveClassesAtExit={self.archive}.new"], "kafka.Kafka", f"{training}.properties"),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log) as broker:
            try:
                wait_until(self.ready, 60)
                broker.terminate()
                broker.wait(30)
            finally:
                broker.kill()
        shutil.rmtree(training)
        with open(f"{self.archive}.new", "ab"):
            pass
        os.replace(f"{self.archive}.new", self.archive)

    def command(self):
        options = ["-Xms128m", f"-Xmx{os.environ.get('FCAP_KAFKA_HEAP_MB', '400')}m"]
        if os.path.getsize(self.archive) > 0:
            options += [f"-XX:SharedArchiveFile={self.archive}", "-Xlog:cds=off"]
        options += os.environ.get("FCAP_KAFKA_JAVA_OPTIONS", "").split()
        return self.java(options, "kafka.Kafka", f"{self.home}/server.properties")

    def admin(self):
        return AdminClient({"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 0})

    def ready(self):
        try:
            return port_busy(self.port) and len(self.admin().list_topics(timeout=2).brokers) == 1
        except KafkaException:
            return False

    def address(self):
        return f"127.0.0.1:{self.port}"

    def describe(self):
        return super().describe() | ({"accounts_brokers": f"127.0.0.1:{self.port + 2}"} if self.accounts else {})

    def create_topic(self, name, partitions, *settings):
        """Whether the topic is new; one that exists is left as it is."""
        self.running_pid()
        admin, topic = self.admin(), NewTopic(name, int(partitions), 1, config=dict(setting.split("=", 1) for setting in settings))
        try:
            admin.create_topics([topic])[name].result(60)
            return True
        except KafkaException as failure:
            if failure.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise Failure(f"topic {name}: {failure.args[0].str()}") from None
