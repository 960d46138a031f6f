#!/usr/bin/env python3
"""Compares the hard calls of libfcap with the reference implementation.

    hard_calls.py --program build/release/tests/fcap-hard-calls --seed 1 --count 100

A case is a rule file, records with events, erasures and reservations around the present, and calls
one after the other. After each call the reference's ledger changes as the answer says. The first
difference ends the run with 1. Exit code 77: there is no Redis here.
"""

import argparse
import dataclasses
import itertools
import json
import os
import random
import subprocess
import sys
import time

import history
import reference
from generate import CAMPAIGNS, CREATIVES, SEGMENTS, USERS, Generator, length_ms
from reservations import LIFE_MAX, Redis, over_redis, records, updaters_config

SUBSETS_OF = 6  # live reservations, whose confirmations are all tried out
# The record's size is no matter of rules.
NOT_DECIDED_HERE = ("too_long", "too_many")


@dataclasses.dataclass(frozen=True)
class Call:
    at: int
    kind: str
    user: str
    campaign: str
    creative: str
    event_id: str
    life: int
    segments: tuple

    def line(self):
        words = [str(self.at), self.kind, self.user, self.campaign, self.creative, self.event_id]
        return "\t".join(word or "-" for word in [*words, str(self.life), *self.segments]) + "\n"

    def event(self, at):
        return history.Event(
            self.user, self.campaign, "impression", self.event_id, at, self.creative)


@dataclasses.dataclass(frozen=True)
class Page:
    at: int
    user: str
    event_ids: tuple
    life: int
    segments: tuple
    ranked: tuple  # of (campaign, creative)

    def line(self):
        words = [str(self.at), "page", self.user, ",".join(self.event_ids), str(self.life)]
        words += [",".join(self.segments), *itertools.chain.from_iterable(self.ranked)]
        return "\t".join(word or "-" for word in words) + "\n"

    def call(self, slot, place, kind="reserve"):
        """The reserve() that picks this candidate for this slot."""
        return Call(self.at, kind, self.user, *self.ranked[place], self.event_ids[slot], self.life,
                    self.segments)


class Difference(Exception):
    """The library answers something else than the reference."""


