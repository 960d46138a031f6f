"""A process that makes the calls of one Checker (tests/chaos/checks.cc), and how late it answers."""
import collections
import itertools
import subprocess
import threading
import time

LATE_US = 1000  # beyond the deadline
UNEXPLAINED = 0.02  # of the answers that may be late: that much, whatever the timers say
LONGEST_MS = 250  # beyond twice what a timer was late in the same seconds


class Second:
    """What a process did within one: its answers that a deadline can have ended, its timers, and how late both were."""

    def __init__(self):
        self.answers = self.late = self.longest = 0
        self.timers = self.timers_late = self.longest_timer = 0

    def add_timer(self, late):
        self.timers, self.timers_late = self.timers + 1, self.timers_late + (late > LATE_US)
        self.longest_timer = max(self.longest_timer, late)

    def add_answer(self, late, reason):
        self.answers, self.late = self.answers + (reason == "timeout" or late > LATE_US), self.late + (late > LATE_US)
        self.longest = max(self.longest, late)


def too_late(seconds):
    """`seconds`: by number. Only what the deadline ends can be late, and it is late as often as a timer of the same second is, or a
    few times as often, because an answer takes some threads one after the other."""
    answers, late = (sum(getattr(one, name) for one in seconds.values()) for name in ("answers", "late"))
    expected = sum(one.answers * one.timers_late / one.timers for one in seconds.values() if one.timers)
    found = []
    if late > 3 * expected + UNEXPLAINED * answers + 10:
        found.append(f"{late} of {answers} answers that a deadline ended were more than 1 ms beyond it; of as many timers of the same "
                     f"seconds {expected:.0f}")
    for number, one in list(seconds.items()):
        waited = max(seconds[near].longest_timer for near in range(number - 2, number + 3) if near in seconds)
        if one.longest > 2 * waited + 1000 * LONGEST_MS:
            found.append(f"an answer was {one.longest / 1000:.0f} ms beyond its deadline; within two seconds no timer was more than "
                         f"{waited / 1000:.0f} ms late")
    return found


class Client:
    """`answered` is called with what was asked and the answer's words, the reason first, on a thread of the client's own."""

    def __init__(self, world, name, url, threads, deadline_ms, problem, answered):
        self.name, self.problem, self.answered = name, problem, answered
        self.numbers, self.pending, self.lock = itertools.count(), {}, threading.Lock()
        self.late, self.timers_late, self.timers = [], [], 0
        self.seconds = collections.defaultdict(Second)
        self.log = open(f"{world.directory}/{name}.log", "wb")
        self.process = subprocess.Popen(
            [f"{world.build}/tests/chaos/fcap-chaos-checks", url, str(threads), str(deadline_ms), world.postgres.address()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def running(self):
        return self.process.poll() is None

    def put(self, asked, words):
        """False: the process has ended."""
        number = next(self.numbers)
        self.pending[number] = asked
        try:
            with self.lock:
                self.process.stdin.write(f"{number} {words}\n")
                self.process.stdin.flush()
        except (OSError, ValueError):
            return False
        return True

    def read(self):
        for line in self.process.stdout:
            first, late, *words = line.split()
            second, late = self.seconds[int(time.monotonic())], int(late)
            if first == "timer":
                self.timers += 1
                second.add_timer(late)
                if late > LATE_US:
                    self.timers_late.append(late)
                continue
            second.add_answer(late, words[0])
            if late > LATE_US:
                self.late.append(late)
            self.answered(self.pending.pop(int(first)), words)

    def too_late(self):
        """Which answers were later than a thread that only waited in the same seconds may be on this machine. Empty: none."""
        return [f"{self.name}: {what}" for what in too_late(self.seconds)]

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="utf-8") as file:
            return int(file.read().split()[1]) * 4096 / 1e6

    def stop(self):
        """Every question must have been answered by then."""
        if not self.running():
            self.problem(f"{self.name} has ended with {self.process.returncode} (see {self.log.name})")
            self.reader.join(30)
            return
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.problem(f"{self.name} did not end within 30 s")
        self.reader.join(30)
        if self.pending:
            self.problem(f"{self.name} never answered {len(self.pending)} calls")
        self.log.close()
