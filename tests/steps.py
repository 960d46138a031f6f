"""The steps of a run of tests: what each says, whether it passed, and what it took. run.py and soak.py are made of steps."""
import os
import re
import resource
import subprocess
import time

EXCERPT_LINES = 30  # of a failed step's output, repeated at the end


def processor_seconds():
    """What this process's children have used and theirs, as far as they have been waited for."""
    with_children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return with_children.ru_utime + with_children.ru_stime


def reap():
    """Waits for what has ended and lost its parent to this process, servers above all: their time counts from then on."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


class Steps:
    def __init__(self):
        self.report, self.counts, self.output, self.failures = [], (0, 0, 0), [], []

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
        """Runs a step. It is one test itself unless its output ends with "N passed, N failed" or the action returns such counts."""
        print(f"\n=== {name}")
        began, used, self.output = time.monotonic(), processor_seconds(), []
        result = action(*arguments)
        reap()
        passed = result if isinstance(result, bool) else result[1] == 0
        spent = f"{time.monotonic() - began:6.0f} s {processor_seconds() - used:6.0f} s"
        outcome = "ok" if passed else "FAILED"
        print(f"=== {name}: {outcome}, {spent.split()[0]} s", flush=True)
        self.report.append(f"{name:<40} {outcome:<7}{spent}")
        if not passed and isinstance(result, bool):
            self.failures += [f"\n{name} failed:", *self.output[-EXCERPT_LINES:]]
        if is_test or not passed:
            counts = self.count(passed) if isinstance(result, bool) else result
            self.counts = tuple(map(sum, zip(self.counts, counts)))
        return passed

    def count(self, succeeded):
        """Passed, failed and skipped, as the output says."""
        passed, failed, skipped = int(succeeded), 0, 0
        if found := re.findall(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?", "\n".join(self.output), re.M):
            passed, failed, skipped = (int(number or 0) for number in found[-1])
        return passed, failed if succeeded else max(failed, 1), skipped

    def summary(self, began):
        """The last lines of a run."""
        print("\n".join(("", f"{'step':<40} {'':<7}{'wall':>8} {'processor':>8}", *self.report)))
        print(f"{'all':<40} {'':<7}{time.monotonic() - began:6.0f} s {processor_seconds():6.0f} s")
        for line in self.failures:  # last, because of a long record only the end may be kept
            print(line)
        print(f"\n{self.counts[0]} passed, {self.counts[1]} failed, {self.counts[2]} skipped")
        return 1 if self.counts[1] else 0
