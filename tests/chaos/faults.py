"""What the faults of a schedule do. Each is a function of the world and the fault; it returns when the fault is over, and tells
what became of it."""
import contextlib
import os
import re
import shutil
import time

from events import mixed
from kafka_server import KafkaException
from processes import freeze_tree, thaw_tree, wait_until
from resp import Redis, RedisError
from services import Failure
from world import DEAD_LETTERS, PARTITIONS, READER, RESERVER, RULES, TOPIC, WRITER

FAULTS = {}
HARMLESS = ("fill up", "fill up a shard", "freeze a replica", "kill a replica")
HARMLESS_ALONE = ("freeze", "freeze for long", "throttle")  # where there is no replica
ALIKE = dict.fromkeys(("updater 1", "updater 2", "another group"), "updater") | {"another shard": "shards"}
REDIS_LANES = ("redis", "shards", "another shard")
REPLICATION = 5  # seconds of writes that a failover may take with it, before and after: replicas lag, and clients stay for a while
# What faults of Redis may take of what it was told: everything (None), or the last seconds before they begin; and until how many
# seconds after their end.
TAKEN = {"kill": (None, 0), "flush all": (None, 0), "restart with an old snapshot": (0, 0)} | dict.fromkeys(
    ("kill the master", "fail over to a held-back replica", "freeze the master", "fail over"), (REPLICATION, REPLICATION))


def fault(lane, *kinds):
    def register(function):
        FAULTS.update({(lane, kind): function for kind in kinds})
        return function
    return register


def may_take(world, one):
    """Whether Redis may lack something afterwards: a master that cannot be asked may be replaced by one that lags."""
    return one.lane in REDIS_LANES and one.kind not in HARMLESS and not (one.kind in HARMLESS_ALONE and not world.replicated())


def inflict(world, one):
    takes = may_take(world, one)
    if takes:
        with world.losses:
            world.disturbing += 1
    loss = one.lane == "redis" and one.kind in TAKEN and world.begin_loss(f"redis: {one.kind}", TAKEN[one.kind][0])
    try:
        return inflict_on(world, one)
    except RedisError as error:
        return f"nothing: {error}"
    finally:
        if loss:
            loss.end = 1000 * (time.time() + TAKEN[one.kind][1])
        if takes:
            with world.losses:
                world.disturbing, world.disturbed_at = world.disturbing - 1, time.time()


def inflict_on(world, one):
    lane = "link" if one.lane.startswith("link") else ALIKE.get(one.lane, one.lane)
    return FAULTS[lane, one.kind](world, one)


def frozen_for(pid, seconds):
    freeze_tree(pid)
    time.sleep(seconds)
    thaw_tree(pid)


def throttled_for(pid, one):
    """Four fifths of the time it does not run."""
    end, pauses = time.monotonic() + one.lasts, 0
    while time.monotonic() < end:
        pauses += 1
        frozen_for(pid, 0.02 + mixed(one.chance + pauses) % 180 / 1000)
        time.sleep(0.03)
    return f"{pauses} pauses"


# Updaters.

def updater_of(world, one):
    return world.another_group if one.lane == "another group" else world.updaters[int(one.lane[-1]) - 1]


@fault("updater", "kill")
def kill_updater(world, one):
    updater = updater_of(world, one)
    updater.kill()
    time.sleep(one.lasts)
    updater.start()
    return "started again"


@fault("updater", "stop")
def stop_updater(world, one):
    updater = updater_of(world, one)
    code = updater.stop()
    time.sleep(one.lasts)
    updater.start()
    return f"ended with {code}, started again"


@fault("updater", "freeze past the session")
def freeze_updater(world, one):
    updater = updater_of(world, one)
    updater.freeze_for(one.lasts)
    return f"thawed after {one.lasts:.0f} s, which is longer than its session"


@fault("updater 3", "join", "join with a clock ahead", "join with a clock behind")
def join(world, one):
    updater, clock = updater_of(world, one), one.kind.rpartition("a clock ")[2]
    updater.start(clock if clock != "join" else None)
    end, most = time.monotonic() + one.lasts, 0
    while time.monotonic() < end:
        time.sleep(0.3)
        if shown := updater.shown():
            most = max(most, int(shown.value("assigned_partitions") or 0))
    return f"had up to {most} partitions, ended with {updater.stop()}"


