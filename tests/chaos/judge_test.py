"""That the judge of ./dev chaos sees what it looks for, and that a seed has one schedule. Needs no server."""
import pathlib
import socket
import subprocess
import sys
import threading
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import judge
import schedule
from client import Second, too_late
from events import BATCH, DAY, MINUTE, USERS, Epoch, Expected
from processes import wait_until
from promises import Call, Loss, Memory, Promises, Published
from record import Malformed, Record, Reservation, fingerprint, id_hash
from reserving import Ask, page_calls
from resp import Redis, RedisError, slot_of
from watch import claimed
from world import Updater, World

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
        found = [Record(data) for data in documented_records() if data[0] <= 5 and len(data) == data[1] + 2]
        first = (id_hash("c456"), 0, fingerprint("imp-1"))
        self.assertEqual(found[0].entries, {first: (1700000000123, 0)})
        self.assertEqual(found[1].entries, {first: (1700000000123, id_hash("cr9"))})
        self.assertEqual(found[2].entries, found[0].entries)
        self.assertEqual(len(found[3].entries), 4)
        self.assertEqual(found[3].entries[id_hash("c457"), 3, fingerprint("imp-3")], (1700000000123 + 30 * DAY, 0))
        self.assertIn(1700000000000, [record.erased_before for record in found])

    def test_reservations(self):
        name, creative = (id_hash("c456"), 0, fingerprint("imp-1")), id_hash("cr9")
        live, released = (data for data in documented_records() if data[0] == 5)
        until = 1700000000123 + 300_000
        self.assertEqual(Record(live).reservations, {name: Reservation(1700000000123, creative, until, False)})
        self.assertEqual(Record(released + live).reservations, {name: Reservation(1700000000123, creative, until, True)})
        self.assertEqual([Record(live).count(name[0], now) for now in (until - 1, until)], [1, 0])
        self.assertEqual(Record(live + released).count(name[0], until - 1), 0)
        self.assertEqual(Record(live + entry(name, (1700000000123, 0))).count(name[0], until - 1), 1)
        self.assertEqual(Record(frame(3, (1700000000123, 6)) + live).reservations, {})
        with self.assertRaises(Malformed):
            Record(live[:1] + bytes([live[1] + 1]) + live[2:] + b"\0")

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
        expected = {(1, 0, n): (NOW + n, 0) for n in range(judge.TRIMMED_ENTRIES_MIN + 1)}
        kept = {identity: value for identity, value in expected.items() if value[0] > NOW}

        def wrong(user, entries, complete_since, erased_before=0):
            verdict = judge.Verdict()
            data = self.data(entries) + frame(4, (complete_since, 6)) + (frame(3, (erased_before, 6)) if erased_before else b"")
            judge.compare(verdict, user, Record(data), expected, erased_before)
            return list(verdict.wrong)
        self.assertEqual(wrong("e0-crowded1", kept, NOW + 1), [])
        self.assertEqual(wrong("e0-crowded1", kept, NOW), ["events lost"])
        self.assertEqual(wrong("e0-u1", kept, NOW + 1), ["records that were trimmed although they are small"])
        self.assertEqual(wrong("e0-crowded1", {}, NOW + 1_000_000), ["records that were trimmed too far"])
        self.assertEqual(wrong("e0-crowded1", {}, NOW + 1_000_000, NOW + 1_000_000), [])


LIMIT = 2


def hard(event_id, began, reason="done", outcome=None, kind="reserve", expires=NOW + 900_000, time=None, shown="u-c0"):
    """A call that began so many ms after NOW and took 10 ms."""
    outcome = outcome or ("allowed" if reason in ("done", "repeated") else "refused")
    time = NOW + began if time is None else time
    return Call(kind, "u", shown, event_id, NOW + began, NOW + began + 10, reason, outcome, time, expires)


