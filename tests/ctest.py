"""Runs ctest, and finds out what became of each single test: ctest knows a file of tests, the files of results know the rest."""
import glob
import itertools
import json
import os
import re
import shutil
import tempfile

from processes import read
from steps import EXCERPT_LINES

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# More than there are cores: tests with servers wait most of the time.
JOBS = (os.cpu_count() or 1) + 6
SLOWEST = 20


class Ctest:
    """ctest in one preset's build. `tests` has, by "file Suite.Test", [seconds, tries, "passed", "failed" or "skipped"]."""

    def __init__(self, steps, preset):
        self.steps, self.preset, self.tests, self.again = steps, preset, {}, []

    def run(self, *arguments, jobs=JOBS, **environment):
        """The step's counts. Only tests whose server did not start are tried again; the summary names them."""
        directory = tempfile.mkdtemp(prefix="results.")
        try:
            environment["FCAP_TEST_RESULTS"] = directory
            command = ["ctest", "--test-dir", f"{ROOT}/build/{self.preset}", "--output-on-failure", "--no-tests=error",
                       "--timeout", "1800", "-j", str(jobs),
                       "--resource-spec-file", f"{ROOT}/build/{self.preset}/brokers.json"]
            began = len(self.steps.output)
            passed = self.steps.run(*command, *arguments, **environment)
            failed = self.collect(directory, 1, began)
            if failed and not passed and all(self.server_did_not_start(name) for name in failed):
                self.again += failed
                began = len(self.steps.output)
                passed = self.steps.run(*command, "--rerun-failed", **environment)
                failed = self.collect(directory, 2, began)
            return self.counts(passed, failed)
        finally:
            shutil.rmtree(directory)

    def counts(self, passed, failed):
        outcomes = [outcome for _, _, outcome in self.tests.values()]
        of_tests = outcomes.count("failed")
        self.steps.failures += [line for name in failed for line in (f"\n{name} ({self.preset}) failed:", *self.excerpt(name))]
        # A file that crashed has failed, although none of its tests says so; and so has a ctest that found none.
        return outcomes.count("passed"), of_tests if passed else max(of_tests, len(failed), 1), outcomes.count("skipped")

    def collect(self, directory, attempt, began):
        """Notes what this attempt said; the names of ctest's tests that failed."""
        self.said = self.steps.output[began:]
        failed = []
        for name, outcome, seconds in re.findall(r"Test +#\d+: (\S+) \.*\s*(\**[A-Z][A-Za-z ]*?) +([\d.]+) sec", "\n".join(self.said)):
            outcome = "failed" if "***" in outcome and "Skipped" not in outcome else "skipped" if "***" in outcome else "passed"
            if outcome == "failed":
                failed.append(name)
            results = glob.glob(f"{directory}/{name.rpartition('.')[2]}.*.json")
            if results and outcome != "skipped":
                self.take(name, results, attempt)
                if outcome == "failed":
                    self.note(f"{name}", float(seconds), attempt, outcome)
                elif self.tests.get(name):
                    del self.tests[name]  # the file's first attempt crashed
            elif not name.startswith("kafka_broker_") and not any(test.startswith(f"{name} ") for test in self.tests):
                self.note(name, float(seconds), attempt, outcome)
            for result in results:
                os.remove(result)
        return failed

    def take(self, name, results, attempt):
        for result in results:
            try:
                suites = json.loads(read(result)).get("testsuites", [])
            except ValueError:  # the program was killed while it wrote
                continue
            for suite, test in ((suite, test) for suite in suites for test in suite["testsuite"]):
                if test["status"] == "RUN":
                    outcome = "failed" if test.get("failures") else "skipped" if test["result"] == "SKIPPED" else "passed"
                    self.note(f"{name} {suite['name']}.{test['name']}", float(test["time"].rstrip("s")), attempt, outcome)

    def note(self, name, seconds, attempt, outcome):
        self.tests[name] = [seconds, attempt, outcome]

    def printed(self, name):
        """What a failed test of ctest printed."""
        began = next((at for at, line in enumerate(self.said) if re.search(rf" Test +#\d+: {re.escape(name)} \.*\*\*\*", line)),
                     len(self.said))
        lines = itertools.takewhile(lambda line: not re.match(r"\s*(Start +\d+:|\d+/\d+ Test +#|\d+% tests passed)", line),
                                    self.said[began + 1:])
        return [line for line in lines if line.strip()]

    def server_did_not_start(self, name):
        return any(re.search(r"scripts/service \S+ start: ", line) for line in self.printed(name))

    def excerpt(self, name):
        """What a failed test said of its failures; where it names none, its last lines."""
        printed = self.printed(name)
        reasons = [at for at, line in enumerate(printed) if re.search(r": Failure$|Sanitizer:|runtime error:|Traceback", line)]
        if not reasons:
            return printed[-EXCERPT_LINES:]
        near = sorted({line for at in reasons for line in range(at, min(at + 12, len(printed)))})
        return [printed[line] for line in near[:EXCERPT_LINES]]

    def slowest(self):
        ranked = sorted(self.tests.items(), key=lambda entry: -entry[1][0])
        return [f"{seconds:7.1f} s  {name}" for name, (seconds, _, _) in ranked[:SLOWEST]]
