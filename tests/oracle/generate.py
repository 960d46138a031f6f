"""Random rule files, event streams and questions, thick with edges."""

import dataclasses
import json
import time

import local_time
from history import EVENT_TYPES, Event, NoEvent, Nobodys, decoded
from reference import Window, instant, length_ms

HOUR, DAY = local_time.MS_PER_HOUR, local_time.MS_PER_DAY
ZONES = """UTC Europe/London Europe/Berlin America/New_York America/Sao_Paulo America/Havana
    America/St_Johns America/Goose_Bay Atlantic/Azores America/Caracas America/Asuncion
    America/Santiago America/Nuuk Asia/Beirut Asia/Kathmandu
    Asia/Tehran Asia/Pyongyang Asia/Amman Asia/Gaza Africa/Cairo Africa/Casablanca Africa/Juba
    Australia/Lord_Howe Australia/Sydney Pacific/Apia Pacific/Chatham Pacific/Kiritimati
    Pacific/Norfolk Antarctica/Troll Antarctica/Casey Antarctica/Macquarie""".split()
CURIOUS = [  # local dates and hours at their oddest
    ("America/St_Johns", "2010-11-07T02:31:00.000Z"),  # from 00:01 back to 23:01 the day before
    ("America/Goose_Bay", "2008-11-02T03:01:00.000Z"),
    ("America/Havana", "2024-11-03T05:00:00.000Z"),  # from 01:00 back to 00:00
    ("Pacific/Apia", "2011-12-30T10:00:00.000Z"),  # the 30th is skipped
    ("Pacific/Kwajalein", "1993-08-21T12:00:00.000Z"),
    ("America/Caracas", "2007-12-09T07:00:00.000Z"),  # from 03:00 back to 02:30
    ("Asia/Pyongyang", "2015-08-14T15:00:00.000Z"),  # from 00:00 back to 23:30 the day before
    ("Antarctica/Troll", "2024-10-27T01:00:00.000Z"),  # two hours back
    ("Africa/Monrovia", "1972-01-07T00:44:30.000Z"),  # from 00:00:00 to 00:44:30
    ("America/Juneau", "1983-10-30T10:00:00.000Z"),
]
CAMPAIGNS = ["c1", "c2", "c/3", "c4", "c5"]  # the catalog does not know c5
CREATIVES = ["k", "kk", "banner", "é"]
ADVERTISERS = ["a1", "a2"]
GROUPS = ["g1", "g2", "g3"]
SEGMENTS = ["s1", "s2", "s3"]
USERS = ["u", "7", "07", "v w"]
NOBODY = "00000000-0000-0000-0000-000000000000"
TARGETS = {
    "campaign": CAMPAIGNS, "creative": CREATIVES, "advertiser": ADVERTISERS, "group": GROUPS,
}
_NOON_2001, _NOON_2036 = 978_350_400_000, 2_082_110_400_000


class Case:
    """A rule file, a file of events, reservations, and the questions to all of it."""

    def __init__(self, retention, rules, lines, stored, questions=(), reserved=()):
        self.retention = retention  # as text, such as "32d"
        self.rules = rules
        self.lines = lines  # of bytes
        self.stored = stored  # segment -> users
        self.questions = list(questions)
        self.reserved = list(reserved)  # (history.Event, when it expires, whether it is released)

    def with_parts(self, **parts):
        known = dict(
            retention=self.retention, rules=self.rules, lines=self.lines, stored=self.stored,
            questions=self.questions, reserved=self.reserved,
        )
        return Case(**{**known, **parts})


def rfc3339(at):
    moment = local_time._EPOCH + local_time.datetime.timedelta(milliseconds=at)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at % 1000:03d}Z"


