#!/usr/bin/python3 -E
"""./dev soak [PART …]: what takes long, one part after the other: faults from a seed on real servers, two regions, failovers under
the demo, tests named SOAK_… (storms of a thousand clients on Redis; long ones over Kafka), and all benches for a moment. CI runs one part, in turn by the commit; before an issue is resolved, all of it runs."""
import argparse
import contextlib
import json
import os
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [f"{ROOT}/scripts", f"{ROOT}/tests/chaos"]
from processes import contained, read, survivors, wait_until
from ctest import Ctest
from schedule import CI_SEED
from steps import Steps

MEMORY_MIN = 6 << 30  # bytes
# The others may be missing for a reason, which bench/report.py asks for.
BENCH_KEYS = ("check_vs_zcount", "check_vs_get", "check_plain_get_vs_get", "eval_ns", "eval_allocs",
              "bytes_per_pair_compacted", "bytes_per_pair_steady")
REGIONS_SEED = 20261123
SERVED_ENVIRONMENT = {
    # A server that does not start is a failure here, not a skipped test.
    "FCAP_REQUIRE_SERVICES": "1",
    # Brokers of tests live for seconds: the quick compiler only, which takes a third less of the processor.
    "FCAP_KAFKA_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"}


def in_memory():
    """Where the servers' files are: in memory if there is room, because servers wait until files are on the disk. On a busy
    host a disk can stand still for a minute, and Kafka's controller and Sentinel with it. None: the usual directory."""
    with contextlib.suppress(OSError):
        there = os.statvfs("/dev/shm")
        if there.f_bavail * there.f_frsize >= MEMORY_MIN and not there.f_flag & os.ST_NOEXEC:
            return "/dev/shm"
    return None


@contextlib.contextmanager
def own_directory():
    """A directory for everything that the run's servers and tests write, and the environment that they expect."""
    for name, value in SERVED_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with tempfile.TemporaryDirectory(prefix="fcap-test.", dir=in_memory()) as directory:
        os.chmod(directory, 0o711)  # PostgreSQL's account passes through it
        os.environ["TMPDIR"] = directory
        yield directory


def nothing_survives(steps):
    """Servers, updaters, anything: a finished run leaves no process behind."""
    return wait_until(lambda: not survivors(), 30) or not steps.run("ps", "-o", "pid,ppid,stat,args", *map(str, survivors()))


class Soak:
    """Its parts by name. Each is shorter than 4 minutes, once everything is built."""

    def __init__(self, steps, directory):
        self.steps, self.directory = steps, directory
        chaos = f"{ROOT}/tests/chaos/run.py"
        self.parts = {f"chaos-{redis}": lambda redis=redis: steps.run(
            chaos, "--minutes", "2", "--seed", str(CI_SEED), "--redis", redis) for redis in ("single", "sentinel", "cluster")}
        self.parts["regions"] = lambda: steps.run(chaos, "--regions", "--seed", str(REGIONS_SEED))
        for redis in "sentinel", "cluster":
            self.parts[f"failover-{redis}"] = lambda redis=redis: self.demo("--seconds", "10", "--redis", redis, "--failover")
        for name, label in ("storms", "redis"), ("long", "kafka|path"):
            self.parts[name] = lambda label=label: Ctest(steps, "release").run("-L", label, jobs=1, FCAP_SOAK="1")
        self.parts["benches"] = self.benches

    def demo(self, *arguments):
        """The main job as a user runs it; it fails if anything is lost or counted twice, or if a cap is exceeded although
        everything was reserved."""
        return self.steps.run(f"{ROOT}/examples/ad_server/demo.py", *arguments, FCAP_DEV_DIR=f"{self.directory}/demo",
                              FCAP_REDIS_PORT="0", FCAP_PG_PORT="0", FCAP_KAFKA_PORT="0")

    def benches(self):
        """That all benches run and give their numbers; not what the numbers are."""
        result = f"{self.directory}/bench.json"
        if not self.steps.run(f"{ROOT}/bench/run", "--quick", "--report", f"{self.directory}/bench", "--json", result,
                              FCAP_BUILD_DIR=f"{ROOT}/build/release"):
            return False
        report = json.loads(read(result))
        missing = [key for key in BENCH_KEYS if not isinstance(report.get(key), (int, float))]
        self.steps.say(f"without a number: {missing}" if missing else "every number is there")
        return not missing

    def in_turn(self, number):
        return sorted(self.parts)[number % len(self.parts)]

    def step(self, part):
        self.steps.step(f"soak: {part}", self.parts[part])


def main():
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"by default all: {', '.join(sorted(Soak(Steps(), '').parts))}")
    given = parser.parse_args()
    steps, began = Steps(), time.monotonic()
    with own_directory() as directory:
        soak = Soak(steps, directory)
        if unknown := set(given.parts) - set(soak.parts):
            parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(sorted(soak.parts))}")
        if steps.step("packages", steps.run, f"{ROOT}/scripts/packages", "build", "runtime", is_test=False) and \
                steps.step("build release", steps.run, f"{ROOT}/scripts/build.sh", "release", is_test=False):
            for part in given.parts or sorted(soak.parts):
                soak.step(part)
        steps.step("nothing survives", nothing_survives, steps)
    return steps.summary(began)


if __name__ == "__main__":
    sys.exit(contained(main))
