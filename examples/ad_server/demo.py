#!/usr/bin/python3 -E
"""./dev demo: builds, starts what is not running yet of Redis, Kafka and PostgreSQL, serves and counts impressions live, then
compares what Kafka holds with what Redis counts. Ends all that it started.

With --servers or --tier, people in sessions ask several ad servers on one Redis, as bench/over_delivery simulates them but 30
times as fast, and each tier's impressions over the cap are compared.

Exit codes: 0 all is counted once, 1 something failed or is lost or counted twice, or a cap was exceeded with --tier reserve,
2 wrong use."""
import argparse
import contextlib
import csv
import itertools
import json
import os
import re
import secrets
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(f"{ROOT}/scripts")
from processes import contained, ignore_signals, read, wait_until
from servers import DEV_DIR, Servers, must
from services import Failure, say, write
from updater_server import Shown, Updater

DIR = f"{DEV_DIR}/demo"
SIGNING_KEYS = f"{DIR}/signing-keys.json"
SERVED, AUDITED = f"{DIR}/served.json", f"{DIR}/audited.json"  # said by the ad server; by Kafka and Redis
TIERS = ["nothing", "local", "shared", "page", "reserve"]
PEOPLE_CAMPAIGNS = [f"demo-people-{number}" for number in range(1, 6)]
START_AFTER_S = 8  # by then all ad servers are ready
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
  over cap   {over_cap}, {over_cap_percent:.2f} %{reasons}

What the ad server saw
  checks     {checks} in {seconds:.0f} s, p50 {check_p50_us} us, p99 {check_p99_us} us
  verdicts   {allowed} allowed, {capped} capped
  visible    a check sees an impression after {propagation_p50_ms} ms (p50), {propagation_p99_ms} ms (p99)"""


PEOPLE_SUMMARY = """
Impressions over the cap, by Kafka and Redis: {servers} ad servers, {users} people; two slots per page, {apart}
             shown   over cap         %   fail-open   lost   counted twice
"""
PEOPLE_ROW = "  {tier:8} {shown:8,} {over_cap:10,} {over_cap_percent:9.3f} {shown_fail_open:11} {lost:6} {double:15}"


def number(low, high):
    """For argparse: a number in this range."""
    def parsed(text):
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f'"{text}" is not a number from {low} to {high}')
        return int(text)
    return parsed


def tiers(text):
    """For argparse: a list of them."""
    if unknown := set(text.split(",")) - set(TIERS):
        raise argparse.ArgumentTypeError(f'"{min(unknown)}" must be one of {", ".join(TIERS)}')
    return text.split(",")


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
    add("--redis", choices=["single", "sentinel", "cluster"], default="single",
        help="one Redis, a master with two replicas and three sentinels, or a cluster of three masters with a replica each (single)")
    add("--failover", action="store_true", help="kill the master, in a cluster that of one shard, halfway (not with --redis single)")
    add("--servers", metavar="N", type=number(1, 16), help="so many ad servers, each slot of a user at any of them (4)")
    add("--tier", metavar="T[,T…]", type=tiers, help=f"how much an impression counts before it has come back through Kafka: "
        f"{', '.join(TIERS)}; one after the other (all)")
    add("--slots-apart", metavar="MS", type=number(0, 1000), help="between the two slots of a page, with --servers or --tier (5)")
    given = parser.parse_args()
    given.people = any(option is not None for option in (given.servers, given.tier, given.slots_apart))
    if given.people and (given.rate or given.log):
        parser.error("--servers, --tier and --slots-apart bring traffic of their own: leave out --rate and --log")
    if given.people:
        given.servers, given.tier, given.users = given.servers or 4, given.tier or TIERS, given.users or 2000
        given.slots_apart = 5 if given.slots_apart is None else given.slots_apart
    if given.failover and given.redis == "single":
        parser.error("--failover needs --redis sentinel or cluster: nothing replaces a single Redis")
    return given


def build():
    """A developer's build, which has tests as well, serves too: nothing is built twice."""
    must(f"{ROOT}/scripts/packages", "build", "runtime")
    preset = "release" if os.path.exists(f"{ROOT}/build/release/build.ninja") else "demo"
    must(f"{ROOT}/scripts/build.sh", preset, "--target", "fcap-updater", "fcap-cli", "fcap-example-ad-server")
    return f"{ROOT}/build/{preset}"


def load_log_campaigns(path, conninfo):
    """The campaigns of a log, so that there is something to cap."""
    with subprocess.Popen(["zcat", "-f", path], stdout=subprocess.PIPE, text=True) as log:
        names = sorted({row[1] for row in itertools.islice(csv.reader(log.stdout), 1, None) if len(row) > 1})
    load_campaigns(names, conninfo)


def load_campaigns(names, conninfo):
    """Three times in 24 hours each."""
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


def over_cap(found):
    """With what part of the impressions shown it is."""
    return {**found, "over_cap_percent": 100 * found["over_cap"] / max(1, found["shown"])}


def summary(json_file):
    both = over_cap({**json.loads(read(SERVED)), **json.loads(read(AUDITED))})
    reasons = [f"{both[f'over_cap_{key}']} {text}" for key, text in (
        ("in_flight", "shown before the impression that capped them was counted"), ("fail_open", "shown fail-open"),
        ("other", "for another reason")) if both[f"over_cap_{key}"]]
    print(SUMMARY.format(**both, reasons=": " + ", ".join(reasons) if reasons else ""))
    if json_file:
        write(json_file, json.dumps(both, indent=2))


