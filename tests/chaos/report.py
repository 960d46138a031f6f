"""What a run says: each fault as it ends, each round, and what was wrong."""
import collections
import json
import re
import sys
import threading
import time

SUMMARY = """
{result}: seed {seed}, {redis}, {rounds} rounds of {round_seconds} s
  messages   {messages} produced, {entries} entries in {users} records compared ({trimmed} trimmed for their size)
  faults     {faults}, of these {kills} kills; {without_effect} more found nothing to act upon
  checks     {checks}: {judged} read the history ({stale} from a replica), the others said {reasons}
  late       {late} checks and hard calls later than 1 ms after the deadline, at most by {late_ms:.0f} ms; a thread that only waits: {timers_late} of
             {timers}, at most by {timer_late_ms:.0f} ms
  hard caps  {hard_calls} calls: {hard_outcomes}; {published} impressions published, {campaigns} limits and
             {hard_checks} checks judged; {over} grants beyond a limit after a loss: {over_by}
  claims     {claims} events that the updaters claimed to have counted were looked for; not ready at {not_ready} of {looks} looks
  lifted     {lifted} certain caps while Redis lacked what it had lost
  memory     updater {updater_mb:.0f} MB, a client {checks_mb:.0f} MB, Redis {redis_mb:.0f} MB at most"""


def kind(text):
    """What problems of one kind have in common."""
    return re.sub(r"\S*\d\S*", "", text)[:60]


class Report:
    def __init__(self):
        self.lock, self.began = threading.Lock(), time.monotonic()
        self.problems, self.under_way, self.round = [], {}, None
        self.rounds = []

    def say(self, text):
        with self.lock:
            print(f"{time.monotonic() - self.began:6.1f} s  {text}", file=sys.stderr, flush=True)

    def problem(self, text):
        """Named with what was going on."""
        with self.lock:
            known = sum(kind(text) == kind(problem["text"]) for problem in self.problems)
            going_on = [str(fault).strip() for fault in self.under_way.values()]
            self.problems.append({"round": self.round, "text": text, "during": going_on})
        if known < 3:
            self.say(f"WRONG   {text}" + (f"\n          during: {'; '.join(going_on)}" if going_on else ""))

    def begin_fault(self, fault):
        with self.lock:
            self.under_way[fault.lane] = fault

    def end_fault(self, fault, became, took):
        with self.lock:
            del self.under_way[fault.lane]
        self.say(f"{fault.lane}: {fault.kind}: {became} ({took:.1f} s)")

    def summary(self, numbers, json_file):
        result = "FAILED" if self.problems else "held"
        print(SUMMARY.format(result=result, **numbers))
        kinds = collections.Counter(kind(problem["text"]) for problem in self.problems)
        for problem in {kind(problem["text"]): problem for problem in reversed(self.problems)}.values():
            print(f"  WRONG ({kinds[kind(problem['text'])]} times) first in round {problem['round']}: {problem['text']}\n"
                  f"    during: {'; '.join(problem['during']) or 'no fault'}")
        if self.problems:
            print(f"  again: ./dev chaos --seed {numbers['seed']} --redis {numbers['redis']} --minutes {numbers['rounds']} "
                  f"--rate {numbers['rate']}")
        if json_file:
            with open(json_file, "w", encoding="utf-8") as file:
                json.dump({"result": result, **numbers, "problems": self.problems}, file, indent=2)
        return 1 if self.problems else 0