class World:
    """A case's rules, and its ledgers as the answers have left them."""

    def __init__(self, case):
        self.rules = reference.RuleSet(case.rules, length_ms(case.retention))
        self.ledgers, _ = history.ledgers_of(case.lines)
        for event, expires, released in case.reserved:
            self.ledger(event.user).reserve(event, expires, released)

    def ledger(self, user):
        return self.ledgers.setdefault(user, history.Ledger())

    def compare(self, call, answer):
        """That the answer may be; and what it changes."""
        if isinstance(call, Page):
            self.compare_page(call, answer)
            return
        reason, outcome, at, expires, rule = answer
        ledger = self.ledger(call.user)
        wanted = self.wanted(call, ledger)
        if reason in NOT_DECIDED_HERE:
            return
        if (reason, outcome) not in wanted:
            raise Difference(f"{call}: {answer}, expected one of {wanted}")
        if outcome != "allowed":
            return
        if call.kind == "release":
            ledger.reserve(call.event(call.at), call.at, True)
            return
        _, known = ledger.of(call.event(call.at))
        self.compare_times(call, ledger, reason, int(at), int(expires))
        if call.kind == "shown":  # may exceed a limit
            return
        if reason == "done" and not (known and call.at < known.expires):
            self.confirmations(call, ledger)

    def compare_page(self, page, answer):
        """A slot that holds a candidate keeps it; the others get the first that passes, with all
        other picks counted."""
        reason, _, *words = answer
        if reason not in ("done", "repeated", "capped"):
            return
        told = list(zip(words[::3], map(int, words[1::3]), map(int, words[2::3])))
        ledger, places = self.ledger(page.user), range(len(page.ranked))
        held, others = {}, set()
        for slot, event_id in enumerate(page.event_ids):
            mine = [place for place in places if place not in held.values() and self.holds(
                ledger, page.call(slot, place)) == page.ranked[place][1]]
            if mine:  # of one campaign the creative that was reserved
                held[slot] = mine[0]
            elif ledger.holds_impression(event_id, page.at):
                others.add(slot)
        for slot, place in held.items():
            if told[slot][0] != str(place):
                raise Difference(f"{page}: slot {slot} is not {place} as before: {answer}")
            self.compare_times(page.call(slot, place), ledger, "repeated", *told[slot][1:])
        for slot in range(len(page.event_ids)):
            if slot in held:
                continue
            if slot in others:
                if told[slot][0] != "other":
                    raise Difference(f"{page}: slot {slot} is another impression's: {answer}")
                continue
            taken = [place for place in held.values()]
            wanted = next((place for place in places if place not in taken and
                           ("done", "allowed") in self.wanted(page.call(slot, place), ledger)), "-")
            if told[slot][0] != str(wanted):
                raise Difference(f"{page}: slot {slot} is not {wanted}: {answer}")
            if wanted != "-":
                held[slot] = wanted
                self.compare_times(page.call(slot, wanted), ledger, "done", *told[slot][1:])

    def holds(self, ledger, call):
        """The creative with which the call's identity is there; None: it is not there."""
        entry, known = ledger.of(call.event(call.at))
        if entry:
            return entry.creative
        is_live = known and not known.released and call.at < known.expires
        return known.creative if is_live else None

    def wanted(self, call, ledger):
        """The answers that there may be, decided in the order of the specification."""
        if call.kind == "release":
            return [("done", "allowed"), ("repeated", "allowed")]
        entry, known = ledger.of(call.event(call.at))
        same = self.holds(ledger, call) == call.creative
        if entry:
            return [("repeated", "allowed")] if same else [("invalid", "refused")]
        if call.kind == "shown":
            return [("done", "allowed")]
        if known and known.released:
            return [("released", "refused")]
        if known and call.at < known.expires:  # however far ahead its time is
            if not same:
                return [("invalid", "refused")]
            return [("done" if call.kind == "record" else "repeated", "allowed")]
        verdict = self.rules.judge(
            ledger.entries(), ledger.reservations(), call.campaign, call.creative,
            set(call.segments), call.at)
        capped = [] if verdict["allowed"] else [("capped", "refused")]
        if ledger.erased_until() + 1 > call.at + history.AHEAD_MAX:
            return [("incomplete", "refused"), *capped]
        if capped:
            return capped
        # Confirmations can move the windows of a fixed rule: what may happen then is tried out.
        fixed = any(r.window.kind == "fixed" for r in self.rules.rules)
        expected = any(r.live(call.at, self.rules.retention) for r in ledger.reservations())
        return [("done", "allowed")] + ([("capped", "refused")] if fixed and expected else [])

    def compare_times(self, call, ledger, reason, at, expires):
        entry, known = ledger.of(call.event(call.at))
        first = at, expires
        records = call.kind in ("record", "shown")
        if entry:
            first = entry.time, 0
        elif known and not known.released and call.at < known.expires:
            first = known.time, 0 if records else known.expires
        elif records:
            first = max(call.at, ledger.erased_until() + 1), 0
        else:
            begin = max(call.at, ledger.erased_until() + 1)
            first = begin, begin + min(call.life, LIFE_MAX)
        if first != (at, expires):
            raise Difference(f"{call}: time and expiry {at}, {expires}, expected {first}")
        if reason == "done" and records:
            ledger.add(call.event(at))
        elif reason == "done":
            ledger.reserve(call.event(at), expires, False)

    def confirmations(self, call, ledger):
        """Whichever of the live reservations are confirmed: no rule counts more than its limit in a
        window that holds the new event."""
        live = [r for r in ledger.reservations() if r.live(call.at, self.rules.retention)]
        if len(live) > SUBSETS_OF:
            return
        entry, known = ledger.of(call.event(call.at))
        new = entry or known
        applied, _ = self.rules.applying(
            self.rules.ids(call.campaign, call.creative), set(call.segments), call.at)
        for chosen in itertools.chain.from_iterable(
                itertools.combinations(live, size) for size in range(len(live) + 1)):
            entries = ledger.entries() + [r for r in chosen if r is not new]
            entries += [] if new in entries else [new]
            for one in applied:
                rule = one.rule
                if not rule.enforced or rule.limit is None or rule.event_type != "impression":
                    continue
                count = self.in_window_of(new, one, entries, call.at)
                if count > rule.limit:
                    raise Difference(f"{call}: rule {rule.id} counts {count} of {rule.limit} if "
                                     f"these are confirmed: {chosen}")

    def in_window_of(self, new, applied, entries, at):
        window, times = applied.rule.window, applied.times(entries, self.rules.catalog)
        if window.kind != "fixed":
            return len(window.counted(times, at, self.rules.retention))
        chain = window._chain([t for t in times if at - self.rules.retention < t])
        mine = {opened for opened, t in chain if t == new.time}
        return sum(opened in mine for opened, _ in chain)


def case_of(rng):
    """Around the present, with few reservations and moderate records."""
    generator = Generator(rng)
    generator.live, generator.many, generator.narrow = True, False, True
    generator.focus = int(time.time() * 1000)
    return generator.case(0, with_reservations=True)


