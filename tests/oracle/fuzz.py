#!/usr/bin/env python3
"""Compares `fcap check` with the reference implementation on random cases.

    fuzz.py --fcap build/release/cli/fcap --seed 1 --count 200

One case is a rule file, a file of events and some dozens of questions. Case n of seed s is the same
wherever it runs, except for the few that are about the present. The first difference is made small,
printed whole, and ends the run with 1. An exit code of the command other than 0 is a difference.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import history
import reference
from generate import Generator, length_ms


class Program:
    """The command under test, with a directory for its files."""

    def __init__(self, fcap, directory):
        self._fcap, self._directory = fcap, directory

    def _path(self, name):
        return os.path.join(self._directory, name)

    def ask(self, case):
        """(answers, number of messages it says are no events)."""
        with open(self._path("rules.json"), "w", encoding="utf-8") as file:
            json.dump(case.rules, file, ensure_ascii=False)
        command = [self._fcap, "check", "--rules", "rules.json", "--retention", case.retention]
        command += self._history(case)
        if case.stored:
            command += ["--segments", self._store(case.stored)]
        asked = "".join(json.dumps(q) + "\n" for q in case.questions)
        done = subprocess.run(
            command, input=asked.encode(), capture_output=True, cwd=self._directory, check=False
        )
        errors = done.stderr.decode()
        if done.returncode != 0:
            raise Difference(f"exit code {done.returncode}: {errors}{done.stdout.decode()[:2000]}")
        refused = self._refused_without_word
        for line in errors.splitlines():
            if "not an event" in line or "not events" in line:
                refused = int(line.split("--events: ")[1].split()[0])
        return [json.loads(line) for line in done.stdout.splitlines()], refused

    # What the command says of messages that are no events when all of them are.
    _refused_without_word = 0

    def _history(self, case):
        """Options that name the case's events, in a place where the command finds them."""
        with open(self._path("events.jsonl"), "wb") as file:
            file.writelines(line + b"\n" for line in case.lines)
        return ["--events", "events.jsonl"]

    def _store(self, stored):
        directory = self._path("segments")
        os.makedirs(directory, exist_ok=True)
        for name in os.listdir(directory):
            os.remove(os.path.join(directory, name))
        for name, users in stored.items():
            with open(os.path.join(directory, name + ".ids"), "w", encoding="utf-8") as file:
                file.writelines(user + "\n" for user in users)
        return directory


class Difference(Exception):
    """The program answers something else than the reference."""

    def __init__(self, text, question=None):
        super().__init__(text)
        self.question = question


def expected_answers(case, nows):
    """(answers, number of messages that are no events); `nows` are for questions without `at`."""
    rule_set = reference.RuleSet(case.rules, length_ms(case.retention))
    ledgers, refused = history.ledgers_of(case.lines)
    for event, expires, released in case.reserved:
        ledgers.setdefault(event.user, history.Ledger()).reserve(event, expires, released)
    answers = [
        reference.answer(
            rule_set, ledgers, question, now,
            lambda user: [s for s, users in case.stored.items() if user in users],
        )
        for question, now in zip(case.questions, nows, strict=True)
    ]
    return answers, refused


def compare(case, program):
    """The number of verdicts compared; raises Difference."""
    answers, refused = program.ask(case)
    if len(answers) != len(case.questions):
        raise Difference(f"{len(answers)} answers, {len(case.questions)} questions")
    expected, expected_refused = expected_answers(case, [a["at"] for a in answers])
    if refused not in (expected_refused, None):
        raise Difference(f"{refused} messages are no events, expected {expected_refused}")
    return sum(
        _compare_answer(*three) for three in zip(case.questions, answers, expected)
    )


def _compare_answer(question, answer, expected):
    def differ(what, got, want):
        if got != want:
            raise Difference(f"{what}: {got}, expected {want}\nanswer {answer}", question)

    differ("reason", answer["reason"], expected["reason"])
    if expected["verdicts"] is None:
        return 0
    if "at" in question:
        differ("left_out", answer["as_of"]["left_out"], expected["left_out"])
    for got, want in zip(answer["verdicts"], expected["verdicts"], strict=True):
        for member, value in want.items():
            if member not in ("rules", "replaced") and value is not None or member == "eligible_at":
                differ(f"{got['candidate']} {member}", got.get(member), value)
        for name in ("rules", "replaced"):
            differ(f"{got['candidate']} {name}", _rows(got.get(name, [])), _rows(want[name]))
    return len(expected["verdicts"])


