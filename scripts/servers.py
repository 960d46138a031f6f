#!/usr/bin/python3 -E
"""scripts/servers.py up|down|status: the developer's own Redis, Kafka and PostgreSQL, kept in .dev/."""
import argparse
import os
import subprocess
import sys

from processes import exit_on_signals
from services import ROOT

DEV_DIR = os.environ.get("FCAP_DEV_DIR", f"{ROOT}/.dev")
REDIS_PORT = os.environ.get("FCAP_REDIS_PORT", "16379")
KAFKA_PORT = os.environ.get("FCAP_KAFKA_PORT", "19092")  # and the next one, for Kafka's controller
PG_PORT = os.environ.get("FCAP_PG_PORT", "15432")
CONNINFO = f"host=127.0.0.1 port={PG_PORT} user=postgres dbname=fcap"
TEXT = f"""redis     127.0.0.1:{REDIS_PORT}
kafka     127.0.0.1:{KAFKA_PORT}  topics impressions, impressions.dead
postgres  {CONNINFO}"""
KINDS = {"redis": ("--port", REDIS_PORT, "--port-env", "FCAP_REDIS_PORT"),
         "postgres": ("--port", PG_PORT, "--port-env", "FCAP_PG_PORT", "--database", "fcap"),
         "kafka": ("--port", KAFKA_PORT, "--port-env", "FCAP_KAFKA_PORT")}


def service(kind, *arguments):
    return subprocess.Popen([f"{ROOT}/scripts/service", kind, *arguments, "--dir", DEV_DIR], stdout=subprocess.PIPE, text=True)


def must(*command):
    if code := subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        sys.exit(code)


class Servers:
    """All three at once. What up() has started ends again when the rest does not start, or somebody interrupts it; servers
    that were running before stay."""

    def __init__(self):
        self.started = []

    def up(self):
        os.makedirs(DEV_DIR, exist_ok=True)
        starts = {kind: service(kind, "start", *options) for kind, options in KINDS.items()}
        try:
            try:
                for start in starts.values():
                    start.wait()
            finally:
                # Each start says only at its end what it has done, also when this program is interrupted.
                self.started = [kind for kind, start in starts.items() if "started=yes" in start.communicate()[0]]
            if any(start.returncode != 0 for start in starts.values()):
                sys.exit(1)
            for topic, partitions in (("impressions", "4"), ("impressions.dead", "1")):
                must(f"{ROOT}/scripts/service", "kafka", "create-topic", topic, partitions, "--dir", DEV_DIR)
            must(f"{ROOT}/scripts/migrate", CONNINFO)
        except SystemExit:
            self.down()
            raise

    def down(self, kinds=None):
        for stop in [service(kind, "stop") for kind in kinds or self.started]:
            stop.wait()
        self.started = []


def status():
    """Exit code 3, as in scripts/service, when one of them does not run."""
    code = 0
    for kind in KINDS:
        said = dict(line.split("=", 1) for line in service(kind, "status").communicate()[0].splitlines())
        print(f"{kind:<9} {said.get('state', ''):<14} port {said.get('port', ''):<6} {said.get('log', '')}".rstrip())
        code = code if said.get("state") == "running" else 3
    return code


def up():
    exit_on_signals()
    Servers().up()
    print(TEXT)
    print(f"\nexport FCAP_REDIS=127.0.0.1:{REDIS_PORT} FCAP_BROKERS=127.0.0.1:{KAFKA_PORT} FCAP_POSTGRES='{CONNINFO}'")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["up", "down", "status"])
    sys.exit({"up": up, "down": lambda: Servers().down(KINDS), "status": status}[parser.parse_args().action]())
