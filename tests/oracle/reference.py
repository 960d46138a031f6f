"""The meaning of rules, written from the specification alone and for reading, not for speed.

Nothing is computed by a formula that could be stated as a definition: an `eligible_at` is found by
trying every instant at which something could change (an entry leaves a window, a rule starts or
ends) in turn, and judging again.
"""

import dataclasses
import math
import re

import local_time
from history import AHEAD_MAX, NULL_USER_IDS, Ledger


# ---- Windows -----------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Window:
    kind: str
    length: int = 0
    unit: str = ""
    time_zone: str = "UTC"
    week_start: str = "monday"

    def key(self):
        """Windows of equal keys are the same window."""
        week_start = self.week_start if self.unit == "week" else ""
        return (self.kind, self.length, self.unit, self.time_zone, week_start)

    def counted(self, times, now, retention):
        """Those of the ascending `times` that count at `now`."""
        times = [t for t in times if now - retention < t]
        if self.kind == "lifetime":
            return times
        if self.kind == "sliding":
            return [t for t in times if now - self.length < t]
        if self.kind == "calendar":
            start, _ = self._unit(now)
            return [t for t in times if start <= t]
        return [t for opened, t in self._chain(times) if now < opened + self.length]

    def reserved(self, reserved, times, now, retention):
        """How many of the live reservations count, beside entries of these ascending times: like
        entries, but they open no fixed window that others would join."""
        if self.kind != "fixed":
            return len(self.counted(sorted(reserved), now, retention))
        return len(self._reserved_windows(reserved, times, now, retention))

    def _reserved_windows(self, reserved, times, now, retention):
        """Fixed windows: when those opened in which reservations count, one for each of these."""
        openings = {opened for opened, _ in self._chain([t for t in times if now - retention < t])}
        found = []
        for t in reserved:
            around = [o for o in openings if o <= t < o + self.length]
            found.append(around[0] if around else t)
            if now - retention >= t or now >= found[-1] + self.length:
                found.pop()
        return found

    def _chain(self, times):
        """Fixed windows: (opening of its window, time) of each of the times."""
        chain, opened = [], None
        for t in times:
            if opened is None or t >= opened + self.length:
                opened = t
            chain.append((opened, t))
        return chain

    def bounds(self, times, reserved, now, retention):
        """[from, until) of what is counted at `now`; no end of its own: None."""
        if self.kind == "lifetime":
            return now - retention + 1, None
        if self.kind == "sliding":
            return now - self.length + 1, None
        if self.kind == "calendar":
            start, following = self._unit(now)
            return max(start, now - retention + 1), following
        reached = [t for t in times if now - retention < t]
        openings = [o for o, _ in self._chain(reached) if now < o + self.length]
        openings += self._reserved_windows(reserved, times, now, retention)
        return (min(openings), max(openings) + self.length) if openings else (now, None)

    def instants(self, times, now, retention):
        """All instants after `now` at which the count of these times may change."""
        found = {t + retention for t in times}
        if self.kind in ("sliding", "fixed"):
            found |= {t + self.length for t in times}
        if self.kind == "calendar":
            found |= {self._unit(max(t, now))[1] for t in times}
        return {s for s in found if s > now}

    def _unit(self, at):
        return local_time.unit_around(self.time_zone, self.unit, self.week_start, at)


_LENGTH_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def length_ms(text):
    number, suffix = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text).groups()
    return int(number) * _LENGTH_MS[suffix]


# ---- Rules -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Rule:
    id: str
    scope: str
    target: str
    event_type: str
    limit: int  # None: never caps
    window: Window
    segment: str
    start: float
    end: float
    enforced: bool
    enforcement: str

    def in_force(self, at):
        return self.start <= at < self.end

    def names_like(self, default):
        """Whether this rule of an id's own suspends `default` for the id."""
        return (self.scope, self.event_type, self.enforced) == (
            default.scope,
            default.event_type,
            default.enforced,
        )

    def key(self):
        """A segment rule replaces the general rules of its key."""
        return (self.scope, self.target, self.event_type, self.enforced, self.window.key())

    def rank(self):
        """The lowest of several segment rules of one key wins."""
        return (math.inf if self.limit is None else self.limit, self.id)


def rule_of(json_rule):
    """A rule of a rule file. Its instants are given as whole milliseconds in `X"""
    window = dict(json_rule["window"])
    if "length" in window:
        window["length"] = length_ms(window["length"])
    return Rule(
        json_rule["id"],
        json_rule["scope"],
        json_rule.get("target", ""),
        json_rule.get("event_type", "impression"),
        json_rule.get("limit"),
        Window(**window),
        json_rule.get("segment"),
        instant(json_rule["start"]) if json_rule.get("start") else -math.inf,
        instant(json_rule["end"]) if json_rule.get("end") else math.inf,
        json_rule.get("mode", "enforce") == "enforce",
        json_rule.get("enforcement", "soft"),
    )


