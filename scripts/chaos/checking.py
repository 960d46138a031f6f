"""The client that checks, and what it answers judged as it comes."""
import collections
import itertools
import random
import subprocess
import threading
import time

from events import CERTAIN, USERS, campaign

THREADS, DEADLINE_MS = 2, 10
LATE_US = 1000  # beyond the deadline
NOTICED = 30  # seconds from a loss until every check says that something may be missing
Question = collections.namedtuple("Question", "asked certain user foreign")


class Checks:
    """Half of the questions are about certain users: their first campaign must be capped. The others are about other users, with
    a certain user's campaign among the candidates, of which they have no events: whoever caps it has read another's ledger."""

    def __init__(self, world, traffic, problem, rate=300):
        self.world, self.traffic, self.problem, self.rate = world, traffic, problem, rate
        self.numbers, self.pending = itertools.count(), {}
        self.reasons, self.stale, self.answered = collections.Counter(), 0, 0
        self.late, self.timers_late, self.timers = [], [], 0
        self.lifted = 0  # certain caps, while Redis lacked events that it had lost
        self.log = open(f"{world.directory}/checks.log", "wb")
        self.process = subprocess.Popen(
            [f"{world.build}/tests/chaos/fcap-chaos-checks", world.checks_url(), str(THREADS), str(DEADLINE_MS),
             world.postgres.address()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.asking = threading.Event()
        self.threads = [threading.Thread(target=target, daemon=True) for target in (self.ask, self.read)]
        for thread in self.threads:
            thread.start()

    def ask(self):
        while self.process.poll() is None:
            time.sleep(1 / self.rate)
            if not self.asking.is_set() or len(self.pending) > 100:
                continue
            try:
                self.process.stdin.write(self.question(next(self.numbers)))
                self.process.stdin.flush()
            except (OSError, ValueError):
                return

    def question(self, number):
        epoch = self.traffic.epoch
        certain = epoch.certain_user(random.randrange(CERTAIN))
        if number % 4 < 2:
            self.pending[number] = Question(time.time(), True, certain, None)
            return f"{number} {certain} {campaign(certain, 0)} {campaign(certain, 1)}\n"
        user = f"{epoch.name}-u{random.randrange(USERS)}"
        self.pending[number] = Question(time.time(), False, user, certain)
        return f"{number} {user} {campaign(certain, 0)} {campaign(user, 0)} {campaign(user, 1)}\n"

    def read(self):
        for line in self.process.stdout:
            first, late, *rest = line.split()
            if first == "timer":
                self.timers += 1
                if int(late) > LATE_US:
                    self.timers_late.append(int(late))
                continue
            if int(late) > LATE_US:
                self.late.append(int(late))
            self.judge(self.pending.pop(int(first)), *rest)

    def judge(self, question, reason, *verdicts):
        self.answered += 1
        self.reasons[reason] += 1
        self.stale += "-stale" in verdicts[0]
        if reason == "no_rules":
            self.problem("a check was answered without rules, although there were some")
        if reason != "passed":
            return
        if not question.certain:
            if verdicts[0].startswith("capped"):
                self.problem(f"a check of {question.user} was answered from another ledger: it caps a campaign of {question.foreign}")
        elif verdicts[1].startswith("capped"):
            self.problem(f"a check of {question.user} caps a campaign that was never shown to it")
        elif verdicts[0].startswith("allowed"):
            self.lifted_cap(question, verdicts[0])

    def lifted_cap(self, question, verdict):
        with self.world.losses:
            lost_at = self.world.lost_at
        if lost_at is None:
            self.problem(f"the cap of {question.user} was lifted although Redis had lost nothing ({verdict})")
        elif verdict == "allowed" and self.world.gap_open_since and question.asked - self.world.gap_open_since > NOTICED:
            self.problem(f"a check of {question.user} says that it is complete while a gap is open")
        self.lifted += 1

    def too_late(self):
        """Which checks were later than a thread that only waits may be on this machine. Empty: none."""
        allowed = 3 * len(self.timers_late) / max(1, self.timers) + 0.005
        share = len(self.late) / max(1, self.answered)
        longest = max(self.late, default=0) / 1000
        waited = max(self.timers_late, default=0) / 1000
        found = []
        if share > allowed:
            found.append(f"{100 * share:.2f} % of the checks were more than 1 ms beyond their deadline; of the threads that only wait "
                         f"{100 * len(self.timers_late) / max(1, self.timers):.2f} %")
        if longest > 2 * waited + 250:
            found.append(f"a check was {longest:.0f} ms beyond its deadline; no thread that only waits was more than {waited:.0f} ms late")
        return found

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="utf-8") as file:
            return int(file.read().split()[1]) * 4096 / 1e6

    def stop(self):
        """Every question must have been answered by then."""
        self.asking.clear()
        if self.process.poll() is not None:
            self.problem(f"the client that checks has ended with {self.process.returncode} (see {self.log.name})")
            return
        time.sleep(0.1)
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.problem("the client that checks did not end within 30 s")
        self.threads[1].join(30)
        if self.pending:
            self.problem(f"{len(self.pending)} checks were never answered")
        self.log.close()
