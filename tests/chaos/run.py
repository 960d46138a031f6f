#!/usr/bin/python3 -E
"""./dev chaos: real servers, updaters and clients, and faults from a seed. One seed gives one schedule. Each round ends with
everything well again and counted, and is judged as a whole; the checks and what the updaters say of themselves are judged all
the time. What is judged: docs/reliability.md.

Exit codes: 0 everything held, 1 something did not, 2 wrong use."""
import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts"))
from processes import contained, wait_until
from services import ROOT, Failure

import schedule
from report import Report


def parse():
    parser = argparse.ArgumentParser(prog="./dev chaos", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--minutes", metavar="N", type=int, default=2, help="rounds of a minute, to which some seconds of judging are added (2)")
    add("--seed", metavar="S", type=int, help="of the schedule and the messages (a random one, which is printed)")
    add("--redis", choices=schedule.LANES, default="single", help="one Redis, a master with two replicas and three sentinels, "
        "or a cluster of three masters with a replica each (single)")
    add("--rate", metavar="N", type=int, default=2000, help="messages per second (2000); more are of more users")
    add("--regions", action="store_true", help="instead: two regions that mirror each other's events, apart for some seconds, with "
        "faults in a fixed order (docs/regions.md)")
    add("--cut", metavar="SECONDS", type=int, default=8, help="with --regions: how long they are apart (8)")
    add("--json", metavar="FILE", help="also write the result to this file")
    add("--schedule-only", action="store_true", help="print the schedule, and run nothing")
    given = parser.parse_args()
    if given.minutes < 1 or given.cut < 1 or not 50 <= given.rate <= 100_000:
        parser.error("--minutes and --cut are at least 1, --rate from 50 to 100000")
    given.seed = random.randrange(1_000_000) if given.seed is None else given.seed
    return given


class Run:
    def __init__(self, given, world, traffic, report):
        from checking import Checks
        from reserving import Reserves
        from watch import Watch
        self.given, self.world, self.traffic, self.report = given, world, traffic, report
        self.faults = self.kills = self.without_effect = self.entries = self.users = self.trimmed = 0
        self.redis_mb = self.checks_mb = 0.0
        if not wait_until(world.configured, 60):
            raise Failure("the updaters have not written how things are set")
        self.checks = Checks(world, traffic, report.problem)
        self.reserves = Reserves(world, traffic, report.problem, given.seed)
        self.clients = [self.checks.client, *self.reserves.clients]
        self.watch = Watch(world, traffic, report.problem)

    def counted(self):
        from judge import wait_counted
        self.traffic.pause()
        paused_at = 1000 * time.time()
        if missing := wait_counted(self.world):
            raise Failure(f"not everything is counted: {missing}")
        self.world.claims.append((1000 * time.time(), paused_at))

    def lane(self, faults, began):
        from faults import inflict
        for fault in faults:
            time.sleep(max(0, began + fault.at - time.monotonic()))
            self.report.begin_fault(fault)
            at = time.monotonic()
            try:
                became = inflict(self.world, fault)
                if "nothing:" in became:
                    self.without_effect += 1
                else:
                    self.faults, self.kills = self.faults + 1, self.kills + schedule.is_kill(fault)
            except Exception as error:  # a lane that ends silently would make a quiet round look good
                became = f"failed: {error}"
                self.report.problem(f"{fault.lane}: {fault.kind}: {error!r}")
            self.report.end_fault(fault, became, time.monotonic() - at)

    def round(self, one):
        from faults import recreate_events
        self.report.round = one.number
        self.report.say(f"round {one.number}")
        if schedule.has_another_group(one.number):
            self.world.begin_another_group()
        if one.recreated:
            self.checks.asking.clear()
            self.report.say(f"the topic is {recreate_events(self.world)}")
            self.traffic.begin_epoch()
            self.reserves.begin_epoch()
            self.counted()
        self.checks.asking.set()
        self.traffic.flow()
        self.reserves.flow()
        began = time.monotonic()
        lanes = {fault.lane for fault in one.faults}
        threads = [threading.Thread(target=self.lane, daemon=True,
                                    args=([fault for fault in one.faults if fault.lane == lane], began)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        time.sleep(max(0, began + schedule.ROUND_SECONDS - time.monotonic()))
        self.judge()
        if schedule.has_another_group(one.number):
            self.world.end_another_group()

    def judge(self):
        from judge import judge
        self.world.heal()
        began = time.monotonic()
        # A hard call is incomplete while a gap is open, which closes slowly beside live events.
        self.traffic.pause()
        self.reserves.settle()
        self.counted()
        waited = time.monotonic() - began
        self.world.fill_another_group()
        self.checks.must_be_complete()
        verdict = judge(self.world, self.traffic)
        self.reserves.judge(verdict, verdict.hard)
        for problem in verdict.problems():
            self.report.problem(problem)
        info = [node.ask("INFO memory") for node in self.world.masters()]
        self.redis_mb = max(self.redis_mb, sum(int(one.partition("used_memory:")[2].split()[0]) for one in info) / 1e6)
        self.checks_mb = max(self.checks_mb, *(client.resident_mb() for client in self.clients))
        if self.redis_mb > 40 + 4 * verdict.record_bytes / 1e6 or self.checks_mb > 64:
            self.report.problem(f"Redis takes {self.redis_mb:.0f} MB for {verdict.record_bytes / 1e6:.0f} MB of records, the "
                                f"client {self.checks_mb:.0f} MB")
        self.entries += verdict.entries
        self.users, self.trimmed = self.users + verdict.users, self.trimmed + verdict.trimmed
        self.report.say(f"judged: everything counted after {waited:.1f} s, {verdict.entries} entries of {verdict.users} users, "
                        f"{len(verdict.wrong)} kinds of difference")

    def end(self):
        self.watch.end()
        self.checks.stop()
        self.reserves.stop()
        self.traffic.end()
        for client in self.clients:
            for problem in client.too_late():
                self.report.problem(problem)
        judged = {"checks": self.checks.reasons["passed"], "claims": self.watch.claims, "hard calls": self.reserves.outcomes["done"],
                  "checks of hard caps": self.reserves.checks, "entries": self.entries}
        for what, count in judged.items():
            if count == 0:
                self.report.problem(f"no {what} could be judged in the whole run")

    def numbers(self, rounds):
        checks, reserves = self.checks, self.reserves
        late, timers_late = ([value for client in self.clients for value in getattr(client, name)] for name in ("late", "timers_late"))
        return {"seed": self.given.seed, "redis": self.given.redis, "rounds": len(rounds), "round_seconds": schedule.ROUND_SECONDS, "rate": self.given.rate,
                "messages": self.traffic.messages, "entries": self.entries, "users": self.users, "trimmed": self.trimmed,
                "faults": self.faults, "kills": self.kills, "without_effect": self.without_effect, "checks": checks.answered,
                "judged": checks.reasons["passed"], "stale": checks.stale,
                "reasons": listed({reason: count for reason, count in checks.reasons.items() if reason != "passed"}),
                "late": len(late), "late_ms": max(late, default=0) / 1000, "timers": sum(client.timers for client in self.clients),
                "timers_late": len(timers_late), "timer_late_ms": max(timers_late, default=0) / 1000,
                "hard_calls": sum(reserves.outcomes.values()), "hard_outcomes": listed(reserves.outcomes), "published": reserves.published_count,
                "campaigns": reserves.campaigns_seen, "hard_checks": reserves.checks, "over": sum(reserves.over.values()),
                "over_by": listed(reserves.over),
                "claims": self.watch.claims, "looks": self.watch.looks, "not_ready": self.watch.not_ready, "lifted": checks.lifted,
                "updater_mb": self.watch.resident_mb, "checks_mb": self.checks_mb, "redis_mb": self.redis_mb}


def listed(counts):
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "nothing"


def main(given):
    from traffic import Traffic
    from world import World
    import cluster_faults
    import sentinel
    if given.regions:
        import two_regions
        return two_regions.main(given, Report())
    report, rounds = Report(), schedule.schedule(given.seed, given.redis, given.minutes)
    print(*rounds, sep="\n", flush=True)
    if given.schedule_only:
        return 0
    build = os.environ.get("FCAP_BUILD_DIR", f"{ROOT}/build/release")
    directory, code = tempfile.mkdtemp(prefix="fcap-chaos."), 1
    world = World(directory, build, given.redis, report)
    threading.excepthook = lambda died: report.problem(f"a thread of the judge has ended: {died.exc_value!r} in {died.thread.name}")
    try:
        report.say(f"seed {given.seed}, {given.redis}; starting the servers")
        world.start()
        world.traffic = traffic = Traffic(world.broker_link.address(), given.seed, given.rate)
        run = Run(given, world, traffic, report)
        try:
            run.counted()
            for one in rounds:
                run.round(one)
        except Failure as failure:
            report.problem(str(failure))
        except Exception as error:  # what the judge itself cannot do is a failed run, which names seed and fault like any other
            report.problem("".join(traceback.format_exception(error)))
        run.end()
        try:
            world.heal()
            world.stop_updaters()
        except Failure as failure:
            report.problem(str(failure))
        code = report.summary(run.numbers(rounds), given.json)
    finally:
        world.stop()
        if code == 0:
            shutil.rmtree(directory)
        else:
            report.say(f"logs and data are in {directory}")
    return code


if __name__ == "__main__":
    options = parse()
    sys.exit(contained(lambda: main(options)))