def instant(text):
    """Milliseconds of an RFC 3339 instant in UTC with three decimals, as rfc3339() writes it."""
    moment = local_time.datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    since = moment - local_time._EPOCH
    return (since.days * 86_400_000 + since.seconds * 1000) + since.microseconds // 1000


@dataclasses.dataclass(frozen=True)
class Applied:
    """A rule as it applies to one id of its scope."""

    rule: Rule
    id: str

    def times(self, entries, catalog):
        return sorted(e.time for e in self.matching(entries, catalog))

    def matching(self, entries, catalog):
        return [e for e in entries if self._counts(e, catalog)]

    def _counts(self, entry, catalog):
        if entry.event_type != self.rule.event_type:
            return False
        campaign = catalog.get(entry.campaign, {})
        scope = self.rule.scope
        if scope == "campaign":
            return entry.campaign == self.id
        if scope == "creative":
            return entry.creative == self.id
        if scope == "advertiser":
            return campaign.get("advertiser_id") == self.id
        if scope == "group":
            return self.id in (campaign.get("groups") or [])
        return True


# ---- Verdicts ----------------------------------------------------------------------------------


def _winner(rule, rules):
    """The rule that holds in place of `rule`, or itself: of its key's segment rules the lowest."""
    rivals = [r for r in rules if r.segment and r.key() == rule.key()]
    return min(rivals, key=Rule.rank, default=rule)


class RuleSet:
    def __init__(self, json_rules, retention):
        self.rules = [rule_of(r) for r in json_rules.get("rules", [])]
        self.catalog = {c["id"]: c for c in json_rules.get("campaigns", [])}
        self.retention = retention

    def ids(self, campaign, creative):
        """(scope, id) of all that is counted together with this candidate."""
        row = self.catalog.get(campaign, {})
        found = [("campaign", campaign), ("user", "")]
        if creative:
            found.append(("creative", creative))
        if row.get("advertiser_id"):
            found.append(("advertiser", row["advertiser_id"]))
        return found + [("group", g) for g in sorted(set(row.get("groups") or []))]

    def applying(self, ids, segments, at):
        """(applied rules, [(replaced rule, its replacement)]) at this instant."""
        applied, replaced = [], []
        mine = [
            r for r in self.rules if r.in_force(at) and (r.segment is None or r.segment in segments)
        ]
        for scope, id in ids:
            own = [r for r in mine if r.scope == scope and r.target == id]
            defaults = []
            for rule in [r for r in mine if r.scope == scope and r.target == "*"]:
                suspending = [o for o in own if o.names_like(rule)]
                if suspending:
                    holding = [o for o in suspending if _winner(o, own) is o]
                    by = min(holding, key=lambda o: o.id)
                    replaced.append((Applied(rule, id), Applied(by, id)))
                else:
                    defaults.append(rule)
            for rule in own + defaults:
                winner = _winner(rule, own + defaults)
                if winner is rule:
                    applied.append(Applied(rule, id))
                else:
                    replaced.append((Applied(rule, id), Applied(winner, id)))
        return applied, replaced

    def judge(self, entries, reservations, campaign, creative, segments, now):
        """The verdict of one candidate."""
        found = _Judgement(self, entries, reservations, campaign, creative, segments, now)
        return found.verdict()


