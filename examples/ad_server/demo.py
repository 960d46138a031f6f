#!/usr/bin/python3 -E
"""./dev demo: builds, starts what is not running yet of Redis, Kafka and PostgreSQL, serves and counts impressions live, then
compares what Kafka holds with what Redis counts. Ends all that it started.

Exit codes: 0 all is counted once, 1 something failed or is lost or counted twice, 2 wrong use."""
import argparse
import csv
import itertools
import json
import os
import secrets
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(f"{ROOT}/scripts")
from processes import contained, ignore_signals, read, wait_until
from servers import DEV_DIR, Servers, must
from services import Failure, say, write
from updater_server import Updater

DIR = f"{DEV_DIR}/demo"
SIGNING_KEYS = f"{DIR}/signing-keys.json"
SERVED, AUDITED = f"{DIR}/served.json", f"{DIR}/audited.json"  # said by the ad server; by Kafka and Redis
NUMBERS = {  # options of the ad server
    "seconds": (1, 86400, "how long to serve (20)"),
    "rate": (1, 1000000, "synthetic page views per second (4000)"),
    "users": (1, 100000000, "synthetic users (2000)"),
    "threads": (1, 256, "worker threads (2)"),
    "drain-seconds": (0, 3600, "how long to wait at the end for the updater to catch up (60)")}
SUMMARY = """
What Kafka holds, against what Redis counts
  produced   {produced} impressions
  counted    {counted} entries in {users} ledgers: {lost} lost, {double} counted twice
  over cap   {over_cap}{reasons}

What the ad server saw
  checks     {checks} in {seconds:.0f} s, p50 {check_p50_us} us, p99 {check_p99_us} us
  verdicts   {allowed} allowed, {capped} capped
  visible    a check sees an impression after {propagation_p50_ms} ms (p50), {propagation_p99_ms} ms (p99)"""


def number(low, high):
    """For argparse: a number in this range."""
    def parsed(text):
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f'"{text}" is not a number from {low} to {high}')
        return int(text)
    return parsed


def file(mode):
    """For argparse: the path of a file that can be opened."""
    opened = argparse.FileType(mode)
    return lambda path: opened(path).name