def people_summary(found, given):
    """`found`: by tier."""
    apart = f"{given.slots_apart} ms apart" if given.slots_apart else "at once"
    print(PEOPLE_SUMMARY.format(servers=given.servers, users=given.users, apart=apart)
          + "\n".join(PEOPLE_ROW.format(tier=tier, **numbers) for tier, numbers in found.items()))
    if given.json:
        write(given.json, json.dumps({"servers": given.servers, "users": given.users, "slots_apart_ms": given.slots_apart,
                                      "tiers": found}, indent=2))


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


@contextlib.contextmanager
def running(commands):
    """Ad servers in the background, so that Ctrl-C ends them in an orderly way. The first speaks here, the others to logs."""
    started = []
    try:
        for number, command in enumerate(commands):
            with open(f"{DIR}/ad-server-{number}.log", "w", encoding="utf-8") as log:
                started.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log if number else None))
        yield started
    finally:
        for one in started:
            one.terminate()
        for one in started:
            one.wait(30)  # the servers must not go before it


def serve_with(build_dir, servers, updater, given, *options_of_each):
    """Runs an ad server with each of these lists of options, to the end. The exit code; an audit has said the rest."""
    program = f"{build_dir}/examples/ad_server/fcap-example-ad-server"
    files = [SERVED.replace(".json", f"-{number}.json") for number in range(len(options_of_each))]
    for path in (SERVED, AUDITED, *files):
        write(path, "")
    with running([[program, *where(servers), "--json", path, "--signing-keys", SIGNING_KEYS, *options]
                  for path, options in zip(files, options_of_each)]) as ad_servers:
        if given.failover:
            try:
                ad_servers[0].wait((given.seconds or 20) / 2 + (START_AFTER_S if given.people else 0))
            except subprocess.TimeoutExpired:
                fail_over(servers.redis)
        code = max(one.wait() for one in ad_servers)
    if not all(map(read, files)):
        raise Failure("an ad server did not finish (see above)", code or 1)
    write(SERVED, json.dumps(together([json.loads(read(path)) for path in files])))
    # What Redis has lost, or a shard has missed while it was away, is read again beside what follows: the group's offsets do
    # not show when that has ended.
    if not wait_until(lambda: Shown(updater.address()).value("gap_offsets") == 0, 60):
        raise Failure(f"the updater has not filled its gaps within 60 s, see {updater.log}")
    return code if audit(f"{build_dir}/cli/fcap", servers) else 1


def together(served):
    """What several ad servers say, in one: sums; of offsets and times the outermost, of percentiles the worst."""
    def one(key, values):
        if key == "begin_offsets":
            return list(map(min, *values, values[0]))
        if key == "end_offsets":
            return list(map(max, *values, values[0]))
        if key == "seconds" or re.search(r"_p\d", key):
            return max(values)
        return all(values) if key == "drained" else sum(values) if isinstance(values[0], int) else values[0]
    return {key: one(key, [each[key] for each in served]) for key in served[0]}


def options_for(given, *names):
    return [f"--{name}={vars(given)[name]}" for name in names if vars(given)[name] is not None]


def reserving_is_allowed(redis):
    """By what the updater has recorded. Checkers read it when they connect."""
    return any('"write_format"' in server.ask("GET fcap:!config") for server in getattr(redis, "nodes", [redis]))


def serve_people(build_dir, servers, updater, given):
    """Each tier after the other, to people of its own."""
    found, code = {}, 0
    load_campaigns(PEOPLE_CAMPAIGNS, servers.conninfo)
    if not wait_until(lambda: reserving_is_allowed(servers.redis), 60):
        raise Failure("the updater has not recorded its configuration in Redis within 60 s")
    for tier in given.tier:
        say(f"{given.servers} ad servers, tier {tier}")
        start_at_ms = round(1000 * (time.time() + START_AFTER_S))
        common = [*options_for(given, *NUMBERS), "--tier", tier, f"--servers={given.servers}", f"--start-at={start_at_ms}",
                  f"--slots-apart={given.slots_apart}", f"--campaigns={','.join(PEOPLE_CAMPAIGNS)}", "--probe-campaign", "",
                  # So that, on a busy machine, none is shown unread: what is compared is what the tiers cannot see.
                  "--deadline-ms=250"]
        code = max(code, serve_with(build_dir, servers, updater, given,
                                    *([*common, f"--server={number}"] for number in range(given.servers))))
        if not read(AUDITED):
            raise Failure("the audit did not finish (see above)")
        found[tier] = over_cap({**json.loads(read(SERVED)), **json.loads(read(AUDITED))})
    people_summary(found, given)
    if not given.failover and found.get("reserve", {}).get("over_cap"):
        raise Failure("a cap was exceeded although every impression was reserved")
    return code


def main(given):
    began = time.monotonic()
    build_dir = build()
    os.makedirs(DIR, exist_ok=True)
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
        if given.people:
            return serve_people(build_dir, servers, updater, given)
        code = serve_with(build_dir, servers, updater, given, options_for(given, *NUMBERS, "log"))
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
