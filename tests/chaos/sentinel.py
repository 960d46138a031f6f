"""The faults of a master with replicas behind Sentinel. A server comes back only when another one is the master: one that came
back empty sooner would make its replicas empty, too."""
import time

from faults import fault, frozen_for, kill_ahead_of
from processes import freeze_tree, thaw_tree, wait_until
from resp import Redis
from services import Failure

PATIENCE = 60


def roles(world):
    """The master and its replicas, once all of them are linked."""
    if not wait_until(lambda: linked(world.master()), PATIENCE):
        raise Failure("the Redis servers did not find each other again")
    master = world.master()
    return master, [node for node in world.servers() if node is not master]


def linked(master):
    """Both replicas have what the master had when they asked for it."""
    return master is not None and master.ask("INFO replication").count("state=online") == 2


def wait_replaced(world, former):
    began = time.monotonic()

    if not wait_until(lambda: world.master() not in (None, former), PATIENCE):
        raise Failure(f"no replica took the place of the master at {former.address()} within {PATIENCE} s")
    return f"replaced after {time.monotonic() - began:.1f} s"


@fault("redis", "kill the master")
def kill_master(world, one):
    master, _ = roles(world)
    master.kill()
    became = wait_replaced(world, master)
    time.sleep(one.lasts)
    master.start()
    return f"{became}, a replica since"


@fault("redis", "freeze the master")
def freeze_master(world, one):
    master, _ = roles(world)
    freeze_tree(master.pid)
    try:
        became = wait_replaced(world, master)
        time.sleep(one.lasts)
    finally:
        thaw_tree(master.pid)
    return f"{became}, thawed as a former master"


@fault("redis", "fail over to a held-back replica")
def held_back(world, one):
    """What is written meanwhile is in the master alone."""
    master, replicas = roles(world)
    kill_ahead_of(replicas, master, one.lasts)
    became = wait_replaced(world, master)
    master.start()
    return f"{became} by one that lacked {one.lasts:.1f} s"


@fault("redis", "fail over")
def fail_over(world, one):
    master, _ = roles(world)
    with Redis(world.redis.nodes[3 + one.chance % 3].port, 5) as redis:
        redis("SENTINEL", "FAILOVER", "fcap")
    return wait_replaced(world, master)


@fault("redis", "kill a replica")
def kill_replica(world, one):
    _, replicas = roles(world)
    replica = replicas[one.chance % 2]
    replica.kill()
    time.sleep(one.lasts)
    replica.start()
    return "started again, empty"


@fault("redis", "freeze a replica")
def freeze_replica(world, one):
    _, replicas = roles(world)
    frozen_for(replicas[one.chance % 2].pid, one.lasts)
    return "thawed"


@fault("sentinels", "kill one")
def kill_sentinel(world, one):
    node = world.redis.nodes[3 + one.chance % 3]
    node.kill()
    time.sleep(one.lasts)
    node.start()
    return "started again"


@fault("sentinels", "freeze one")
def freeze_sentinel(world, one):
    frozen_for(world.redis.nodes[3 + one.chance % 3].pid, one.lasts)
    return "thawed"
