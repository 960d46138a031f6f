"""The client that checks, and what it answers judged as it comes."""
import collections
import itertools
import random
import threading
import time

from client import Client
from processes import wait_until
from events import CERTAIN, campaign

THREADS, DEADLINE_MS = 2, 10
NOTICED = 15  # seconds from a loss until every check says that something may be missing
COMPLETE_AGAIN = 30  # seconds until all checks are complete for some time once nothing is missing
COMPLETE_FOR = 2  # seconds
Question = collections.namedtuple("Question", "asked certain user foreign")


class Checks:
    """Half of the questions are about certain users: their first campaign must be capped. The others are about other users, with
    a certain user's campaign among the candidates, of which they have no events: whoever caps it has read another's ledger."""

    def __init__(self, world, traffic, problem, rate=300):
        self.world, self.traffic, self.problem, self.rate = world, traffic, problem, rate
        self.numbers, self.certain, self.passed_at = itertools.count(), None, 0.0
        self.complete_since = 0.0  # since when every check that passed lacked nothing
        self.reasons, self.stale, self.answered = collections.Counter(), 0, 0
        self.lifted = 0  # certain caps, while Redis lacked events that it had lost
        self.client = Client(world, "checks", world.checks_url(), THREADS, DEADLINE_MS, problem, self.judge)
        self.asking = threading.Event()
        threading.Thread(target=self.ask, daemon=True).start()

    def ask(self):
        while self.client.running():
            time.sleep(1 / self.rate)
            if self.asking.is_set() and len(self.client.pending) <= 100 and not self.client.put(*self.question(next(self.numbers))):
                return

    def question(self, number):
        epoch = self.traffic.epoch
        if number % 4 < 2:
            self.certain = certain = epoch.certain_user(random.randrange(CERTAIN))
            return Question(time.time(), True, certain, None), f"check {certain} {campaign(certain, 0)} {campaign(certain, 1)}"
        # The user who was asked about just before: that reply may be under way still.
        certain, user = self.certain, f"{epoch.name}-u{random.randrange(epoch.users)}"
        return (Question(time.time(), False, user, certain),
                f"check {user} {campaign(certain, 0)} {campaign(user, 0)} {campaign(user, 1)}")

    def judge(self, question, words):
        reason, *verdicts = words
        self.answered += 1
        self.reasons[reason] += 1
        self.stale += "-stale" in verdicts[0]
        if reason == "no_rules":
            self.problem("a check was answered without rules, although there were some")
        if reason != "passed":
            return
        if any("-incomplete" in verdict for verdict in verdicts):
            self.complete_since = time.time()
        self.passed_at = max(self.passed_at, question.asked)
        if not question.certain:
            if verdicts[0].startswith("capped"):
                self.problem(f"a check of {question.user} was answered from another ledger: it caps a campaign of {question.foreign}")
        elif verdicts[1].startswith("capped"):
            self.problem(f"a check of {question.user} caps a campaign that was never shown to it")
        elif verdicts[0].startswith("allowed"):
            self.lifted_cap(question, verdicts[0])

    def lifted_cap(self, question, verdict):
        lost_at = self.world.lost_at(question.user)
        if lost_at is None:
            self.problem(f"the cap of {question.user} was lifted although Redis had lost nothing ({verdict})")
        elif verdict == "allowed" and self.world.gap_open_since and question.asked - max(lost_at, self.world.gap_open_since) > NOTICED:
            self.problem(f"a check of {question.user} says that it is complete while a gap is open")
        self.lifted += 1

    def must_be_complete(self):
        """That checks say so again soon, now that all is counted."""
        if not wait_until(lambda: self.passed_at > self.complete_since + COMPLETE_FOR, COMPLETE_AGAIN):
            self.problem(f"{COMPLETE_AGAIN} s after everything was counted checks were still incomplete")

    def stop(self):
        self.asking.clear()
        time.sleep(0.1)
        self.client.stop()
