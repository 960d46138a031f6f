"""That the judge of ./dev chaos sees what it looks for, and that a seed has one schedule. Needs no server."""
import pathlib
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts/chaos")]

import judge
import schedule
from events import BATCH, DAY, MINUTE, USERS, Epoch, Expected
from record import Malformed, Record, fingerprint, id_hash
from watch import claimed

NOW = 1_790_000_000_000


def frame(tag, *fields):
    payload = b"".join(value.to_bytes(width, "little") for value, width in fields)
    return bytes([tag, len(payload)]) + payload


def entry(identity, value):
    (campaign, event_type, print_), (time, creative) = identity, value
    fields = [(event_type | (4 if creative else 0), 1), (campaign, 6), (time, 6), (print_, 4)]
    return frame(1, *fields, *([(creative, 6)] if creative else []))


def documented_records():
    """The examples of docs/ledger-format.md, a line of hex bytes or several each."""
    blocks, lines = [], (ROOT / "docs/ledger-format.md").read_text(encoding="utf-8").splitlines()
    for line in lines:
        words = line.split() if line.startswith("    ") else []
        if words and all(set(word) <= set("0123456789abcdef") for word in words):
            if line.startswith("     ") and blocks:
                blocks[-1] += "".join(words)
            else:
                blocks.append("".join(words))
    return [bytes.fromhex(block) for block in blocks]


class Records(unittest.TestCase):
    def test_the_documented_examples(self):
        found = [Record(data) for data in documented_records() if data[0] <= 4 and len(data) == data[1] + 2]
        first = (id_hash("c456"), 0, fingerprint("imp-1"))
        self.assertEqual(found[0].entries, {first: (1700000000123, 0)})
        self.assertEqual(found[1].entries, {first: (1700000000123, id_hash("cr9"))})
        self.assertEqual(found[2].entries, found[0].entries)
        self.assertEqual(len(found[3].entries), 4)
        self.assertEqual(found[3].entries[id_hash("c457"), 3, fingerprint("imp-3")], (1700000000123 + 30 * DAY, 0))
        self.assertIn(1700000000000, [record.erased_before for record in found])

    def test_what_is_no_record(self):
        whole = entry((1, 0, 2), (NOW, 0))
        for data in (b"\0", whole[:-1], whole + b"\x01", frame(1, (8, 1), (0, 16)), frame(9, (0, 1)), b"\x02\x01\x40"):
            with self.assertRaises(Malformed, msg=data.hex()):
                Record(data)


class Judged(unittest.TestCase):
    """An epoch's expectation, and records that are right, or wrong in one respect."""

    @classmethod
    def setUpClass(cls):
        epoch, cls.expected = Epoch(3, 0), Expected()
        for _ in range(4 * USERS // BATCH):
            for message in epoch.batch(NOW):
                cls.expected.add(message, NOW - 32 * DAY, NOW + 5 * MINUTE)
        cls.user = max((epoch.user(n) for n in range(USERS)), key=lambda user: len(cls.expected.of(user)[0]))

    def problems(self, data, user=None):
        user, verdict = user or self.user, judge.Verdict()
        judge.compare(verdict, user, Record(data), *self.expected.of(user))
        return [kind.partition(" (")[0] for kind in verdict.wrong]

    def data(self, entries):
        return b"".join(entry(*one) for one in entries.items())

    def test_a_record_that_holds_everything_once(self):
        entries = self.expected.of(self.user)[0]
        self.assertGreater(len(entries), 3)
        self.assertEqual(self.problems(self.data(entries)), [])
        self.assertEqual(self.problems(2 * self.data(entries)), [])  # the union: a copy changes nothing

    def test_a_lost_event(self):
        entries = self.expected.of(self.user)[0]
        entries.popitem()
        self.assertEqual(self.problems(self.data(entries)), ["events lost"])
        self.assertEqual(self.problems(b""), ["events lost"])

    def test_an_event_that_counts_twice_or_belongs_to_nobody(self):
        entries = self.expected.of(self.user)[0]
        (campaign, event_type, print_), value = next(iter(entries.items()))
        self.assertEqual(self.problems(self.data(entries | {(campaign, event_type, print_ ^ 1): value})),
                         ["entries that nothing explains"])

    def test_an_older_copy(self):
        entries = self.expected.of(self.user)[0]
        identity, (time, creative) = next(iter(entries.items()))
        self.assertEqual(self.problems(self.data(entries | {identity: (time - 1, creative)})),
                         ["events with another time or creative"])

    def test_what_was_erased(self):
        user = next(user for user in self.expected.erased_before
                    if len(self.expected.of(user)[0]) < len(self.expected.entries[user]))
        entries, until = self.expected.of(user)
        self.assertEqual(self.problems(frame(3, (until, 6)) + self.data(self.expected.entries[user]), user), [])
        self.assertEqual(self.problems(self.data(entries), user), ["erasures that the record does not have"])
        self.assertIn("entries that nothing explains", self.problems(self.data(self.expected.entries[user]), user))

    def test_a_record_that_was_trimmed(self):
        entries = dict(sorted(self.expected.of(self.user)[0].items(), key=lambda one: one[1][0]))
        identity, (time, _) = next(iter(entries.items()))
        del entries[identity]
        self.assertEqual(self.problems(self.data(entries) + frame(4, (time + 1, 6))), [])
        self.assertEqual(self.problems(self.data(entries) + frame(4, (time, 6))), ["events lost"])


class Claims(unittest.TestCase):
    @staticmethod
    def shown(partitions, lag=0, ready=1, gap=0, oldest=None):
        values = {"assigned_partitions": partitions, "lag_messages": lag, "ready": ready, "gap_offsets": gap,
                  "oldest_unacknowledged_event_timestamp_seconds": oldest}
        return types.SimpleNamespace(at=100.0, value=values.get)

    def test_only_of_all_partitions(self):
        self.assertEqual(claimed([self.shown(2), self.shown(2)]), 100)
        self.assertEqual(claimed([self.shown(2, oldest=90.0), self.shown(2)]), 90)
        for shown in ([self.shown(2)], [self.shown(4), self.shown(2)], [self.shown(4, lag=None)], [self.shown(4, ready=0)],
                      [self.shown(4, gap=1)]):
            self.assertIsNone(claimed(shown))


class Schedules(unittest.TestCase):
    def test_a_seed_has_one(self):
        for redis in schedule.LANES:
            self.assertEqual(schedule.schedule(7, redis, 3), schedule.schedule(7, redis, 6)[:3])
            self.assertNotEqual(schedule.schedule(7, redis, 3), schedule.schedule(8, redis, 3))

    def test_every_fault_comes_up_and_ends_within_its_round(self):
        for redis, lanes in schedule.LANES.items():
            faults = [fault for one in schedule.schedule(7, redis, 8) for fault in one.faults]
            self.assertEqual({(fault.lane, fault.kind) for fault in faults},
                             {(lane, kind[0]) for lane, kinds in lanes.items() for kind in kinds})
            self.assertLess(max(fault.at + fault.lasts for fault in faults), schedule.ROUND_SECONDS)


if __name__ == "__main__":
    unittest.main()