def calls_of(rng, case):
    """Calls of a few users, with event ids that come again."""
    at, calls = int(time.time() * 1000) + 1000, []
    # What fixed rules refuse beyond the specification's words would change whole pages.
    pages = all(rule["window"]["kind"] != "fixed" for rule in case.rules["rules"])
    reserved = [event for event, _, _ in case.reserved if event.event_type == "impression"]
    for number in range(rng.randrange(5, 25)):
        at += rng.choice([0, 0, 1, 10, 100])  # a clock that is far ahead is refused
        kind = rng.choice(["reserve"] * 6 + ["record"] * 2 + ["shown", "release"])
        user = "u" if rng.random() < 0.85 else rng.choice(USERS)
        campaign, creative = rng.choice(CAMPAIGNS[:2]), rng.choice(CREATIVES[:2] + [""])
        event_id = f"n{number}"
        single = [call for call in calls if isinstance(call, Call)]
        if single and rng.random() < 0.3:
            again = rng.choice(single)
            user, campaign, event_id = again.user, again.campaign, again.event_id
            creative = again.creative if rng.random() < 0.8 else creative
        elif reserved and rng.random() < 0.2:
            event = rng.choice(reserved)
            user, campaign, event_id = event.user, event.campaign, event.event_id
            creative = event.creative if rng.random() < 0.8 else creative
        life = rng.choice([1, 15_000, 900_000, LIFE_MAX, 2 * LIFE_MAX])
        segments = tuple(rng.sample(SEGMENTS, rng.randrange(0, 3)))
        if pages and rng.random() < 0.3:
            calls.append(page_of(rng, at, user, calls))
            continue
        calls.append(Call(at, kind, user, campaign, creative, event_id, life, segments))
    return calls


def page_of(rng, at, user, calls):
    """One like an earlier one, at times: the same, or with a further slot or another order."""
    before = [call for call in calls if isinstance(call, Page)]
    if before and rng.random() < 0.5:
        page = dataclasses.replace(rng.choice(before), at=at)
        ids = page.event_ids[: rng.randrange(1, len(page.event_ids) + 1)]
        if rng.random() < 0.3:
            return dataclasses.replace(page, ranked=ranked_of(rng))
        return rng.choice([page, dataclasses.replace(
            page, event_ids=(*ids, f"p{len(calls)}"), ranked=page.ranked[::-1])])
    ids = tuple(f"p{len(calls)}-{slot}" for slot in range(rng.randrange(1, 4)))
    segments = tuple(rng.sample(SEGMENTS, rng.randrange(0, 3)))
    return Page(at, user, ids, rng.choice([1, 15_000, LIFE_MAX]), segments, ranked_of(rng))


def ranked_of(rng):
    ranked = {(rng.choice(CAMPAIGNS[:3]), rng.choice(CREATIVES[:2] + [""])) for _ in range(5)}
    return tuple(sorted(ranked))


def ask(options, directory, server, case, calls):
    redis = Redis(server.port)
    redis("FLUSHALL")
    for user, record in records(case).items():
        redis("SET", f"fcap:{{{user}}}", record)
    retention = length_ms(case.retention)
    redis("SET", "fcap:!config", updaters_config(case))
    rules = os.path.join(directory, "rules.json")
    with open(rules, "w", encoding="utf-8") as file:
        json.dump(case.rules, file)
    command = [options.program, f"redis://127.0.0.1:{server.port}", rules, str(retention)]
    done = subprocess.run(command, input="".join(call.line() for call in calls), text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise Difference(f"exit code {done.returncode}: {done.stderr}")
    return [line.split("\t") for line in done.stdout.splitlines()]


def run(options, directory, server):
    reasons = {}
    for number in range(options.first, options.first + options.count):
        rng = random.Random(f"{options.seed}/{number}")
        case = case_of(rng)
        calls = calls_of(rng, case)
        try:
            world = World(case)
            answers = ask(options, directory, server, case, calls)
            for call, answer in zip(calls, answers, strict=True):
                world.compare(call, answer)
                reasons[answer[0]] = reasons.get(answer[0], 0) + 1
        except Difference as difference:
            print(f"seed {options.seed}, case {number} differs: {difference}")
            print(json.dumps(case.rules), *case.lines, *case.reserved, *calls, sep="\n")
            return 1
    print(f"seed {options.seed}: {options.count} cases, no difference; answers: {reasons}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default="build/release/tests/fcap-hard-calls")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100, help="cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    options = parser.parse_args()
    return over_redis(lambda directory, server: run(options, directory, server))


if __name__ == "__main__":
    sys.exit(main())