def _rows(rules):
    return sorted(json.dumps(r, sort_keys=True) for r in rules)


# ---- Making a difference small -----------------------------------------------------------------


def smallest(case, program):
    """The least of the case that still differs."""

    def differs(smaller):
        try:
            compare(smaller, program)
        except Difference:
            return True
        except Exception:  # the smaller case is no case at all
            return False
        return False

    if len(case.questions) > 1:
        for question in case.questions:
            alone = case.with_parts(questions=[question])
            if differs(alone):
                case = alone
                break
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(case):
            if differs(smaller):
                case, changed = smaller, True
                break
    return case


def _smaller(case):
    """Cases with one part fewer."""
    for part in ("rules", "campaigns"):
        items = case.rules.get(part, [])
        for rest in _without_one(items):
            yield case.with_parts(rules={**case.rules, part: rest})
    for rest in _without_one(case.lines):
        yield case.with_parts(lines=rest)
    for rest in _without_one(case.reserved):
        yield case.with_parts(reserved=rest)
    if case.stored:
        yield case.with_parts(stored={})
    for index, question in enumerate(case.questions):
        others = case.questions[:index], case.questions[index + 1 :]
        for rest in _without_one(question["candidates"]):
            yield case.with_parts(
                questions=others[0] + [{**question, "candidates": rest}] + others[1])
        for rest in _without_one(question.get("segments", [])):
            yield case.with_parts(
                questions=others[0] + [{**question, "segments": rest}] + others[1])
    for index, rule in enumerate(case.rules.get("rules", [])):
        for member in ("segment", "start", "end", "mode", "enforcement", "event_type"):
            if member in rule:
                fewer = {k: v for k, v in rule.items() if k != member}
                rules = case.rules["rules"][:index] + [fewer] + case.rules["rules"][index + 1 :]
                yield case.with_parts(rules={**case.rules, "rules": rules})


def _without_one(items):
    return [items[:i] + items[i + 1 :] for i in range(len(items))]


def printed(case):
    lines = [f"# --retention {case.retention}", "# rules.json"]
    lines += [json.dumps(case.rules, ensure_ascii=False), "# events.jsonl"]
    lines += [line.decode("utf-8", "backslashreplace") for line in case.lines]
    lines += [f"# reserved: {one}" for one in case.reserved]
    if case.stored:
        lines += [f"# segments: {case.stored}"]
    lines += ["# questions.jsonl"] + [json.dumps(q) for q in case.questions]
    return "\n".join(lines)


# ---- The run -----------------------------------------------------------------------------------


def with_edges_of_answers(case, generator):
    """Questions at and around the instants that the reference says change an answer."""
    answers, _ = expected_answers(case, [0] * len(case.questions))
    instants = set()
    for answer in answers:
        for verdict in answer["verdicts"] or []:
            instants.add(verdict["eligible_at"])
            instants |= {rule["eligible_at"] for rule in verdict["rules"]}
    instants = sorted(s for s in instants if s is not None)
    chosen = generator.rng.sample(instants, min(len(instants), 6))
    more = [generator.question(s + step) for s in chosen for step in (-1, 0)]
    return case.with_parts(questions=case.questions + more)


def run(options, program, with_reservations=False):
    """The exit code."""
    questions = verdicts = 0
    for number in range(options.first, options.first + options.count):
        generator = Generator(random.Random(f"{options.seed}/{number}"))
        case = generator.case(options.questions, with_reservations)
        if not generator.live:
            case = with_edges_of_answers(case, generator)
        try:
            verdicts += compare(case, program)
        except Difference:
            print(f"seed {options.seed}, case {number} differs; its smallest part:")
            case = smallest(case, program)
            print(printed(case))
            try:
                compare(case, program)
            except Difference as difference:
                print(f"# {difference}")
            return 1
        questions += len(case.questions)
    print(f"seed {options.seed}: {options.count} cases, {questions} questions, "
          f"{verdicts} verdicts, no difference")
    return 0


def parser_of(description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--fcap", default="build/release/cli/fcap", help="the command under test")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200, help="cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--questions", type=int, default=12, help="a case, to begin with")
    return parser


def main():
    options = parser_of(__doc__).parse_args()
    with tempfile.TemporaryDirectory() as directory:
        return run(options, Program(os.path.abspath(options.fcap), directory))


if __name__ == "__main__":
    sys.exit(main())
