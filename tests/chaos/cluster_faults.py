"""The faults of a cluster, of one shard at a time: it takes two masters to agree that a third one is gone. A server comes back
only when its replica is the master: one that came back empty sooner would make the replica empty, too. Slots do not move while
a shard loses anything (docs/operations.md), nor until the former master is a replica: Redis 7.0 leaves it a master without slots
if the new one has got other slots meanwhile."""
import time

from cluster import MASTERS, PATIENCE, wait
from faults import REPLICATION, fault, filled_up, frozen_for, kill_ahead_of, throttled_for
from processes import freeze_tree, thaw_tree
from resp import Redis
from services import Failure


def shard_of(one):
    return one.chance % MASTERS


def wait_replaced(world, shard, former):
    began = time.monotonic()
    if not wait(lambda: world.cluster.master(shard) not in (None, former)):
        raise Failure(f"no replica took the place of the master of shard {shard} within {PATIENCE} s")
    return f"shard {shard} replaced after {time.monotonic() - began:.1f} s"


def replaced(world, one):
    """A loss that begins now: of what a failover takes."""
    shard = shard_of(one)
    master, replica = world.cluster.roles(shard)
    slots = world.cluster.own(master).slots()
    return shard, master, replica, world.loss(f"shards: {one.kind}", slots, REPLICATION, REPLICATION)


@fault("shards", "kill a master")
def kill_master(world, one):
    with world.moving:
        shard, master, _, loss = replaced(world, one)
        with loss:
            master.kill()
            became = wait_replaced(world, shard, master)
        time.sleep(one.lasts)
        master.start()
        world.cluster.roles(shard)
    return f"{became}, a replica since"


@fault("shards", "freeze a master")
def freeze_master(world, one):
    with world.moving:
        shard, master, _, loss = replaced(world, one)
        with loss:
            freeze_tree(master.pid)
            try:
                became = wait_replaced(world, shard, master)
                time.sleep(one.lasts)
            finally:
                thaw_tree(master.pid)
        world.cluster.roles(shard)
    return f"{became}, thawed as a former master"


@fault("shards", "fail over to a held-back replica")
def held_back(world, one):
    """What is written meanwhile is in the master alone."""
    with world.moving:
        shard, master, replica, loss = replaced(world, one)
        with loss:
            kill_ahead_of([replica], master, one.lasts)
            became = wait_replaced(world, shard, master)
        master.start()
        world.cluster.roles(shard)
    return f"{became} by one that lacked {one.lasts:.1f} s"


@fault("shards", "fail over in order")
def fail_over(world, one):
    """Loses nothing."""
    shard = shard_of(one)
    with world.moving:
        master, replica = world.cluster.roles(shard)
        world.handed_over[shard], began = replica.port, time.monotonic()
        while time.monotonic() < began + PATIENCE:  # the replica gives it up after 5 s, where the master is too slow
            with Redis(replica.port, 5) as redis:
                redis("CLUSTER", "FAILOVER")
            if wait(lambda: world.cluster.master(shard) is replica, 8):
                return f"shard {shard} handed over after {time.monotonic() - began:.1f} s"
    raise Failure(f"the replica of shard {shard} did not take over in order within {PATIENCE} s")


@fault("shards", "kill a replica")
def kill_replica(world, one):
    _, replica = world.cluster.roles(shard_of(one))
    replica.kill()
    time.sleep(one.lasts)
    replica.start()
    return f"shard {shard_of(one)}: started again, empty"


@fault("shards", "freeze a replica")
def freeze_replica(world, one):
    _, replica = world.cluster.roles(shard_of(one))
    frozen_for(replica.pid, one.lasts)
    return f"shard {shard_of(one)}: thawed"


@fault("shards", "freeze a master shortly")
def freeze_master_shortly(world, one):
    """For less than the node timeout: nobody takes over."""
    master, _ = world.cluster.roles(shard_of(one))
    frozen_for(master.pid, one.lasts)
    return f"shard {shard_of(one)}: thawed"


@fault("shards", "throttle a master")
def throttle_master(world, one):
    master, _ = world.cluster.roles(shard_of(one))
    return f"shard {shard_of(one)}: {throttled_for(master.pid, one)}"


@fault("shards", "flush a shard")
def flush_shard(world, one):
    with world.moving:
        master, _ = world.cluster.roles(shard_of(one))
        with Redis(master.port, 5) as redis:
            keys, slots = redis("DBSIZE"), world.cluster.own(master).slots()
            with world.loss(f"shards: {one.kind}", slots, None, 0):
                world.lose(slots)
                redis("FLUSHALL")
    return f"shard {shard_of(one)}: {keys} keys gone"


@fault("shards", "fill up a shard")
def fill_up_shard(world, one):
    return f"shard {shard_of(one)}: {filled_up(world, world.cluster.pair(shard_of(one)), one)}"


@fault("slots", "move there and back")
def move_slots(world, one):
    source = shard_of(one)
    target = (source + 1 + one.chance // MASTERS % (MASTERS - 1)) % MASTERS
    with world.moving:
        master, _ = world.cluster.roles(source)
        slots = sorted(world.cluster.own(master).slots())[:200 + one.chance % 800]
        there = world.cluster.move(slots, source, target, one.lasts / 2)
        back = world.cluster.move(slots, target, source, one.lasts / 2)
    return f"{len(slots)} slots with {there} keys from shard {source} to shard {target}, back with {back}"