class Generator:
    def __init__(self, rng):
        self.rng = rng
        self.zones = rng.sample(ZONES, 2)
        self.retention_text = self._pick(["32d"] * 5 + ["40d", "400d", "745h", "169h", "25h", "2h"])
        self.retention = length_ms(self.retention_text)
        self.live = rng.random() < 0.05  # about the present, with events in the future
        self.focus = int(time.time() * 1000) if self.live else self._focus()
        self.lengths = [self._length() for _ in range(3)]
        self.many = rng.random() < 0.03
        self.narrow = rng.random() < 0.6  # few ids: much is counted together

    def _pick(self, choices):
        return self.rng.choice(choices)

    def _focus(self):
        """The instant around which the case is set: often one at which clocks change."""
        if self.rng.random() < 0.15:
            self.zones[0], text = self._pick(CURIOUS)
            return instant(text)
        year = self.rng.randrange(*self._pick([(2001, 2036)] * 3 + [(1974, 2012), (2036, 2090)]))
        begin = (local_time.datetime.date(year, 1, 1).toordinal() - 719163) * DAY
        changes = local_time.zone(self.zones[0]).changes(begin, begin + 366 * DAY)
        if changes and self.rng.random() < 0.7:
            return self._pick(changes)
        return self.rng.randrange(_NOON_2001, _NOON_2036)

    def _length(self):
        texts = "1ms 2ms 1s 90s 30m 1h 2h 24h 25h 1d 7d 8d 30d".split() + [self.retention_text]
        return self._pick([t for t in texts if length_ms(t) <= self.retention])

    # -- Rules

    def _window(self):
        kind = self._pick(["sliding", "calendar", "calendar", "fixed", "lifetime"])
        if kind == "lifetime":
            return {"kind": kind}
        if kind != "calendar":
            return {"kind": kind, "length": self._pick(self.lengths)}
        fits = {"hour": 2 * HOUR, "day": 25 * HOUR, "week": 169 * HOUR, "month": 745 * HOUR}
        unit = self._pick([u for u, needed in fits.items() if needed <= self.retention])
        window = {"kind": kind, "unit": unit}
        if self.rng.random() < 0.9:
            window["time_zone"] = self._pick(self.zones)
        if self.rng.random() < (0.7 if unit == "week" else 0.1):
            window["week_start"] = self._pick(local_time.WEEKDAYS)
        return window

    def _rule(self, number):
        scope = self._pick(["campaign", "campaign", "creative", "advertiser", "group", "user"])
        rule = {"id": f"r{number}", "scope": scope}
        if scope != "user":
            names = TARGETS[scope][:2] if self.narrow else TARGETS[scope]
            rule["target"] = "*" if self.rng.random() < 0.4 else self._pick(names)
        if self.rng.random() < 0.35:
            rule["event_type"] = self._pick(EVENT_TYPES)
        rule["limit"] = self._pick([0, 1, 1, 1, 2, 2, 3, 4, 5, None])
        if rule["limit"] is None and self.rng.random() < 0.5:
            del rule["limit"]
        rule["window"] = self._window()
        if self.rng.random() < 0.4:
            rule["segment"] = self._pick(SEGMENTS)
        self._add_period(rule)
        if self.rng.random() < 0.2:
            rule["mode"] = "shadow"
        if self.rng.random() < 0.2:
            rule["enforcement"] = self._pick(["soft", "hard"])
        return rule

    def _add_period(self, rule):
        start = self._near() if self.rng.random() < 0.2 else None
        end = self._near() if self.rng.random() < 0.25 else None
        if start is not None and end is not None and start >= end:
            start, end = end, start + 1
        if start is not None:
            rule["start"] = rfc3339(start)
        if end is not None:
            rule["end"] = rfc3339(end)

    def _near(self):
        scale = self._pick([2, 1000, HOUR, DAY, 7 * DAY, 31 * DAY])
        return self.focus + self.rng.randrange(-scale, scale + 1)

    def rules(self):
        rules = []
        for number in range(self.rng.randrange(1, 10)):
            if rules and self.rng.random() < 0.35:  # of the same key as another, or nearly
                like = dict(self._pick(rules), id=f"r{number}")
                fresh = self._rule(number)
                if self.rng.random() < 0.3 and like["window"]["kind"] == "calendar":
                    day = self._pick(local_time.WEEKDAYS)
                    like["window"] = {**like["window"], "week_start": day}
                for member in self.rng.sample(["limit", "segment", "start", "end", "mode"], 3):
                    like.pop(member, None)
                    if member in fresh:
                        like[member] = fresh[member]
                if like.get("start", "") >= like.get("end", "9"):
                    del like["start"]
                if self.rng.random() < 0.25 and like["scope"] != "user":
                    like["target"] = "*"
                rules.append(like)
            else:
                rules.append(self._rule(number))
        order = [f"r{n}" for n in range(len(rules))]
        self.rng.shuffle(order)
        for rule, id in zip(rules, order):
            rule["id"] = id
        campaigns = [self._campaign(id) for id in CAMPAIGNS[:4]]
        return {"version": 1, "rules": rules, "campaigns": campaigns}

    def _campaign(self, id):
        row = {"id": id}
        if self.rng.random() < 0.85:
            row["advertiser_id"] = self._pick(ADVERTISERS)
        if self.rng.random() < 0.85:
            row["groups"] = self.rng.sample(GROUPS, self.rng.randrange(0, 4))
        if self.rng.random() < 0.15:
            row["deleted"] = True
        return row

    # -- Instants at which something may change

    def edges(self, rules, times):
        found = {self.focus} | set(times) | {t + self.retention for t in times}
        for rule in rules["rules"]:
            found |= {instant(rule[m]) for m in ("start", "end") if m in rule}
            json_window = rule["window"]
            if "length" in json_window:
                found |= {t + length_ms(json_window["length"]) for t in times}
            if json_window["kind"] == "calendar":
                window = Window(**json_window)
                for t in list(times)[:6] + [self.focus - 1, self.focus]:
                    found |= set(window._unit(t))
        return sorted(found)

    # -- Events

    def _event_times(self, rules):
        edges = self.edges(rules, [])
        times = []
        for _ in range(self.rng.randrange(0, 400 if self.many else 22)):
            if self.rng.random() < 0.35:
                times.append(self._pick(edges) + self._pick([-1, 0, 0, 1]))
            elif times and self.rng.random() < 0.4:
                step = length_ms(self._pick(self.lengths)) * self._pick([-1, 1])
                times.append(self._pick(times) + step + self._pick([-1, 0, 0, 1]))
            else:
                times.append(self._near())
        return [t for t in times if t > 10**11]

    def _timestamp(self, t):
        """A JSON number that means t."""
        form = self.rng.random()
        if form < 0.4:
            return str(t)
        if form < 0.5:
            return f"{t}.{self.rng.randrange(10)}99"
        if t % 1000 == 0 and form < 0.7:
            return self._pick([f"{t // 1000}", f"{t // 1000}.0", f"{t // 1000 / 10:.1f}e1"])
        return f"{t // 1000}.{t % 1000:03d}" + self._pick(["", "0", "9", "999"])

    def _message(self, t):
        names = CAMPAIGNS[:2] if self.narrow else CAMPAIGNS
        members = {
            "user_id": "u" if self.rng.random() < 0.8 else self._pick(USERS + [NOBODY]),
            "campaign_id": self._pick(names),
        }
        id = f"i{self.rng.randrange(400 if self.many else 40)}"
        ids = self.rng.random()
        if ids < 0.7:
            members["imp_id"] = id
        elif ids < 0.8:
            members["event_id"] = id
        elif ids < 0.9:
            members.update(event_id=id, imp_id=f"i{self.rng.randrange(40)}")
        else:
            members.update(event_id=self._pick(["", None]), imp_id=id)
        if self.rng.random() < 0.45:
            members["type"] = self._pick(EVENT_TYPES + [None])
        if self.rng.random() < 0.75:
            creatives = CREATIVES[:2] if self.narrow else CREATIVES
            members["creative_id"] = self._pick(creatives * 3 + ["", None])
        return members

    def _variant(self, members):
        """Much the same message: of the same identity, or nearly."""
        member = self._pick(["creative_id", "creative_id", "type", "campaign_id"])
        return {**members, **{k: v for k, v in self._message(0).items() if k == member}}

    def _json(self, members, timestamp):
        ascii_only = self.rng.random() < 0.5
        parts = [
            f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=ascii_only)}" for k, v in members.items()
        ]
        if timestamp is not None:
            parts.append(f'"timestamp":{timestamp}')
        if self.rng.random() < 0.05:
            parts.append('"other": [1, {"user_id": 2}]')
        self.rng.shuffle(parts)
        return ("{" + ", ".join(parts) + "}").encode()

    def _erasure(self, t):
        members = {"user_id": self._pick(["u", "u", "7", ""]), "type": "erasure"}
        if self.rng.random() < 0.3:
            members["campaign_id"] = self._pick(["c1", "", None])
        return self._json(members, self._timestamp(t))

    def _odd(self, t):
        """A message that is no event, or an odd one that is."""
        good = {"user_id": "u", "campaign_id": "c1", "imp_id": f"odd{self.rng.randrange(9)}"}
        member = self._pick(["user_id", "campaign_id", "imp_id", "creative_id", "event_id", "type"])
        value = self._pick([None, "", 7, True, [], {}, "x" * 256, "x" * 257, "é" * 128, "é" * 129,
                            NOBODY, "Click", "erasure"])
        if member == "creative_id" and isinstance(value, str) and len(value.encode()) > 8:
            value = 1.5
        stamp = self._timestamp(t)
        odd = self.rng.random()
        if odd < 0.5:
            return self._json({**good, member: value}, stamp)
        if odd < 0.6:
            return self._json({k: v for k, v in good.items() if k != member}, stamp)
        if odd < 0.8:
            return self._json(good, self._odd_timestamp(t))
        whole = self._json(good, stamp)
        return self._pick([
            whole + b" ", whole + b"x", whole[:-1], b"[" + whole + b"]", b"", b" ", b"null", b"7",
            b"\xef\xbb\xbf" + whole, whole.replace(b"odd", b"\xff\xfe"), whole + whole,
            whole[:-1] + b", \"campaign_id\": \"c2\"}", whole[:-1] + b", \"creative_id\": 5}",
            whole[:-1] + b",}", whole.replace(b"odd", b"\\u00e9"),
            whole.replace(b"odd", b"\\ud83d"), whole.replace(b"odd", b"\t"),
            whole[:-1] + b', "sig": "x"}', b"{}",
            whole[:-1] + b', "deep": ' + b"[" * 62 + b"]" * 62 + b"}",
        ])

    def _odd_timestamp(self, t):
        bad = ["0", "-1", "0.0", "-0", "-1700000000", "0.0009", "null", '"1700000000"', "true",
               "1e18", "1e400", "-1e400", "NaN", "Infinity", "1e-400", "01", "1.", "+1",
               "18446744073709551615", "18446744073709551616", None, f"{t}" + "0" * 30,
               "0.00000000000000000000000001"]
        past = ["0.001", "1e3", "1E+9", f"{t}e-3", f"{t}000e-6", "100000000000.5", "100000000001"]
        # Behind the year 2100 the program reckons calendars otherwise than zoneinfo. That matters
        # only where later entries are not left out.
        future = [] if self.live else ["1e11", "999999999999999999", "1e17"]
        return self._pick(bad + past + future)

    def lines(self, rules):
        times = self._event_times(rules)
        told = [(self._message(t), t) for t in times]
        for members, t in self.rng.sample(told, min(len(told), self.rng.randrange(0, 6))):
            step = self._pick([0, 0, 0, 1, -1, HOUR])
            told.append((self._variant(members), t + step))
        lines = [self._json(members, self._timestamp(t)) for members, t in told]
        lines += self.rng.sample(lines, min(len(lines), self.rng.randrange(0, 4)))
        if self.rng.random() < 0.15:
            lines.append(self._erasure(self._pick(times or [self.focus]) + self._pick([-1, 0, 1])))
        if self.rng.random() < 0.3:
            lines += [self._odd(self._near()) for _ in range(self.rng.randrange(1, 6))]
        self.rng.shuffle(lines)
        return lines, times

    # -- Reservations

    def reserved(self, lines, rules):
        """Reservations of events that there are, of others, and more than one copy of some."""
        events, found = [], []
        for line in lines:
            try:
                events.append(decoded(line))
            except (NoEvent, Nobodys):
                pass
        # Not behind the year 2090, as in _odd_timestamp().
        events = [e for e in events if e.event_type != "erasure" and e.time < 3_800_000_000_000]
        edges = self.edges(rules, [e.time for e in events])
        for number in range(self.rng.randrange(1, 12)):
            event = self._fresh_event(number, edges)
            if events and self.rng.random() < 0.35:
                event = self._pick(events)
                if self.rng.random() < 0.5:
                    time = max(1, event.time + self._pick([-HOUR, -1, 1, HOUR]))
                    event = dataclasses.replace(event, time=time)
            for _ in range(self._pick([1, 1, 1, 2, 3])):
                found.append((event, event.time + self._life(), self.rng.random() < 0.15))
                changes = [{}, {"time": event.time + self._pick([0, 1, 1000])},
                           {"creative": self._pick(CREATIVES + [""])}]
                event = dataclasses.replace(event, **self._pick(changes))
        return found

    def _fresh_event(self, number, edges):
        names = CAMPAIGNS[:2] if self.narrow else CAMPAIGNS
        event_type = self._pick(["impression"] * 3 + EVENT_TYPES)
        time = self._pick([self._pick(edges) + self._pick([-1, 0, 0, 1]), self._near()])
        user = "u" if self.rng.random() < 0.8 else self._pick(USERS)
        creative = self._pick(CREATIVES + [""])
        return Event(user, self._pick(names), event_type, f"r{number}", max(1, time), creative)

    def _life(self):
        return self._pick([1, 2, 1000, 5 * 60_000, 15 * 60_000, HOUR, DAY]) + self._pick([0, 0, 1])

    # -- Questions

    def _candidates(self):
        names = CAMPAIGNS[:3] if self.narrow else CAMPAIGNS + ["c6"]
        found = []
        for _ in range(self.rng.randrange(1, 4)):
            campaign, creative = self._pick(names), self._pick(CREATIVES + ["kn"])
            form = self.rng.random()
            if form < 0.4:
                found.append(campaign)
            elif form < 0.8:
                found.append(f"{campaign}/{creative}")
            else:
                chosen = self._pick([creative, creative, "", None])
                found.append({"campaign": campaign, "creative": chosen})
        return found

    def question(self, at):
        user = "u" if self.rng.random() < 0.85 else self._pick(USERS + ["", None, NOBODY])
        question = {"user": user, "candidates": self._candidates()}
        if not self.live:
            question["at"] = at
        if self.rng.random() < 0.6:
            question["segments"] = self.rng.sample(SEGMENTS, self.rng.randrange(0, 4))
        return question

    def case(self, questions, with_reservations=False):
        rules = self.rules()
        lines, times = self.lines(rules)
        reserved = self.reserved(lines, rules) if with_reservations else []
        for event, expires, _ in reserved:
            times = times + [event.time, expires]
        stored = {}
        if self.rng.random() < 0.2:
            stored = {s: self.rng.sample(USERS, 2) for s in self.rng.sample(SEGMENTS, 2)}
        case = Case(self.retention_text, rules, lines, stored, reserved=reserved)
        edges = self.edges(rules, times)
        for _ in range(questions):
            if self.rng.random() < 0.75:
                at = self._pick(edges) + self._pick([-1, 0, 0, 1])
            else:
                at = self._near()
            case.questions.append(self.question(at))
        return case