class _Judgement:
    def __init__(self, rule_set, entries, reservations, campaign, creative, segments, now):
        self._set, self._entries, self._segments, self._now = rule_set, entries, segments, now
        self._reservations, self._asked = reservations, (campaign, creative)
        self._ids = rule_set.ids(campaign, creative)
        self._times = {}

    def _times_of(self, applied):
        if applied not in self._times:
            self._times[applied] = applied.times(self._entries, self._set.catalog)
        return self._times[applied]

    def _reserved(self, applied, at):
        """How many reservations count."""
        times, retention = self._times_of(applied), self._set.retention
        return applied.rule.window.reserved(self._live(applied, at), times, at, retention)

    def _live(self, applied, at):
        """The times of the live reservations that the rule is about."""
        live = [r for r in self._reservations if r.live(at, self._set.retention)]
        return [r.time for r in applied.matching(live, self._set.catalog)]

    def _count(self, applied, at):
        window = applied.rule.window
        confirmed = len(window.counted(self._times_of(applied), at, self._set.retention))
        return confirmed + self._reserved(applied, at)

    def _in_the_way(self, applied, at):
        limit = applied.rule.limit
        return limit is not None and self._count(applied, at) >= limit

    def _instants(self):
        """Every instant from now on at which an answer could change, ascending."""
        found = {self._now}
        for rule in self._set.rules:
            found |= {s for s in (rule.start, rule.end) if self._now < s < math.inf}
            for scope, id in self._ids:
                if rule.scope == scope and rule.target in (id, "*"):
                    times = self._times_of(Applied(rule, id)) + [r.time for r in self._reservations]
                    found |= rule.window.instants(times, self._now, self._set.retention)
        for r in self._reservations:
            revived = [] if r.entry_time is None else [r.entry_time + self._set.retention]
            found |= {s for s in [r.expires, r.time - AHEAD_MAX, *revived] if self._now < s}
        return sorted(found)

    def verdict(self):
        applied, replaced = self._set.applying(self._ids, self._segments, self._now)
        instants = self._instants()
        later = [(s, self._set.applying(self._ids, self._segments, s)[0]) for s in instants]
        rules = [self._told(a, later) for a in applied]
        standing = [r for r in rules if r["stands_in_way"] and r["mode"] == "enforce"]
        verdict = {
            "allowed": not standing,
            "reason": "capped" if standing else "passed",
            "complete": True,
            "needs_reserve": any(
                a.rule.enforced and a.rule.enforcement == "hard" and a.rule.limit is not None
                for a in applied
            ),
            "eligible_at": self._candidate_eligible_at(later),
            "rules": rules,
            "replaced": [
                self._described(a, False, self._now) | {"replaced_by": by.rule.id}
                for a, by in replaced
            ],
        }
        if standing:
            named = min(standing, key=_naming_order)
            verdict |= {"rule": named["id"], "count": named["count"], "limit": named["limit"]}
            verdict["provisional"] = self._provisional(verdict["eligible_at"])
        return verdict

    def _provisional(self, eligible_at):
        """Whether confirmations could make it later. None: they could, but not all together."""
        expected = [r for r in self._reservations if r.live(self._now, self._set.retention)]
        if not expected or eligible_at is None:
            return False
        confirmed = _Judgement(
            self._set, self._entries + expected, [], *self._asked, self._segments, self._now
        )
        instants = confirmed._instants()
        applying = [(s, self._set.applying(self._ids, self._segments, s)[0]) for s in instants]
        then = confirmed._candidate_eligible_at(applying)
        return True if then is None or then > eligible_at else None

    def _told(self, applied, later):
        eligible_at = None
        for at, applying in later:
            if applied not in applying or not self._in_the_way(applied, at):
                eligible_at = at
                break
        return self._described(applied, self._in_the_way(applied, self._now), eligible_at)

    def _described(self, applied, stands, eligible_at):
        rule = applied.rule
        times, retention = self._times_of(applied), self._set.retention
        reserved = self._live(applied, self._now)
        counted_from, counted_until = rule.window.bounds(times, reserved, self._now, retention)
        count = self._count(applied, self._now)
        described = {
            "id": rule.id,
            "scope": rule.scope,
            "target": applied.id,
            "event_type": rule.event_type,
            "mode": "enforce" if rule.enforced else "shadow",
            "enforcement": rule.enforcement,
            "reserved": self._reserved(applied, self._now),
            "count": count,
            "limit": rule.limit,
            "left": None if rule.limit is None else max(rule.limit - count, 0),
            "stands_in_way": stands,
            "eligible_at": eligible_at,
            "counted_from": counted_from,
            "counted_until": counted_until,
            "complete": True,
        }
        return described | ({"segment": rule.segment} if rule.segment else {})

    def _candidate_eligible_at(self, later):
        for at, applying in later:
            if not any(a.rule.enforced and self._in_the_way(a, at) for a in applying):
                return at
        return None


def _naming_order(rule):
    at = rule["eligible_at"]
    return (-math.inf if at is None else -at, rule["id"].encode(), -rule["count"])


def answer(rule_set, ledgers, question, now=None, stored=lambda user: ()):
    """The answer to one question. `stored` tells the stored segments of a user.

    A question with `at` leaves out later entries. One without is about `now`, and counts what it
    finds.
    """
    user, at = question["user"], question.get("at", now)
    if (user or "") in NULL_USER_IDS:
        return {"reason": "no_user", "verdicts": None}
    ledger = ledgers.get(user) or Ledger()
    entries = ledger.entries()
    reservations = ledger.reservations(at if "at" in question else math.inf)
    known = [e for e in entries if e.time <= at or "at" not in question]
    segments = set(question.get("segments") or []) | set(stored(user))
    verdicts = []
    for candidate in question["candidates"]:
        if isinstance(candidate, str):
            campaign, _, creative = candidate.partition("/")
        else:
            campaign, creative = candidate["campaign"], candidate.get("creative") or ""
        verdicts.append(rule_set.judge(known, reservations, campaign, creative, segments, at))
    return {"reason": "passed", "left_out": len(entries) - len(known), "verdicts": verdicts}
