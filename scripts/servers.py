#!/usr/bin/python3 -E
"""scripts/servers.py up|down|status [--redis single|sentinel|cluster]: the developer's own Redis, Kafka and PostgreSQL, in .dev/."""
import argparse
import os
import subprocess
import sys

from processes import exit_on_signals
from services import ROOT, Failure, Group, make, say

REDIS = {"single": "redis", "sentinel": "redis-sentinel", "cluster": "redis-cluster"}
DEV_DIR = os.environ.get("FCAP_DEV_DIR", f"{ROOT}/.dev")
TOPICS = {"impressions": 4, "impressions.dead": 1}


def server(kind, port_setting, port):
    made = make(kind, DEV_DIR, int(os.environ.get(port_setting, port)))
    made.port_setting = port_setting
    return made


def must(*command):
    if code := subprocess.call(command, stdout=sys.stderr):
        sys.exit(code)


class Servers(Group):
    """All three at once."""

    def __init__(self, redis="single"):
        self.redis = server(REDIS[redis], "FCAP_REDIS_PORT", 16379)  # and more ports for the others of a group
        self.kafka = server("kafka", "FCAP_KAFKA_PORT", 19092)  # and the next port, for Kafka's controller
        self.postgres = server("postgres", "FCAP_PG_PORT", 15432)
        self.nodes = self.members = [self.redis, self.kafka, self.postgres]
        self.started = []

    def form(self):
        self.redis_address, self.brokers, self.conninfo = (one.address() for one in self.nodes)
        for topic, partitions in TOPICS.items():
            self.kafka.create_topic(topic, partitions)
        must(f"{ROOT}/sql/migrate", self.conninfo)

    def text(self):
        return (f"redis     {self.redis_address}\nkafka     {self.brokers}  topics {', '.join(TOPICS)}\n"
                f"postgres  {self.conninfo}")


def main(action, redis):
    exit_on_signals()
    if action != "up":
        redis = next((name for name in REDIS if Servers(name).redis.state() != "stopped"), redis)
    servers = Servers(redis)
    if action == "down":
        servers.stop()
    elif action == "status":
        for one in servers.nodes:
            print(f"{one.kind:<14} {one.state():<14} port {one.port or '':<6} {one.log}")
        return 0 if servers.state() == "running" else 3
    else:
        servers.start()
        print(f"{servers.text()}\n\nexport FCAP_REDIS={servers.redis_address} FCAP_BROKERS={servers.brokers} "
              f"FCAP_POSTGRES='{servers.conninfo}'")
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["up", "down", "status"])
    parser.add_argument("--redis", choices=REDIS, default="single",
                        help="up: one Redis (the default), a master with two replicas and three sentinels, or a cluster of three "
                        "masters with a replica each")
    try:
        sys.exit(main(**vars(parser.parse_args())))
    except Failure as failure:
        say(f"error: {failure}")
        sys.exit(failure.code)
