#!/usr/bin/python3 -E
"""./dev test [ctest arguments]: all tests on real servers. With CI=true also the sanitizer builds, a short fuzz run and
everything else that takes longer. Every step runs, whatever became of the one before; the last lines sum up."""
import contextlib
import glob
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path += [f"{ROOT}/scripts", f"{ROOT}/tests/chaos"]
from processes import contained, read, survivors, wait_until
from schedule import CI_SEED

SCRIPTS = f"{ROOT}/scripts"
# What the sanitizer builds make and run: tests/CMakeLists.txt and tests/integration/CMakeLists.txt say why these.
SANITIZERS = {"asan": (["asan_tests", "fuzz_targets"], "^(unit|memory)"), "tsan": (["tsan_tests"], "threads$")}
# The others may be missing for a reason, which bench/report.py asks for.
BENCH_KEYS = ("check_vs_zcount", "check_vs_get", "check_plain_get_vs_get", "eval_ns", "eval_allocs",
              "bytes_per_pair_compacted", "bytes_per_pair_steady")
# More than there are cores: tests with servers wait most of the time.
CTEST_JOBS = (os.cpu_count() or 1) + 4
MEMORY_MIN = 6 << 30  # bytes
EXCERPT_LINES = 30  # of a failed test's output, repeated at the end
DEFAULTS = {
    # A server that does not start is a failure here, not a skipped test.
    "FCAP_REQUIRE_SERVICES": "1",
    # Brokers of tests live for seconds: the quick compiler only, which takes a third less of the processor.
    "FCAP_KAFKA_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
    # Tests ask for more memory than there is and replace operator new: both are meant.
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1:alloc_dealloc_mismatch=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={ROOT}/tests/tsan.supp"}


class Steps:
    def __init__(self):
        self.report, self.counts, self.output, self.unsteady, self.failures = [], (0, 0, 0), [], [], []

    def say(self, line):
        print(line, flush=True)
        self.output.append(line)

    def run(self, *command, **environment):
        """Whether the command succeeds; its output is shown as it comes."""
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", env={**os.environ, **environment}) as process:
            try:
                for line in process.stdout:
                    self.say(line.rstrip("\n"))
            except SystemExit:
                process.terminate()
                raise
        return process.returncode == 0

    def step(self, name, action, *arguments, is_test=True):
        print(f"\n=== {name}")
        began, self.output = time.monotonic(), []
        passed = action(*arguments)
        result = f"{'ok' if passed else 'FAILED'}, {time.monotonic() - began:.0f} s"
        print(f"=== {name}: {result}", flush=True)
        self.report.append(f"{name:<32} {result}")
        if not passed and action != self.ctest:
            self.failures += [f"\n{name} failed:", *self.output[-EXCERPT_LINES:]]
        if is_test or not passed:
            self.counts = tuple(map(sum, zip(self.counts, self.count(passed))))
        return passed

    def count(self, succeeded):
        """Passed, failed and skipped, as the output says: ctest's summary, or a plain "N passed, N failed"; a step that says
        nothing of the kind is one test itself."""
        text = "\n".join(self.output)
        if found := re.findall(r"^\d+% tests passed, (\d+) tests failed out of (\d+)", text, re.M):
            failed, total = int(found[-1][0]), int(found[0][1])
            skipped = len(re.findall(r"^\s+\d+ - .*\(Skipped\)", text, re.M))
            passed = total - failed - skipped
        elif found := re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", text, re.M):
            passed, failed, skipped = (int(number or 0) for number in found[-1])
        else:
            passed, failed, skipped = int(succeeded), 0, 0
        return passed, failed if succeeded else max(failed, 1), skipped

    # The steps.

    def build(self, preset, *targets):
        return self.run(f"{SCRIPTS}/build.sh", preset, *(["--target", *targets] if targets else []))

    def ctest(self, preset, *arguments):
        """Tests that need the heavy servers exclude each other by themselves."""
        # A sanitizer makes the model of the write path twenty times as slow, and a few seeds run all of its code.
        few = {"FCAP_TEST_ROUNDS": "6"} if preset in SANITIZERS else {}
        command = ["ctest", "--test-dir", f"{ROOT}/build/{preset}", "--output-on-failure", "--no-tests=error", "--timeout", "600"]
        if self.run(*command, "-j", str(CTEST_JOBS), *arguments, **few):
            return True
        failed = self.note_failures(preset, self.output)
        if not self.unsteady_only(preset, failed):
            return False
        before = len(self.output)
        if self.run(*command, "--rerun-failed", **few):
            return True
        self.note_failures(f"{preset}, alone", self.output[before:])
        return False

    def note_failures(self, how, output):
        """Name and manner of each failure that ctest's summary lists, which are said again at the end."""
        failed = re.findall(r"^\s+\d+ - (.+) \((?!Skipped|Disabled)(.*)\)", "\n".join(output), re.M)
        self.failures += [line for test, _ in failed for line in (f"\n{test} ({how}) failed:", *self.excerpt(test, output))]
        return failed

    @staticmethod
    def excerpt(test, output):
        """What a failed test said of its failures; where it names none, its last lines."""
        began = next((at for at, line in enumerate(output) if re.search(rf" Test +#\d+: {re.escape(test)} \.*\*\*\*", line)),
                     len(output))
        printed = list(itertools.takewhile(lambda line: not re.match(r"\s*(Start +\d+:|\d+/\d+ Test +#|\d+% tests passed)", line),
                                           output[began + 1:]))
        printed = [line for line in printed if line.strip()]
        reasons = [at for at, line in enumerate(printed) if re.search(r": Failure$|Sanitizer:|runtime error:|Traceback", line)]
        if not reasons:
            return printed[-EXCERPT_LINES:]
        near = sorted({line for at in reasons for line in range(at, min(at + 12, len(printed)))})
        return [printed[line] for line in near[:EXCERPT_LINES]]

    def unsteady_only(self, preset, failed):
        """Whether the few tests that failed may be tried once more, alone: no more than run side by side, all of which a stalled
        machine can hit at once, only those that need servers, and nothing that a sanitizer reported. The summary names them:
        each is a defect to mend."""
        if not 1 <= len(failed) <= CTEST_JOBS or re.search("Sanitizer:|runtime error:", "\n".join(self.output)):
            return False
        if not all(how == "Failed" and re.search("_(redis|kafka|pg|path)_test$", test) for test, how in failed):
            return False
        self.unsteady += [f"{test} ({preset})" for test, _ in failed]
        return True

    def demo(self, directory, *arguments):
        """The main job as a user runs it, for a few seconds; it fails if anything is lost or counted twice, or if a cap is
        exceeded although everything was reserved."""
        return self.run(f"{ROOT}/examples/ad_server/demo.py", *arguments, FCAP_DEV_DIR=f"{directory}/demo", FCAP_REDIS_PORT="0", FCAP_PG_PORT="0",
                        FCAP_KAFKA_PORT="0")

    def begin_chaos(self, directory, redis):
        """Two minutes of faults, the same in every run, and whether all is counted once after each. What it prints goes to a file:
        some topologies run side by side."""
        with open(f"{directory}/chaos-{redis}", "wb") as log:
            return subprocess.Popen([f"{ROOT}/tests/chaos/run.py", "--minutes", "2", "--seed", str(CI_SEED), "--redis", redis],
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def end_chaos(self, directory, redis, process):
        code = process.wait()
        for line in read(f"{directory}/chaos-{redis}").splitlines():
            self.say(line)
        return code == 0

    def regions(self):
        """Two regions that mirror each other's events, through a partition and other faults."""
        return self.run(f"{ROOT}/tests/chaos/run.py", "--regions", "--seed", "20261123")

    def benches(self, directory):
        """That all benches run and give their numbers; not what the numbers are."""
        result = f"{directory}/bench.json"
        if not self.run(f"{ROOT}/bench/run", "--quick", "--report", f"{directory}/bench", "--json", result,
                        FCAP_BUILD_DIR=f"{ROOT}/build/release"):
            return False
        report = json.loads(read(result))
        missing = [key for key in BENCH_KEYS if not isinstance(report.get(key), (int, float))]
        self.say(f"without a number: {missing}" if missing else "every number is there")
        return not missing

    def nothing_survives(self):
        """Servers, updaters, anything: a finished run leaves no process behind."""
        return wait_until(lambda: not survivors(), 3) or not self.run("ps", "-o", "pid,ppid,stat,args", *map(str, survivors()))

    def all(self, directory):
        self.step("scripts and formatting", self.run, f"{SCRIPTS}/lint.sh", "--quick")
        self.step("systemd units are hardened", self.run, "systemd-analyze", "security", "--offline=true", "--threshold=20",
                  *glob.glob(f"{ROOT}/systemd/*.service"))
        for check in sorted(glob.glob(f"{ROOT}/tests/scripts/*_test.sh")):
            self.step(os.path.basename(check)[:-3], self.run, check)
        self.step("tests", self.ctest, "release")
        self.step("demo", self.demo, directory, "--seconds", "5", "--servers", "2", "--tier", "reserve", "--users", "500")
        self.step("install", self.run, f"{ROOT}/tests/install/install_test.sh", f"{ROOT}/build/release")
        if os.environ.get("CI") != "true":
            return
        for redis in "sentinel", "cluster":
            self.step(f"demo with a failover, {redis}", self.demo, directory, "--seconds", "10", "--redis", redis, "--failover")
        for topologies in ("single", "sentinel"), ("cluster",):  # three at once keep two cores from being in time
            chaos = {redis: self.begin_chaos(directory, redis) for redis in topologies}
            for redis, process in chaos.items():
                self.step(f"chaos, {redis}", self.end_chaos, directory, redis, process)
        self.step("two regions", self.regions)
        self.step("benches", self.benches, directory)
        for preset, (targets, labels) in SANITIZERS.items():
            if self.step(f"build {preset}", self.build, preset, *targets, is_test=False):
                self.step(f"tests with {preset}", self.ctest, preset, "-L", labels)
                if preset == "asan":
                    self.step("fuzz", self.ctest, preset, "-L", "fuzz")


def in_memory():
    """Where the servers' files are: in memory if there is room, because servers wait until files are on the disk. On a busy
    host a disk can stand still for a minute, and Kafka's controller and Sentinel with it. None: the usual directory."""
    with contextlib.suppress(OSError):
        there = os.statvfs("/dev/shm")
        if there.f_bavail * there.f_frsize >= MEMORY_MIN and not there.f_flag & os.ST_NOEXEC:
            return "/dev/shm"
    return None


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    steps, began = Steps(), time.monotonic()
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    with tempfile.TemporaryDirectory(prefix="fcap-test.", dir=in_memory()) as directory:
        os.chmod(directory, 0o711)  # PostgreSQL's account passes through it
        os.environ["TMPDIR"] = directory
        if steps.step("packages", steps.run, f"{SCRIPTS}/packages", "build", "runtime", "test", is_test=False) and \
                steps.step("build release", steps.build, "release", is_test=False):
            if sys.argv[1:]:
                steps.step("tests", steps.ctest, "release", *sys.argv[1:])
            else:
                steps.all(directory)
        steps.step("nothing survives", steps.nothing_survives)
    print("\n".join(("", *steps.failures, "", *steps.report)))
    if steps.unsteady:
        print(f"unsteady: failed and were tried again alone: {', '.join(steps.unsteady)}")
    print(f"{time.monotonic() - began:.0f} s in all\n\n{steps.counts[0]} passed, {steps.counts[1]} failed, "
          f"{steps.counts[2]} skipped")
    return 1 if steps.counts[1] else 0


if __name__ == "__main__":
    sys.exit(contained(main))
