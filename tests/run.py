#!/usr/bin/python3 -E
"""./dev test: all tests on real servers. With CI=true also what the last changes concern several times beside busy loops, one part
of ./dev soak, and the sanitizer builds with a short fuzz run. Every step runs, whatever became of the one before; the last lines
sum up.

  ./dev test CTEST-ARGUMENTS     only what ctest selects, such as -R redis\\.
  ./dev test --changed [COMMIT]  only the tests that the changes since this commit concern (HEAD)
  ./dev test --stress REGEX      the tests that match, ten times beside busy loops, in random order"""
import contextlib
import glob
import os
import random
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(f"{ROOT}/scripts")
from processes import contained

import changed
import history
from ctest import Ctest
from soak import Soak, nothing_survives, own_directory
from steps import Steps

SCRIPTS = f"{ROOT}/scripts"
# What the sanitizer builds make and run: tests/CMakeLists.txt and tests/integration/CMakeLists.txt say why these.
SANITIZERS = {"asan": (["asan_tests", "fuzz_targets"], "memory"), "tsan": (["tsan_tests"], "threads")}
SANITIZED_ENVIRONMENT = {
    # Tests ask for more memory than there is and replace operator new: both are meant.
    "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:allocator_may_return_null=1:alloc_dealloc_mismatch=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"halt_on_error=1:second_deadlock_stack=1:suppressions={ROOT}/tests/tsan.supp"}
TESTED = f"{history.CACHE}/tested-commit"  # the last one that all of CI's steps have passed
TOUCHED_TIMES, STRESS_TIMES = 5, 10
TOUCHED_SECONDS = 180  # for what the last changes concern; what they changed themselves comes first


@contextlib.contextmanager
def busy_loops():
    """As many as there are cores, so that a test gets half of one."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def built_meanwhile(preset):
    """Its tests are compiled with the lowest priority, by one job, while others wait for their servers. What that leaves, and what
    it has failed at, its own step makes."""
    builder = subprocess.Popen(["nice", "-n", "19", f"{SCRIPTS}/build.sh", preset, "--target", *SANITIZERS[preset][0]],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0,
                               env={**os.environ, "FCAP_BUILD_JOBS": "1"})
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(builder.pid, signal.SIGTERM)
        builder.wait()


class Run:
    def __init__(self, directory):
        self.directory, self.steps, self.slowest, self.again = directory, Steps(), [], []

    def build(self, preset, *targets):
        return self.steps.step(f"build {preset}", self.steps.run, f"{SCRIPTS}/build.sh", preset,
                               *(["--target", *targets] if targets else []), is_test=False)

    def ctest(self, name, preset, *arguments, **more):
        run = Ctest(self.steps, preset)
        passed = self.steps.step(name, lambda: run.run(*arguments, **more))
        self.again += [f"{test} ({preset})" for test in run.again]
        if preset == "release" and not self.slowest:
            self.slowest = run.slowest()
        history.add(changed.git("rev-parse", "--short", "HEAD").strip(), preset, os.getloadavg()[1], run.tests)
        return passed

    def repeated(self, name, expression, times):
        """The tests that match, several times beside busy loops, in random order within and among their files."""
        seed = random.randrange(1, 99999)  # GoogleTest's range
        print(f"GTEST_RANDOM_SEED={seed}", flush=True)
        with busy_loops():
            return self.ctest(name, "release", "-R", expression, "--schedule-random", "--repeat", f"until-fail:{times}",
                              GTEST_SHUFFLE="1", GTEST_RANDOM_SEED=str(seed))

    def touched(self):
        """What the last changes concern. Where that is more than there is time for, tests that were changed themselves come
        before those of changed rooms, and what is left out is said."""
        base = changed.last_tested(TESTED)
        tests, rooms = changed.of_files(changed.files_since(base))
        usual, listed = self.usual_seconds(), self.listed()
        own = [test for test in tests if test in listed]
        of_rooms = [test for test in listed if test.partition(".")[0] in rooms and test not in own]
        random.shuffle(own)
        random.shuffle(of_rooms)
        chosen, seconds = [], 0.0
        for test in own + of_rooms:
            takes = TOUCHED_TIMES * 2 * usual.get(test, 1)  # beside busy loops
            if seconds + takes <= TOUCHED_SECONDS:
                chosen.append(test)
                seconds += takes
        left_out = len(own) + len(of_rooms) - len(chosen)
        print(f"since {base[:12]}: {len(chosen)} tests, {left_out} left out for lack of time", flush=True)
        if chosen:
            self.repeated(f"what changed, {TOUCHED_TIMES} times", changed.expression(chosen, []), TOUCHED_TIMES)

    @staticmethod
    def usual_seconds():
        """How long each of ctest's tests took the last time."""
        usual = {}
        for name, seconds in history.usual_seconds().items():
            usual[name.partition(" ")[0]] = usual.get(name.partition(" ")[0], 0) + seconds
        return usual

    @staticmethod
    def listed():
        said = subprocess.run(["ctest", "--test-dir", f"{ROOT}/build/release", "-N"], capture_output=True, text=True, check=False)
        return [line.split(": ", 1)[1] for line in said.stdout.splitlines() if line.strip().startswith("Test ") and ": " in line]

    def all(self, in_ci):
        step, run = self.steps.step, self.steps.run
        soak = Soak(self.steps, self.directory)
        step("scripts and formatting", run, f"{SCRIPTS}/lint.sh", "--quick")
        step("systemd units are hardened", run, "systemd-analyze", "security", "--offline=true", "--threshold=20",
             *glob.glob(f"{ROOT}/systemd/*.service"))
        step("each promise has its test", run, f"{ROOT}/tests/promises.py", "--check")
        with built_meanwhile("asan") if in_ci else contextlib.nullcontext():
            self.ctest("tests", "release")
            step("demo", soak.demo, "--seconds", "5", "--servers", "2", "--tier", "reserve", "--users", "500")
            if not in_ci:
                return
            self.touched()
            soak.step(soak.in_turn(int(changed.git("rev-list", "--count", "HEAD") or 0)))
        for preset, (targets, label) in SANITIZERS.items():
            if self.build(preset, *targets):
                # A sanitizer makes the models of recovery twenty times as slow; they run in the release build only.
                self.ctest(f"tests with {preset}", preset, "-L", label)
                if preset == "asan":
                    self.ctest("fuzz", preset, "-L", "fuzz")


def main():
    arguments, in_ci = sys.argv[1:], os.environ.get("CI") == "true"
    if arguments in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    began = time.monotonic()
    for name, value in SANITIZED_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with own_directory() as directory:
        run = Run(directory)
        if run.steps.step("packages", run.steps.run, f"{SCRIPTS}/packages", "build", "runtime", "test", is_test=False) and \
                run.build("release", *([] if in_ci else ["tested"])):
            if not arguments:
                run.all(in_ci)
            elif arguments[0] == "--stress" and len(arguments) == 2:
                run.repeated("stress", arguments[1], STRESS_TIMES)
            elif arguments[0] == "--changed" and len(arguments) <= 2:
                expression = changed.expression(*changed.of_files(changed.files_since((arguments[1:] or ["HEAD"])[0])))
                if expression:
                    run.ctest("tests", "release", "-R", expression)
                else:
                    print("no test is concerned")
            else:
                run.ctest("tests", "release", *arguments)
        run.steps.step("nothing survives", nothing_survives, run.steps)
    print("\n".join(("", "the slowest tests:", *run.slowest)))
    for line in history.unsteady():
        print(f"unsteady: {line}")
    if run.again:
        print(f"a server did not start; tried again: {', '.join(run.again)}")
    code = run.steps.summary(began)
    if code == 0 and in_ci and not arguments:
        with open(TESTED, "w", encoding="utf-8") as file:
            file.write(changed.git("rev-parse", "HEAD"))
    return code


if __name__ == "__main__":
    sys.exit(contained(main))