class HardCaps(unittest.TestCase):
    """Two impressions in a day, and what was answered: as it should be, or wrong in one respect."""

    def judged(self, *calls, losses=(), claims=(), published=(), gaps=()):
        """(kinds of what is wrong, grants beyond the limit that a loss explains)"""
        verdict = judge.Verdict()
        shown = {("u", event_id): Published("u-c0", NOW + at, NOW + at) for event_id, at in dict(published).items()}
        memory = Memory(losses, [(NOW + at, NOW + until) for at, until in claims])
        promises = Promises(calls, shown, memory, gaps, LIMIT, verdict.differs)
        promises.judge()
        return sorted(verdict.wrong), sum(promises.over.values())

    def test_a_limit_that_is_reached(self):
        self.assertEqual(self.judged(hard("a", 0), hard("b", 20), hard("c", 40, "capped")), ([], 0))

    def test_a_limit_that_is_exceeded(self):
        for kind in ("reserve", "record", "page"):
            self.assertEqual(self.judged(hard("a", 0), hard("b", 20), hard("c", 40, kind=kind)), (["limits that were exceeded"], 0))
        # Whoever is told while another one asks may be behind it.
        self.assertEqual(self.judged(hard("a", 0), hard("b", 20), hard("c", 25)), ([], 0))

    def test_what_was_confirmed_counts_after_its_reservation(self):
        calls = hard("a", 0, expires=NOW + 100), hard("b", 20), hard("c", 5000)
        self.assertEqual(self.judged(*calls), ([], 0))
        self.assertEqual(self.judged(*calls, published={"a": 50}, claims=[(1000, 500)])[0], ["limits that were exceeded"])

    def test_a_limit_after_a_loss(self):
        calls = hard("a", 0), hard("b", 20), hard("c", 5000)
        emptied = Loss("flush all", NOW + 100, 0, NOW + 110)
        self.assertEqual(self.judged(*calls, losses=[emptied]), ([], 1))
        # A loss of the last seconds takes nothing older, and one that comes later takes nothing yet.
        for loss in (Loss("fail over", NOW + 4000, NOW + 2000, NOW + 4100), Loss("flush all", NOW + 6000, 0, NOW + 6100)):
            self.assertEqual(self.judged(*calls, losses=[loss])[0], ["limits that were exceeded"])
        # What Kafka has is back once the updaters have said so.
        published = {"a": 50, "b": 50}
        self.assertEqual(self.judged(*calls, losses=[emptied], published=published, claims=[(4000, 3000)])[0],
                         ["limits that were exceeded"])
        self.assertEqual(self.judged(*calls, losses=[emptied], published=published, claims=[(5500, 4500)]), ([], 1))

    def test_a_loss_of_another_shard_explains_nothing(self):
        calls = hard("a", 0), hard("b", 20), hard("c", 5000)
        mine = slot_of("u")
        self.assertEqual(self.judged(*calls, losses=[Loss("flush a shard", NOW + 100, 0, NOW + 110, {mine})]), ([], 1))
        self.assertEqual(self.judged(*calls, losses=[Loss("flush a shard", NOW + 100, 0, NOW + 110, {mine + 1})])[0],
                         ["limits that were exceeded"])

    def test_room_that_is_refused(self):
        self.assertEqual(self.judged(hard("a", 0), hard("b", 20, "capped"))[0], ["refusals below the limit"])
        # One that has expired or was released does not count any more; one of unknown outcome may.
        for before in (hard("b", 20, expires=NOW + 1000), hard("b", 20, "timeout", "unknown")):
            self.assertEqual(self.judged(hard("a", 0), before, hard("c", 500, "capped"))[0], [])
        self.assertEqual(self.judged(hard("a", 0), hard("b", 20, expires=NOW + 1000), hard("c", 5000, "capped"))[0],
                         ["refusals below the limit"])
        self.assertEqual(self.judged(hard("a", 0), hard("b", 20), hard("b", 40, kind="release"), hard("c", 60, "capped"))[0],
                         ["refusals below the limit"])

    def test_a_repetition(self):
        for again in (hard("a", 50, "repeated", time=NOW), hard("a", 50, "repeated", time=NOW, expires=0),
                      hard("a", 50, kind="record", time=NOW, expires=0), hard("a", 50, "timeout")):
            self.assertEqual(self.judged(hard("a", 0), again)[0], [])
        for again in (hard("a", 50, "repeated", time=NOW + 1), hard("a", 50, "done", time=NOW), hard("a", 50, "capped"),
                      hard("a", 50, "repeated", time=NOW, expires=NOW + 1_000_000)):
            self.assertIn("repetitions that gave another answer", self.judged(hard("a", 0), again)[0])
            self.assertNotIn("repetitions that gave another answer",
                             self.judged(hard("a", 0), again, losses=[Loss("kill", NOW + 20, 0, NOW + 30)])[0])

    def test_a_page_that_is_asked_again(self):
        first = hard("a", 0, kind="page")
        self.assertEqual(self.judged(first, hard("a", 50, "repeated", kind="page", time=NOW))[0], [])
        self.assertEqual(self.judged(first, hard("a", 50, "repeated", kind="page", time=NOW, shown="u-c1"))[0],
                         ["repetitions that gave another answer"])

    def test_a_released_id(self):
        calls = hard("a", 0), hard("a", 20, kind="release")
        self.assertEqual(self.judged(*calls, hard("a", 40, "released"))[0], [])
        for again in (hard("a", 40), hard("a", 40, "repeated", time=NOW)):
            self.assertEqual(self.judged(*calls, again)[0], ["released event ids that were not refused as such"])
            self.assertEqual(self.judged(*calls, again, losses=[Loss("kill", NOW + 32, 0, NOW + 35)])[0], [])
        self.assertEqual(self.judged(hard("a", 0, "released"))[0], ["event ids that are called released, and nobody released them"])

    def test_what_is_not_decided(self):
        self.assertEqual(self.judged(hard("a", 0, "timeout", "allowed"))[0], ["calls that were allowed although they were not decided"])
        self.assertEqual(self.judged(hard("a", 40_000), gaps=[(NOW, NOW + 50_000)])[0], ["calls that were decided while a gap was open"])

    def test_what_a_page_says(self):
        ask = Ask("page", "u", ["u-c1", "u-c0"], ["a", "b"])
        told = [(call.campaign, call.event, call.reason, call.outcome) for call in page_calls(ask, 0, 1, "done known u-c0 5 9 - 0 0".split())]
        self.assertEqual(told, [("u-c0", "a", "done", "allowed"), ("", "b", "capped", "refused")])
        self.assertEqual(len(page_calls(ask, 0, 1, "timeout unknown - 0 0 - 0 0".split())), 4)

    def test_what_the_record_says(self):
        def name(shown, event_id):
            return shown, 0, event_id

        def wrong(calls, **reservations):
            record, verdict = Record(), judge.Verdict()
            record.reservations = {("u-c0", 0, event_id): one for event_id, one in reservations.items()}
            Promises(calls, {}, Memory([], []), [], LIMIT, verdict.differs).judge_record("u", record, NOW + 1000, name)
            return list(verdict.wrong)

        kept = Reservation(NOW, 0, NOW + 900_000, False)
        self.assertEqual(wrong([hard("a", 0)], a=kept), [])
        self.assertEqual(wrong([hard("a", 0)], a=kept, b=kept), ["reservations that nobody made"])
        for found in ({}, {"a": kept._replace(expires=NOW + 5)}, {"a": kept._replace(released=True)}):
            self.assertEqual(wrong([hard("a", 0)], **found), ["reservations that were lost or changed"])
        released = [hard("a", 0), hard("a", 20, kind="release")]
        self.assertEqual(wrong(released, a=kept._replace(released=True)), [])
        self.assertEqual(wrong(released, a=kept), ["releases that were lost"])


