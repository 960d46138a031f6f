"""Redis for services.py: one alone, and a master with replicas behind Sentinel. redis_cluster_server.py has the cluster."""
import os
import socket

from processes import wait_until
from services import Failure, Group, Server, choose_port, lock, write


class Redis(Server):
    """Without persistence unless the arguments behind -- ask for it; they come last, so they win."""

    kind, needs = "redis", {"redis-server": "redis-server"}
    configuration = ""  # the first redis.conf; Sentinel has the server write into it

    @property
    def ports(self):
        """A lone node of a cluster has its bus on the port behind its own. By default that would be PORT + 10000, among the
        ports that the kernel gives to outgoing connections."""
        return 2 if "--cluster-enabled" in self.extra else 1

    def options(self):
        return ["--cluster-port", str(self.port + 1)] if self.ports == 2 else []

    def prepare(self):
        os.makedirs(f"{self.home}/data", exist_ok=True)
        if not os.path.exists(f"{self.home}/data/redis.conf"):
            write(f"{self.home}/data/redis.conf", self.configuration)

    def command(self):
        return ["redis-server", f"{self.home}/data/redis.conf",
                *f"--bind 127.0.0.1 --port {self.port} --daemonize no --supervised no --appendonly no --tcp-backlog 128 "
                "--ignore-warnings ARM64-COW-BUG".split(),
                "--dir", f"{self.home}/data", "--logfile", "", "--save", "", *self.options(), *self.extra]

    def ask(self, command):
        """The reply to a command that needs no quoting, as the protocol has it. Empty: no answer, as while Sentinel makes the
        server a replica, which ends its connections."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 2) as connection, connection.makefile("rb") as reply:
                connection.sendall(f"{command}\r\n".encode())
                connection.shutdown(socket.SHUT_WR)
                return reply.read().decode()
        except OSError:
            return ""

    def ready(self):
        # "NOAUTH" is an answer as well: the server is up and asks for the password that it was given.
        return self.ask("PING").startswith(("+PONG", "-NOAUTH"))


class RedisGroup(Group):
    """Node N is in DIR/KIND/node-N and on PORT + N. A kind defines set_up(), which says how a node is to start, and formed(),
    whether they have found each other."""

    address_name = "url"
    node_class = Redis
    size = 6

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.log = f"{self.home}/node-*/redis/server.log"
        self.nodes = [self.node_class(f"{self.home}/node-{n}", owner=self.owner) for n in range(self.size)]
        self.members = self.nodes[:6]
        self.port = self.given_port or self.nodes[0].port
        self.place()

    def place(self):
        for n, node in enumerate(self.nodes if self.port else ()):
            node.given_port, node.port_setting = self.port + n, self.port_setting
            self.set_up(n, node)
            node.load()

    def start(self):
        os.makedirs(self.home, exist_ok=True)
        with lock(f"{self.home}/lock"):
            self.port = self.port or choose_port(self.ports, self.home)
            self.place()
            return super().start()

    def form(self):
        if not wait_until(self.formed, 180):
            raise Failure(f"{self.kind} in {self.home}: the servers did not find each other")


class RedisSentinel(RedisGroup):
    """Node 0 is the first master, 1 and 2 are its replicas, 3 to 5 the sentinels, which call it "fcap". Arguments behind --
    go to the first three. Who is the master is in each node's redis.conf, which Sentinel keeps up to date."""

    kind, ports = "redis-sentinel", 6

    def set_up(self, number, node):
        if number < 3:
            node.given_extra = self.given_extra
            node.configuration = "repl-diskless-sync-delay 0\n" + (f"replicaof 127.0.0.1 {self.port}\n" if number else "")
            return
        node.given_extra = ["--sentinel"]
        node.configuration = "".join(f"sentinel {line}\n" for line in (
            f"monitor fcap 127.0.0.1 {self.port} 2", "down-after-milliseconds fcap 1000", "failover-timeout fcap 3000",
            f"known-replica fcap 127.0.0.1 {self.port + 1}", f"known-replica fcap 127.0.0.1 {self.port + 2}"))

    def formed(self):
        return (any("connected_slaves:2" in node.ask("INFO replication") for node in self.nodes[:3]) and
                all("slaves=2,sentinels=3" in node.ask("INFO sentinel") for node in self.nodes[3:]))

    def master(self):
        """The node that says so itself; None during a failover."""
        return next((node for node in self.nodes[:3] if "role:master" in node.ask("INFO replication")), None)

    def address(self):
        return f"redis-sentinel://{','.join(node.address() for node in self.nodes[3:])}/fcap"