# Redis.

@fault("redis", "kill")
def kill_redis(world, one):
    world.lose()
    world.redis.kill()
    time.sleep(one.lasts)
    with contextlib.suppress(FileNotFoundError):
        os.remove(f"{world.redis.home}/data/dump.rdb")
    world.redis.start()
    return "started again, empty"


def kill_ahead_of(replicas, master, seconds):
    """Kills a master whose replicas have stood still for so long: they lack what it has written meanwhile."""
    for node in replicas:
        freeze_tree(node.pid)
    try:
        with Redis(master.port, 5) as redis:
            redis("CLIENT", "KILL", "TYPE", "replica")
        time.sleep(seconds)
        master.kill()
    finally:
        for node in replicas:
            thaw_tree(node.pid)


@fault("redis", "restart with an old snapshot")
def old_snapshot(world, one):
    data = f"{world.redis.home}/data"
    world.ask_master("SAVE")
    shutil.copy(f"{data}/dump.rdb", f"{data}/old.rdb")
    time.sleep(one.lasts)
    world.lose()
    world.redis.kill()
    shutil.copy(f"{data}/old.rdb", f"{data}/dump.rdb")
    world.redis.start()
    os.remove(f"{data}/dump.rdb")
    return f"{world.ask_master('DBSIZE')} keys, {one.lasts:.1f} s old"


@fault("redis", "freeze", "freeze for long")
def freeze_redis(world, one):
    with world.outage("Redis has been frozen", True):
        frozen_for(world.redis.pid, one.lasts)
    return "thawed"


@fault("redis", "throttle")
def throttle_redis(world, one):
    master = world.master()
    return throttled_for(master.pid, one) if master else "nothing: there is no master"


@fault("redis", "flush all")
def flush_all(world, _):
    keys = world.ask_master("DBSIZE")
    world.lose()
    world.ask_master("FLUSHALL")
    return f"{keys} keys gone"


@fault("redis", "fill up")
def fill_up(world, one):
    return filled_up(world, world.servers(), one)


def filled_up(world, servers, one):
    before = {server: refused_for_memory(server) for server in servers}
    told = world.tell(servers, "CONFIG", "SET", "maxmemory", "1mb")
    time.sleep(one.lasts)
    # A server that has started again since counts from 0.
    refused = sum(max(0, refused_for_memory(server) - count) for server, count in before.items())
    wait_until(lambda: world.tell(servers, "CONFIG", "SET", "maxmemory", "0") >= told, 30)
    return f"{refused} writes were refused, until there was room again" if refused else "nothing: no write was refused"


def refused_for_memory(server):
    found = re.search(r"errorstat_OOM:count=(\d+)", server.ask("INFO errorstats"))
    return int(found[1]) if found else 0


def reached(servers):
    return f"at {servers} {'server' if servers == 1 else 'servers'}" if servers else "nothing: no server answered"


@fault("redis account", "revoke appending", "revoke appending for long", "revoke scripts", "revoke reading")
def revoke(world, one):
    what = one.kind.split()[1]
    rights = {"appending": ["-append"], "scripts": ["-evalsha", "-eval"], "reading": ["-get", "-mget"]}[what]
    for account in (RESERVER, READER) if what == "reading" else (RESERVER,):
        world.tell_all("ACL", "SETUSER", account, *rights)
    told = world.tell_all("ACL", "SETUSER", WRITER, *rights)
    lasting = what == "appending" and told > 0
    with world.outage("the right to append has been revoked", True) if lasting else contextlib.nullcontext():
        end = time.monotonic() + one.lasts
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 1))
            world.tell_all("ACL", "SETUSER", WRITER, *rights)  # a server that starts again has the accounts of its file
    wait_until(lambda: world.tell_all("ACL", "LOAD") >= told, 30)
    return f"{' '.join(rights)}: {reached(told)}, given back"


@fault("redis account", "flush scripts")
def flush_scripts(world, _):
    return reached(world.tell_all("SCRIPT", "FLUSH"))


@fault("redis account", "cut clients")
def cut_clients(world, _):
    return reached(world.tell_all("CLIENT", "KILL", "TYPE", "normal"))


