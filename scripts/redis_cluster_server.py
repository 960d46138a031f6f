"""Redis Cluster for services.py."""
import hashlib
import os

from redis_server import Redis, RedisGroup
from services import write

MASTERS, MEMBERS, NODES = 3, 6, 8
SLOTS = ("0-5460", "5461-10922", "10923-16383")
BUS, TLS = NODES, 2 * NODES  # how far these ports of a node are from its own


class ClusterNode(Redis):
    """Listens for TLS as well where the arguments behind -- have --tls-cluster."""

    def __init__(self, cluster, number):
        self.cluster, self.number = cluster, number
        super().__init__(f"{cluster.home}/node-{number}", owner=cluster.owner)

    def options(self):
        tls = ["--tls-port", str(self.port + TLS)] if self.encrypted() else []
        return ["--cluster-enabled", "yes", "--cluster-port", str(self.port + BUS), "--cluster-config-file", self.memory(), *tls,
                *"--cluster-node-timeout 5000 --cluster-require-full-coverage no --cluster-allow-replica-migration no "
                "--repl-diskless-sync-delay 0 --repl-ping-replica-period 1".split()]

    def encrypted(self):
        return "--tls-cluster" in self.extra

    def client_port(self):
        return self.port + TLS * self.encrypted()

    def memory(self):
        """The file in which a node remembers the others, whose ports are another cluster's once they change."""
        return f"nodes-{self.port}.conf"

    def prepare(self):
        """A member begins as if the cluster had been formed already; a spare knows nobody."""
        super().prepare()
        path = f"{self.home}/data/{self.memory()}"
        if self.number < MEMBERS and not os.path.exists(path):
            lines = [self.line_about(node) for node in self.cluster.nodes[:MEMBERS]]
            write(path, "\n".join([*lines, "vars currentEpoch 3 lastVoteEpoch 0", ""]))

    def line_about(self, node):
        """One of CLUSTER NODES."""
        master = self.cluster.nodes[node.number % MASTERS]
        flags = "myself," * (node is self) + ("master -" if node is master else f"slave {master.id()}")
        return " ".join((node.id(), f"127.0.0.1:{node.client_port()}@{node.port + BUS}", flags,
                         f"0 0 {master.number + 1} connected", *SLOTS[node.number:node.number + 1]))

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

    def make_nodes(self):
        nodes = [ClusterNode(self, n) for n in range(NODES)]
        for spare in nodes[MEMBERS:]:
            spare.wanted_port = nodes[0].port and nodes[0].port + spare.number
            spare.given_extra = nodes[0].extra
        return nodes

    def place(self, n, node):
        node.port, node.given_extra = node.wanted_port, self.given_extra
        node.extra = node.extra if self.given_extra is None else self.given_extra

    def formed(self):
        return all(node.settled() for node in self.nodes[:self.members])

    def address(self):
        encrypted, ports = self.nodes[0].encrypted(), [node.client_port() for node in self.nodes[:self.members]]
        return f"redis{'s' * encrypted}-cluster://{','.join(f'127.0.0.1:{port}' for port in ports)}"
