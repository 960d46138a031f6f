"""Redis for services.py: one alone, a Redis Cluster, and a master with replicas behind Sentinel."""
import os
import socket

from processes import read, wait_until
from services import Failure, Server, choose_port, lock, require, write


class Redis(Server):
    """Without persistence unless the arguments behind -- ask for it; they come last, so they win."""

    kind = "redis"
    configuration = ""  # of the first redis.conf, where there shall be one: the server itself writes into it

    def prepare(self):
        require("redis-server", "redis-server")
        os.makedirs(f"{self.home}/data", exist_ok=True)
        if self.configuration and not os.path.exists(f"{self.home}/data/redis.conf"):
            write(f"{self.home}/data/redis.conf", self.configuration)

    def command(self):
        own = f"{self.home}/data/redis.conf"
        return ["redis-server", *([own] if os.path.exists(own) else []),
                *f"--bind 127.0.0.1 --port {self.port} --daemonize no --supervised no --appendonly no --tcp-backlog 128 "
                "--ignore-warnings ARM64-COW-BUG".split(),
                "--dir", f"{self.home}/data", "--logfile", "", "--save", "", *self.extra]

    def ask(self, command):
        """A command that needs no quoting, and its reply; an error's begins with "-"."""
        with socket.create_connection(("127.0.0.1", self.port), 2) as connection, connection.makefile("rb") as replies:
            connection.sendall(f"{command}\r\n".encode())
            line = replies.readline().decode().strip()
            return replies.read(int(line[1:])).decode() if line.startswith("$") else line

    def ready(self):
        # "NOAUTH" is an answer as well: the server is up and asks for the password that it was given.
        try:
            return self.ask("PING").startswith(("+PONG", "-NOAUTH"))
        except OSError:
            return False

    def address(self):
        return f"127.0.0.1:{self.port}"


class RedisGroup:
    """Several as one: node N is in DIR/KIND/node-N, on PORT + N. A kind defines arguments_of(), what a node is started
    with, and formed(), whether all know each other."""

    kind, size, ports = "", 0, 0
    address_name = "addresses"
    port_setting = "--port"

    def __init__(self, directory, port=0, extra=None, owner=None):
        self.home = f"{directory}/{self.kind}"
        self.log = f"{self.home}/node-*/redis/server.log"
        self.extra = extra
        self.nodes = [Redis(f"{self.home}/node-{n}", owner=owner) for n in range(self.size)]
        self.wanted_port, self.port = port, port or self.nodes[0].port

    def describe(self):
        return {"kind": self.kind, "port": self.port, "dir": self.home, self.address_name: self.address()}

    def address(self):
        return ",".join(node.address() for node in self.nodes)

    def start(self):
        os.makedirs(self.home, exist_ok=True)
        with lock(f"{self.home}/lock"):
            self.port = self.port or choose_port(self.ports, self.home)
            for n, node in enumerate(self.nodes):
                node.wanted_port, node.port_setting = self.port + n, self.port_setting
                node.configuration = self.configuration_of(n)
                if self.extra is not None or not node.port:
                    node.given_extra = self.arguments_of(n)
            started = [node.start() for node in self.nodes]
            self.form()
            if not wait_until(self.formed, 60):
                raise Failure(f"{self.kind} in {self.home}: the servers did not find each other")
            return any(started)

    def stop(self):
        for node in reversed(self.nodes):
            node.stop()

    def state(self):
        states = {node.state() for node in self.nodes}
        return states.pop() if len(states) == 1 else "incomplete"

    def configuration_of(self, n):
        return ""

    def form(self): ...


class RedisCluster(RedisGroup):
    """Three masters; their cluster buses are on PORT + 3 to PORT + 5."""

    kind, size, ports = "redis-cluster", 3, 6

    def arguments_of(self, n):
        return (f"--cluster-enabled yes --cluster-port {self.port + 3 + n} --cluster-node-timeout 2000 "
                "--cluster-config-file nodes.conf").split() + (self.extra or [])

    def form(self):
        if "cluster_slots_assigned:16384" in self.nodes[0].ask("CLUSTER INFO"):
            return
        for n, slots in enumerate(("0 5460", "5461 10922", "10923 16383")):
            for command in (f"ADDSLOTSRANGE {slots}", f"SET-CONFIG-EPOCH {n + 1}",
                            f"MEET 127.0.0.1 {self.port} {self.port + 3}")[:3 if n else 2]:
                if (reply := self.nodes[n].ask(f"CLUSTER {command}")) != "+OK":
                    raise Failure(f"the cluster could not be created: CLUSTER {command}: {reply}")

    def formed(self):
        return all("cluster_state:ok" in (answer := node.ask("CLUSTER INFO")) and "cluster_known_nodes:3" in answer
                   for node in self.nodes)


class RedisSentinel(RedisGroup):
    """Node 0 is the first master, 1 and 2 are its replicas, 3 to 5 the sentinels, which call it "fcap". Arguments behind --
    go to the first three. Who is the master is in each node's redis.conf, which Sentinel keeps up to date."""

    kind, size, ports = "redis-sentinel", 6, 6
    address_name = "url"

    def arguments_of(self, n):
        return ["--sentinel"] if n > 2 else ["--repl-diskless-sync-delay", "0", *(self.extra or [])]

    def configuration_of(self, n):
        if n == 0:
            return "# Sentinel's changes follow.\n"
        if n < 3:
            return f"replicaof 127.0.0.1 {self.port}\n"
        return "".join(f"sentinel {line}\n" for line in (
            f"monitor fcap 127.0.0.1 {self.port} 2", "down-after-milliseconds fcap 1000", "failover-timeout fcap 3000",
            f"known-replica fcap 127.0.0.1 {self.port + 1}", f"known-replica fcap 127.0.0.1 {self.port + 2}"))

    def formed(self):
        return (any("connected_slaves:2" in node.ask("INFO replication") for node in self.nodes[:3]) and
                all("slaves=2,sentinels=3" in node.ask("INFO sentinel") for node in self.nodes[3:]))

    def master(self):
        """The node that says so itself; None during a failover."""
        return next((node for node in self.nodes[:3] if node.ready() and "role:master" in node.ask("INFO replication")), None)

    def address(self):
        return f"redis-sentinel://{','.join(node.address() for node in self.nodes[3:])}/fcap"