# Kafka.

@fault("broker", "kill", "kill for long")
def kill_broker(world, one):
    world.kafka.kill()
    with world.outage("the broker has been away", False):
        time.sleep(one.lasts)
    began = time.monotonic()
    world.kafka.start()
    return f"started again within {time.monotonic() - began:.1f} s"


@fault("broker", "freeze", "freeze for long")
def freeze_broker(world, one):
    with world.outage("the broker has been frozen", False):
        frozen_for(world.kafka.pid, one.lasts)
    return "thawed"


@fault("broker", "throttle")
def throttle_broker(world, one):
    return throttled_for(world.kafka.pid, one)


@fault("dead letters", "delete the topic")
def delete_dead_letters(world, one):
    world.traffic.dead_letters_deleted_at = float("inf")
    try:
        deleted = recreate(world, DEAD_LETTERS, 1, one.lasts)
    finally:
        world.traffic.dead_letters_deleted_at = 1000 * time.time()
    return deleted


def recreate(world, topic, partitions, away=0.0):
    became = "deleted, made again"
    try:
        admin = world.kafka.admin()  # which must outlive its request
        admin.delete_topics([topic], operation_timeout=30)[topic].result(60)
    except (KafkaException, TimeoutError) as error:
        became = f"the broker did not confirm that it was deleted: {error!r}"
    time.sleep(away)
    if not wait_until(lambda: created(world, topic, partitions), 180):
        raise Failure(f"topic {topic} could not be made again")
    return became


def created(world, topic, partitions):
    """False while the broker is away, or still deletes the former one."""
    with contextlib.suppress(Failure):
        return world.kafka.create_topic(topic, partitions) or True
    time.sleep(0.5)
    return False


def recreate_events(world):
    """Under running updaters, one of which is killed meanwhile; traffic must be paused."""
    world.updaters[0].kill()
    try:
        became = recreate(world, TOPIC, PARTITIONS)
    finally:
        world.updaters[0].start()
    return f"{became}, with updater 1 killed before and started again after it"


# PostgreSQL and the rules in it. Whatever happens to them, the last good rules stay in force.

@fault("rules", "kill")
def kill_postgres(world, one):
    world.postgres.kill()
    time.sleep(one.lasts)
    world.postgres.start()
    return "started again"


@fault("rules", "freeze")
def freeze_postgres(world, one):
    world.postgres.freeze()
    time.sleep(one.lasts)
    world.postgres.thaw()
    return "thawed"


@fault("rules", "cut sessions")
def cut_sessions(world, _):
    cut_off = world.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                        "WHERE datname = 'fcap' AND pid <> pg_backend_pid()")
    return f"{cut_off} sessions"


@fault("rules", "delete all")
def delete_rules(world, one):
    world.sql("DELETE FROM cap_rules")
    time.sleep(one.lasts)
    world.sql(RULES)
    return "deleted, written again"


@fault("rules", "add a bad one")
def add_bad_rule(world, one):
    world.sql("INSERT INTO cap_rules (id, scope, cap_limit, window_kind, window_seconds) "
              "VALUES ('bad', 'user', 0, 'sliding', 8640000)")
    time.sleep(one.lasts)
    world.sql("DELETE FROM cap_rules WHERE id = 'bad'")
    return "longer than the retention; removed again"


# Connections.

def link_of(world, one):
    return world.broker_link if one.lane.endswith("broker") else world.redis_link


@fault("link", "cut")
def cut(world, one):
    return f"{link_of(world, one).cut()} connections"


@fault("link", "delay", "silence", "silence for long", "drop")
def disturb(world, one):
    link, kind = link_of(world, one), one.kind.split()[0]
    link.set(**{"delay": {"delay": 0.2}, "silence": {"silent": True}, "drop": {"dropping": 0.02}}[kind])
    silent = world.outage(f"the {one.lane} has been silent", link is world.redis_link)
    with silent if kind == "silence" else contextlib.nullcontext():
        time.sleep(one.lasts)
    link.set()
    return {"delay": "each piece by up to 200 ms", "silence": "nothing passed", "drop": "at each piece with 2 %"}[kind]
