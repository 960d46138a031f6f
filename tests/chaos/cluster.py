"""A Redis Cluster as the nodes themselves describe it, and slots that move. Shard N is node N or N + 3, whichever is the master."""
import collections
import contextlib
import time

from processes import wait_until
from redis_cluster_server import MASTERS
from resp import Redis, RedisError
from services import Failure

PATIENCE = 60
AT_ONCE = 100  # slots that are on the move
SLOTS = 16384


class Line(collections.namedtuple("Line", "id port flags ranges moving")):
    """A line of CLUSTER NODES."""

    def slots(self):
        found = set()
        for first, _, last in (one.partition("-") for one in self.ranges):
            found.update(range(int(first), int(last or first) + 1))
        return found


def wait(condition, seconds=PATIENCE):
    """Whether it came true; without keeping the servers busy."""
    return wait_until(lambda: condition() or time.sleep(0.2), seconds)


def view(node):
    """What a node says of all of them; nothing if it does not answer."""
    found = []
    with contextlib.suppress(RedisError), Redis(node.port, 1) as redis:
        for line in redis("CLUSTER", "NODES").decode().splitlines():
            id_, address, flags, *_ = words = line.split()
            ranges = [word for word in words[8:] if not word.startswith("[")]
            found.append(Line(id_, int(address.partition("@")[0].rpartition(":")[2]), flags.split(","), ranges,
                              len(ranges) < len(words[8:])))
    return found


class Cluster:
    def __init__(self, redis):
        self.redis = redis

    def pair(self, shard):
        return self.redis.nodes[shard], self.redis.nodes[shard + MASTERS]

    def named_masters(self):
        """By shard, the port of its master by the word of all other shards' nodes that answer; without those on which they
        disagree. A master that comes back after it was replaced calls itself one for a while."""
        said = collections.defaultdict(set)
        for number, node in enumerate(self.redis.members):
            for line in view(node):
                shard = next((shard for shard in range(MASTERS) if line.port in (one.port for one in self.pair(shard))), None)
                if shard not in (None, number % MASTERS) and "master" in line.flags and line.ranges:
                    said[shard].add(line.port)
        return {shard: ports.pop() for shard, ports in said.items() if len(ports) == 1}

    def master(self, shard):
        """None: there is none, or it does not answer."""
        port = self.named_masters().get(shard)
        return next((node for node in self.pair(shard) if node.port == port and "role:master" in node.ask("INFO replication")), None)

    def masters(self):
        """Those of all shards, in their order; empty while one is missing."""
        named = self.named_masters()
        found = [node for shard in range(MASTERS) for node in self.pair(shard)
                 if node.port == named.get(shard) and "role:master" in node.ask("INFO replication")]
        return found if len(found) == MASTERS else []

    def own(self, node):
        """A node's line about itself."""
        for line in view(node):
            if "myself" in line.flags:
                return line
        raise RedisError(f"port {node.port} does not answer")

    def owners(self):
        """By slot, its master."""
        return {slot: node for node in self.masters() for slot in self.own(node).slots()}

    def roles(self, shard):
        """The master and its replica, once that one is linked and all nodes are of one mind."""
        if not wait(lambda: self.linked(self.master(shard))):
            raise Failure(f"the servers of shard {shard} did not find each other again")
        master = self.master(shard)
        return master, next(node for node in self.pair(shard) if node is not master)

    def linked(self, master):
        """Its replica has what the master had when it asked for it."""
        return master is not None and master.ask("INFO replication").count("state=online") == 1

    def well(self):
        """Every shard has its two servers, every slot rests, and all know the same."""
        masters = self.masters()
        if not masters or not all(map(self.linked, masters)) or not all(node.settled() for node in self.redis.members):
            return False
        views = [{line.port: line.slots() for line in view(node) if line.ranges} for node in self.redis.members]
        return all(one == views[0] for one in views) and sum(map(len, views[0].values())) == SLOTS and \
            not any(line.moving for node in masters for line in view(node))

    # Slots.

    def move(self, slots, source, target, seconds):
        """From one shard to another, within about so many seconds if nothing holds it up. How many keys went with them."""
        slots, keys, began = sorted(slots), 0, time.monotonic()
        for first in range(0, len(slots), AT_ONCE):
            time.sleep(max(0, began + seconds * first / len(slots) - time.monotonic()))
            keys += self.move_some(slots[first:first + AT_ONCE], source, target)
        if not wait(lambda: set(slots) <= self.known_of(target)):
            raise Failure(f"not every node knows that shard {target} has got its slots")
        with Redis(self.roles(target)[0].port, 10) as redis:  # whoever takes over now has the keys
            redis("WAIT", 1, 5000)
        return keys

    def known_of(self, shard):
        """The slots that are a shard's by the word of all nodes."""
        ports = [node.port for node in self.pair(shard)]
        return set.intersection(*({slot for line in view(node) if line.port in ports for slot in line.slots()}
                                  for node in self.redis.members))

    def move_some(self, slots, source, target):
        until, keys, again = time.monotonic() + PATIENCE, 0, False
        while True:
            try:
                for count in self.try_to_move(slots, source, target, again):
                    keys += count
                return keys
            except RedisError as error:  # a busy or full server, or one that was replaced
                if time.monotonic() > until:
                    raise Failure(f"slots {slots[0]} to {slots[-1]} could not be moved: {error}") from None
                again = True
                time.sleep(0.3)

    def try_to_move(self, slots, source, target, again):
        """Gives how many keys it moves, as it does so. What was moved before stays where it is."""
        nodes = [self.master(source), self.master(target)]
        if None in nodes:
            raise RedisError("a shard has no master")
        source_id, target_id, there = self.own(nodes[0]).id, self.own(nodes[1]).id, self.own(nodes[1]).slots()
        with Redis(nodes[0].port, 20) as source, Redis(nodes[1].port, 20) as target:
            left = [slot for slot in slots if slot not in there]
            target.all([["CLUSTER", "SETSLOT", slot, "IMPORTING", source_id] for slot in left])
            source.all([["CLUSTER", "SETSLOT", slot, "MIGRATING", target_id] for slot in left])
            while keys := sum(source.all([["CLUSTER", "GETKEYSINSLOT", slot, 20] for slot in left]), []):
                # While the source has a key, it is the source's that counts, and what a failed attempt has left is not.
                source.all([["MIGRATE", "127.0.0.1", nodes[1].port, key, 0, 10_000, *(["REPLACE"] if again else [])] for key in keys])
                yield len(keys)
            target.all([["CLUSTER", "SETSLOT", slot, "NODE", target_id] for slot in left])  # first: else nobody has them
            source.all([["CLUSTER", "SETSLOT", slot, "NODE", target_id] for slot in slots])