class Shards(unittest.TestCase):
    def test_the_slot_of_a_user(self):
        self.assertEqual([slot_of(user) for user in ("123456789", "foo")], [12739, 12182])  # CLUSTER KEYSLOT

    def test_what_a_shard_has_lost_concerns_its_users(self):
        world = types.SimpleNamespace(losses=threading.Lock(), lost=[(1.0, {slot_of("a")}), (2.0, None), (3.0, {slot_of("a")})])
        self.assertEqual([World.lost_at(world, user) for user in ("a", "b")], [3.0, 2.0])
        del world.lost[1]
        self.assertEqual([World.lost_at(world, user) for user in ("a", "b")], [3.0, None])


class Claims(unittest.TestCase):
    @staticmethod
    def shown(partitions, lag=0, ready=1, gap=0, oldest=None):
        values = {"assigned_partitions": partitions, "lag_messages": lag, "ready": ready, "gap_offsets": gap,
                  "oldest_unacknowledged_event_timestamp_seconds": oldest}
        return types.SimpleNamespace(at=100.0, value=values.get)

    def test_only_of_all_partitions(self):
        self.assertEqual(claimed([self.shown(2), self.shown(2)]), 100)
        self.assertEqual(claimed([self.shown(2, lag=5, oldest=90.0), self.shown(2)]), 90)
        for shown in ([self.shown(2)], [self.shown(4, lag=5)], [self.shown(4, gap=None)], [self.shown(4), self.shown(2)], [self.shown(4, lag=None)], [self.shown(4, ready=0)],
                      [self.shown(4, gap=1)]):
            self.assertIsNone(claimed(shown))