def parse():
    """Everything is checked before anything is built or started."""
    parser = argparse.ArgumentParser(prog="./dev demo", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    for name, (low, high, text) in NUMBERS.items():
        add(f"--{name}", dest=name, metavar="N", type=number(low, high), help=text)
    add("--log", metavar="FILE", type=file("r"), help="serve this impression log (CSV, plain or gzip) instead of synthetic "
        "traffic")
    add("--json", metavar="FILE", type=file("a"), help="also write the summary to this file")
    add("--redis", choices=["single", "sentinel"], default="single",
        help="one Redis, or a master with two replicas and three sentinels (single)")
    add("--failover", action="store_true", help="kill the master halfway (with --redis sentinel)")
    given = parser.parse_args()
    if given.failover and given.redis != "sentinel":
        parser.error("--failover needs --redis sentinel: nothing replaces a single Redis")
    return given


def build():
    """A developer's build, which has tests as well, serves too: nothing is built twice."""
    must(f"{ROOT}/scripts/packages", "build", "runtime")
    preset = "release" if os.path.exists(f"{ROOT}/build/release/build.ninja") else "demo"
    must(f"{ROOT}/scripts/build.sh", preset, "--target", "fcap-updater", "fcap-cli", "fcap-example-ad-server")
    return f"{ROOT}/build/{preset}"


def load_log_campaigns(path, conninfo):
    """The campaigns of a log, three times in 24 hours each, so that there is something to cap."""
    with subprocess.Popen(["zcat", "-f", path], stdout=subprocess.PIPE, text=True) as log:
        names = sorted({row[1] for row in itertools.islice(csv.reader(log.stdout), 1, None) if len(row) > 1})
    copy = "CREATE TEMP TABLE names (id text);\n\\copy names FROM pstdin\n" + "".join(f"{name}\n" for name in names) + """\\.
      INSERT INTO campaigns (id, cap_limit, window_seconds) SELECT id, 3, 86400 FROM names ON CONFLICT (id) DO NOTHING;"""
    subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", conninfo, "-f", "-"], input=copy, text=True, check=True)


def make_signing_keys():
    """The key that the ad server signs with. It stays, so that a later run can read the events of this one again."""
    if os.path.exists(SIGNING_KEYS):
        return
    key = {"id": "demo", "secret": secrets.token_hex(32), "from": "1970-01-01T00:00:00Z"}
    with open(os.open(SIGNING_KEYS, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
        json.dump({"keys": [key]}, file)


def settings(updater, servers):
    """The updater's."""
    return {"kafka": {"brokers": [servers.brokers], "topic": "impressions", "dead_letter_topic": "impressions.dead"},
            "redis": {"addresses": [servers.redis_address]}, "postgres": {"conninfo": servers.conninfo},
            "rules": {"snapshot_file": f"{updater.home}/rules.snapshot"},
            "signatures": {"key_file": SIGNING_KEYS}}


def where(servers):
    return ["--redis", servers.redis_address, "--postgres", servers.conninfo, "--brokers", servers.brokers, "--topic", "impressions"]


def audit(program, servers):
    """Compares the topic with the ledgers, for the users of this run. Whether nothing is lost or counted twice."""
    served = json.loads(read(SERVED))
    with open(AUDITED, "w", encoding="utf-8") as output:
        return subprocess.call(
            [program, "audit", "--json", *where(servers), "--user-prefix", served["user_prefix"],
             "--from-offsets", ",".join(map(str, served["begin_offsets"])),
             "--to-offsets", ",".join(map(str, served["end_offsets"]))], stdout=output) == 0


def summary(json_file):
    both = {**json.loads(read(SERVED)), **json.loads(read(AUDITED))}
    reasons = [f"{both[f'over_cap_{key}']} {text}" for key, text in (
        ("in_flight", "shown before the impression that capped them was counted"), ("fail_open", "shown fail-open"),
        ("other", "for another reason")) if both[f"over_cap_{key}"]]
    print(SUMMARY.format(**both, reasons=": " + ", ".join(reasons) if reasons else ""))
    if json_file:
        write(json_file, json.dumps(both, indent=2))


def fail_over(redis):
    """Kills the master, and starts it again as soon as another one has taken its place."""
    master = redis.master()
    say(f"killing the master, {master.address()}")
    began = time.monotonic()
    master.kill()
    if not wait_until(redis.master, 60):
        raise Failure("no replica became the master within 60 s")
    say(f"{redis.master().address()} is the master, {time.monotonic() - began:.1f} s later")
    master.start()


def serve(build_dir, servers, given):
    """0 if all is counted once. The ad server runs in the background, so that Ctrl-C ends it in an orderly way."""
    options = [f"--{name}={value}" for name, value in vars(given).items() if value is not None and name in (*NUMBERS, "log")]
    program = f"{build_dir}/examples/ad_server/fcap-example-ad-server"
    ad_server = subprocess.Popen([program, *where(servers), "--json", SERVED, "--signing-keys", SIGNING_KEYS,
                                  *options], stdin=subprocess.DEVNULL)
    try:
        if given.failover:
            try:
                ad_server.wait((given.seconds or 20) / 2)
            except subprocess.TimeoutExpired:
                fail_over(servers.redis)
        code = ad_server.wait()
    finally:
        ad_server.terminate()
        ad_server.wait(30)  # the servers must not go before it
    if not read(SERVED):
        raise Failure("the ad server did not finish (see above)", code or 1)
    return code if audit(f"{build_dir}/cli/fcap", servers) else 1


def main(given):
    began = time.monotonic()
    build_dir = build()
    os.makedirs(DIR, exist_ok=True)
    write(SERVED, "")
    make_signing_keys()
    servers = Servers(given.redis)
    updater = Updater(DIR, f"{build_dir}/updater/fcap-updater")
    try:
        servers.start()
        say(servers.text())
        must(f"{ROOT}/sql/migrate", servers.conninfo, "--sample")
        updater.settings = settings(updater, servers)
        updater.start()
        say(f"updater   http://{updater.address()}/metrics  log {updater.log}")
        if given.log:
            load_log_campaigns(given.log, servers.conninfo)
        say(f"serving, {time.monotonic() - began:.0f} s after the start")
        code = serve(build_dir, servers, given)
        if not read(AUDITED):
            raise Failure("the audit did not finish (see above)")
        summary(given.json)
        return code
    except Failure as failure:
        say(f"error: {failure}")
        return failure.code
    finally:
        ignore_signals()
        updater.stop()  # before the servers, since it drains into Redis
        servers.stop_started()


if __name__ == "__main__":
    options = parse()
    sys.exit(contained(lambda: main(options)))
