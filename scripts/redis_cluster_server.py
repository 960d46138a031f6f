"""Redis Cluster for services.py."""
import hashlib
import os

from redis_server import Redis, RedisGroup
from services import write

MASTERS, NODES = 3, 8
SLOTS = ("0-5460", "5461-10922", "10923-16383")
BUS, TLS = NODES, 2 * NODES  # how far these ports of a node are from its own
OPTIONS = ("--cluster-enabled yes --cluster-node-timeout 5000 --cluster-require-full-coverage no "
           "--cluster-allow-replica-migration no --repl-diskless-sync-delay 0 --repl-ping-replica-period 1 "
           # However long a busy machine has kept the replica from its election, it may still take over.
           "--cluster-replica-validity-factor 0").split()


class ClusterNode(Redis):
    """Listens for TLS as well where the arguments behind -- have --tls-cluster."""

    memory = ""  # what it knows at its first start, as Redis keeps it; a spare knows nobody

    def prepare(self):
        super().prepare()
        if self.memory and not os.path.exists(path := f"{self.home}/data/{self.memory_file()}"):
            write(path, self.memory)

    def memory_file(self):
        """With other ports it is another cluster, and knows nobody of the former one."""
        return f"nodes-{self.port}.conf"

    def options(self):
        tls = ["--tls-port", str(self.port + TLS)] if self.encrypted() else []
        return [*OPTIONS, "--cluster-port", str(self.port + BUS), "--cluster-config-file", self.memory_file(), *tls]

    def encrypted(self):
        return "--tls-cluster" in self.extra

    def client_port(self):
        return self.port + TLS * self.encrypted()

    def id(self):
        return hashlib.sha1(f"{self.home} {self.port}".encode()).hexdigest()

    def settled(self):
        """Whether it serves, and tells clients of every replica that is well, as it does once it has heard from it."""
        known, told = self.ask("CLUSTER NODES"), self.ask("CLUSTER SLOTS")
        replicas = [line for line in known.splitlines() if "slave" in line and "fail" not in line]
        return "cluster_state:ok" in self.ask("CLUSTER INFO") and all(line.split()[0] in told for line in replicas)


class RedisCluster(RedisGroup):
    """Nodes 0 to 2 are the first masters, of a third of the slots each; 3 to 5 are their replicas, in this order. Nodes 6 and 7
    are spares, which start only with --node and then are a cluster of their own, without slots. After the nodes' own ports come
    those of the cluster bus, and then those for TLS. Arguments behind -- go to all."""

    kind, ports = "redis-cluster", 3 * NODES
    node_class, size = ClusterNode, NODES

    def set_up(self, number, node):
        node.given_extra = self.nodes[0].extra if self.given_extra is None else self.given_extra

    def place(self):
        """The members begin as if the cluster had been formed already."""
        super().place()
        for node in self.members:
            lines = [self.line_about(number, node) for number, _ in enumerate(self.members)]
            node.memory = "\n".join([*lines, "vars currentEpoch 3 lastVoteEpoch 0", ""])

    def line_about(self, number, reader):
        """What a node knows of another: a line of CLUSTER NODES."""
        node, master = self.nodes[number], self.nodes[number % MASTERS]
        flags = ("myself," if node is reader else "") + ("master -" if node is master else f"slave {master.id()}")
        return " ".join((node.id(), f"127.0.0.1:{node.client_port()}@{node.port + BUS}", flags,
                         f"0 0 {number % MASTERS + 1} connected", *SLOTS[number:number + 1]))

    def formed(self):
        return all(node.settled() for node in self.members)

    def master(self):
        """The first shard's master: the node that says so itself; None during a failover."""
        return next((node for node in self.nodes[::MASTERS][:2] if "role:master" in node.ask("INFO replication")), None)

    def address(self):
        scheme = "rediss-cluster" if self.nodes[0].encrypted() else "redis-cluster"
        return f"{scheme}://{','.join(f'127.0.0.1:{node.client_port()}' for node in self.members)}"