class Lateness(unittest.TestCase):
    @staticmethod
    def seconds(*seconds):
        """Each: how late each timer and each answer that a deadline ended was, in ms."""
        found = {}
        for number, (timers, answers) in enumerate(seconds):
            found[number] = Second()
            for late in timers:
                found[number].add_timer(1000 * late)
            for late in answers:
                found[number].add_answer(1000 * late, "timeout")
            found[number].add_answer(0, "passed")
        return found

    def test_answers_in_time(self):
        self.assertEqual(too_late(self.seconds(([0] * 100, [0] * 100))), [])

    def test_answers_as_late_as_timers(self):
        self.assertEqual(too_late(self.seconds(([0] * 100, [0] * 100), ([5] * 50 + [0] * 50, [9] * 60 + [0] * 40))), [])

    def test_answers_that_are_always_late(self):
        found = too_late(self.seconds(([5] + [0] * 99, [5] * 100)))
        self.assertEqual(len(found), 1)
        self.assertIn("100 of 100 answers", found[0])

    def test_timers_that_were_late_at_another_time_explain_nothing(self):
        self.assertEqual(len(too_late(self.seconds(([5] * 100, []), ([0] * 100, [5] * 100)))), 1)

    def test_one_answer_that_is_very_late(self):
        calm, stalled = [([0], [0])] * 3, ([300], [600])
        self.assertEqual(len(too_late(self.seconds(([0], [300]), *calm, stalled))), 1)
        self.assertEqual(too_late(self.seconds(*calm, stalled)), [])


class Replies(unittest.TestCase):
    def test_a_reply_that_is_cut_off_is_an_error(self):
        listener = socket.create_server(("127.0.0.1", 0))
        redis = Redis(listener.getsockname()[1], 5)
        peer, _ = listener.accept()
        with listener, peer, redis:
            peer.sendall(b"$5\r\nwhole\r\n$9\r\nab")
            peer.shutdown(socket.SHUT_WR)
            self.assertEqual(redis.reply(), b"whole")
            with self.assertRaises(RedisError):
                redis.reply()


class Updaters(unittest.TestCase):
    def test_one_that_ends_by_itself_is_a_problem(self):
        for command, problems in (["false"], 1), (["sleep", "60"], 0):
            found = []
            updater = Updater.__new__(Updater)
            updater.world, updater.log = types.SimpleNamespace(problem=found.append), "log"
            updater.process = subprocess.Popen(command)
            if problems:
                wait_until(lambda: not updater.running(), 10)
            updater.kill()
            self.assertEqual(len(found), problems)


class Schedules(unittest.TestCase):
    def test_another_group_rests_in_every_other_round(self):
        with_it = {one.number % 2 for one in schedule.schedule(7, "single", 8) if any(fault.lane == "another group" for fault in one.faults)}
        self.assertEqual(with_it, {1})

    def test_a_seed_has_one(self):
        for redis in schedule.LANES:
            self.assertEqual(schedule.schedule(7, redis, 3), schedule.schedule(7, redis, 6)[:3])
            self.assertNotEqual(schedule.schedule(7, redis, 3), schedule.schedule(8, redis, 3))

    def test_the_seed_of_ci_has_nearly_every_fault_in_some_topology(self):
        def kind(lane, name):
            return "updater" if lane in ("updater 1", "updater 2", "another group") else lane, name
        every = {kind(lane, one[0]) for lanes in schedule.LANES.values() for lane, kinds in lanes.items() for one in kinds}
        had = {kind(fault.lane, fault.kind) for redis in schedule.LANES
               for one in schedule.schedule(schedule.CI_SEED, redis, 2) for fault in one.faults}
        self.assertEqual(every - had, {("shards", "throttle a master")})

    def test_every_fault_comes_up_and_ends_within_its_round(self):
        for redis, lanes in schedule.LANES.items():
            faults = [fault for one in schedule.schedule(7, redis, 8) for fault in one.faults]
            self.assertEqual({(fault.lane, fault.kind) for fault in faults},
                             {(lane, kind[0]) for lane, kinds in lanes.items() for kind in kinds})
            self.assertLess(max(fault.at + fault.lasts for fault in faults), schedule.ROUND_SECONDS)


if __name__ == "__main__":
    unittest.main()
