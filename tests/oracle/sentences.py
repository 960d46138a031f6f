#!/usr/bin/env python3
"""Asks `fcap check` what the specification says in so many words, with answers worked out by hand.

    sentences.py --fcap build/release/cli/fcap

Nothing here uses the reference implementation: these cases check that one, too.
"""

import argparse
import os
import sys
import tempfile

import fuzz
from generate import Case, rfc3339
from reference import instant

CASES = []
NOON = instant("2024-03-05T12:00:00.000Z")
S, H, D = 1000, 3_600_000, 86_400_000


def sentence(text, rules, events, at, want, *, segments=(), candidate="c/k", catalog=None,
             retention="32d", stored=None, user="u", errors=None):
    """`want` is compared with the verdict; members in `rules` by "id" or "id@target"."""
    catalog = [{"id": "c", "advertiser_id": "a", "groups": ["g", "h"]},
               {"id": "d", "advertiser_id": "a", "groups": ["g"]}] if catalog is None else catalog
    question = {"user": user, "candidates": [candidate], "at": at, "segments": list(segments)}
    lines = [e if isinstance(e, bytes) else event(e) for e in events]
    case = Case(retention, {"rules": rules, "campaigns": catalog}, lines, stored or {}, [question])
    CASES.append((text, case, want, errors))


def rule(id="r", limit=1, window="sliding 1h", scope="campaign", target="c", **more):
    kind, *rest = window.split()
    shape = {"kind": kind}
    if kind == "calendar":
        shape.update(zip(["unit", "time_zone", "week_start"], rest))
    elif rest:
        shape["length"] = rest[0]
    made = {"id": id, "scope": scope, "limit": limit, "window": shape, **more}
    return made if scope == "user" else {**made, "target": target}


_numbers = iter(range(10**6))


def event(t_or_parts):
    parts = t_or_parts if isinstance(t_or_parts, dict) else {"timestamp": t_or_parts}
    whole = {"user_id": "u", "campaign_id": "c", "creative_id": "k",
             "imp_id": f"n{next(_numbers)}", **parts}
    return fuzz.json.dumps(whole).encode()


def erase(t):
    return {"type": "erasure", "timestamp": t, "imp_id": None}


def capped(count, limit, eligible_at, rule_id="r"):
    return dict(allowed=False, rule=rule_id, count=count, limit=limit, eligible_at=eligible_at)


PASSES = {"allowed": True}

# ---- Events and identity

E1 = {"timestamp": NOON - 50 * 60 * S, "imp_id": "1"}
LATER = {"timestamp": NOON - 10 * 60 * S, "imp_id": "1"}
for order in ([E1, LATER], [LATER, E1], [LATER, E1, LATER]):
    sentence("copies of one identity: the later time wins", [rule()], order, NOON,
             capped(1, 1, NOON + 50 * 60 * S))
sentence("another type is another event", [rule(), rule("q", event_type="click")],
         [E1, {**LATER, "type": "click"}], NOON, capped(1, 1, NOON + 50 * 60 * S, "q"))
sentence("another campaign is another event", [rule(limit=2, scope="user")],
         [E1, {**LATER, "campaign_id": "d"}], NOON, capped(2, 2, NOON + 10 * 60 * S))
sentence("event_id goes before imp_id", [rule(limit=2)],
         [E1, {**LATER, "event_id": "2"}], NOON, capped(2, 2, NOON + 10 * 60 * S))
sentence("event_id and imp_id share one name space", [rule()],
         [E1, {**LATER, "imp_id": "x", "event_id": "1"}], NOON, capped(1, 1, NOON + 50 * 60 * S))
for order in (["", "k"], ["k", ""], [None, "k"], ["k", None]):
    sentence("of equal times a present creative beats an absent one",
             [rule(scope="creative", target="k")],
             [{**E1, "creative_id": k} for k in order], NOON, capped(1, 1, NOON + 10 * 60 * S))
for empty in ("", None):
    sentence("an absent creative and an empty string are the same",
             [rule(scope="creative", target="*")], [{**E1, "creative_id": empty}], NOON,
             {"allowed": True, "rules": []}, candidate={"campaign": "c", "creative": empty})
sentence("creative ids are global", [rule(scope="creative", target="k")],
         [{**E1, "campaign_id": "d"}], NOON, capped(1, 1, NOON + 10 * 60 * S))
sentence("a candidate without creative skips creative rules",
         [rule(limit=0, scope="creative", target="*")], [], NOON, {"allowed": True, "rules": []},
         candidate="c")

EXACT_S = 10**11 * 1000  # 1e11 is seconds
for stamp, t in ((b"1e11", EXACT_S), (b"100000000000", EXACT_S), (b"100000000001", 10**11 + 1),
                 (b"100000000000.5", 10**11), (b"99999999999.9999", EXACT_S - 1),
                 (b"1700000000.123", 1700000000123), (b"1700000000.1239", 1700000000123),
                 (b"1700000000123.9", 1700000000123), (b"0.001", 1), (b"17e8", 1700000000000),
                 (b"1700000000.0005e0", 1700000000000)):
    message = event({"timestamp": 7}).replace(b'"timestamp": 7', b'"timestamp": ' + stamp)
    sentence(f"timestamp {stamp.decode()}", [rule(window="sliding 1ms")], [message], t,
             capped(1, 1, t + 1))
    sentence(f"timestamp {stamp.decode()}, not later", [rule(window="sliding 1ms")], [message],
             t + 1, PASSES)
    sentence(f"timestamp {stamp.decode()}, not earlier", [rule()], [message], t - 1,
             {"allowed": True})
for stamp in (b"0", b"-1", b"-0.0", b"0.0009", b"1e400", b"1e18", b'"7"', b"null", b"NaN", b"true"):
    message = event({"timestamp": 7}).replace(b'"timestamp": 7', b'"timestamp": ' + stamp)
    sentence(f"timestamp {stamp.decode()} is refused", [rule(limit=1, window="lifetime")],
             [message], 1000, PASSES, errors=1)
for bad in ({"type": "view"}, {"type": "Click"}, {"type": ""}, {"campaign_id": 7}, {"imp_id": ""},
            {"campaign_id": None}, {"user_id": 7}, {"creative_id": []}, {"imp_id": "x" * 257}):
    sentence(f"no event: {bad}"[:40], [rule()], [{**E1, **bad}], NOON, PASSES, errors=1)
sentence("--at drops entries later than T, not those at T", [rule(limit=5, scope="user")],
         [NOON, NOON + 1], NOON, {"rules": {"r": {"count": 1}}})
sentence("--at: a copy with a later time is one entry, and later", [rule()],
         [{**E1, "timestamp": NOON - 1}, {**E1, "timestamp": NOON + 1}], NOON, PASSES)
sentence("user scope counts everything of the type", [rule(limit=2, scope="user")],
         [NOON - 9, {"timestamp": NOON - 8, "campaign_id": "unknown", "creative_id": None},
          {"timestamp": NOON - 7, "type": "click"}], NOON, capped(2, 2, NOON - 9 + H))
sentence("advertiser and groups of the current catalog",
         [rule(limit=2, scope="advertiser", target="a")],
         [NOON - 9, {"timestamp": NOON - 8, "campaign_id": "d"},
          {"timestamp": NOON - 7, "campaign_id": "unknown"}], NOON, capped(2, 2, NOON - 9 + H))
sentence("a deleted campaign still counts for its group",
         [rule(limit=1, scope="group", target="g")],
         [{"timestamp": NOON - 9, "campaign_id": "d"}], NOON, capped(1, 1, NOON - 9 + H),
         catalog=[{"id": "c", "groups": ["g"]}, {"id": "d", "groups": ["g"], "deleted": True}])
sentence("an unknown campaign has only its own, its creatives' and the user's rules",
         [rule("own", 5), rule("cd", 5, target="*"), rule("k", 5, scope="creative", target="k"),
          rule("u", 5, scope="user"), rule("a", 0, scope="advertiser", target="*"),
          rule("g", 0, scope="group", target="*")], [], NOON,
         {"allowed": True, "rules": {"cd": {}, "k": {}, "u": {}}}, candidate="x/k")
for order in (0, 1):
    told = [erase(NOON - 5), NOON - 5, NOON - 4]
    sentence("erasure at T: entries with time <= T are ignored, later ones count",
             [rule()], told[::-1] if order else told, NOON, capped(1, 1, NOON - 4 + H))
sentence("of several erasures the last", [rule()], [erase(NOON - 5), NOON - 6, erase(NOON - 9)],
         NOON, PASSES)
sentence("erasure: a copy moved behind the mark counts", [rule()],
         [{**E1, "timestamp": NOON - 6}, erase(NOON - 5), {**E1, "timestamp": NOON - 4}],
         NOON, capped(1, 1, NOON - 4 + H))

# ---- Windows

for kind in ("lifetime", "sliding 32d", "fixed 32d"):
    sentence(f"{kind}: now - R < t", [rule(window=kind)], [NOON - 32 * D], NOON, PASSES)
    sentence(f"{kind}: now - R < t", [rule(window=kind)], [NOON - 32 * D + 1], NOON,
             capped(1, 1, NOON + 1))
sentence("sliding: now - W < t", [rule()], [NOON - H], NOON, PASSES)
sentence("sliding: now - W < t", [rule()], [NOON - H + 1], NOON, capped(1, 1, NOON + 1))
sentence("lifetime says since when", [rule(limit=2, window="lifetime")], [], NOON,
         {"rules": {"r": {"counted_from": NOON - 32 * D + 1}}})
sentence("fixed: [open, open + W)", [rule(window="fixed 1h")], [NOON - H], NOON, PASSES)
sentence("fixed: [open, open + W)", [rule(window="fixed 1h")], [NOON - H], NOON - 1,
         capped(1, 1, NOON))
sentence("fixed: the next event opens a new one", [rule(limit=1, window="fixed 1h")],
         [NOON - 90 * 60 * S, NOON - 31 * 60 * S, NOON - 30 * 60 * S], NOON,
         {**capped(1, 1, NOON + 30 * 60 * S),
          "rules": {"r": {"count": 1, "counted_from": NOON - 30 * 60 * S}}})
sentence("fixed: an event does not prolong", [rule(limit=3, window="fixed 1h")],
         [NOON - 50 * 60 * S, NOON - 40 * 60 * S, NOON - 1], NOON, capped(3, 3, NOON + 10 * 60 * S))
sentence("fixed: the chain starts at the first entry in reach", [rule(limit=2, window="fixed 16d")],
         [NOON - 32 * D, NOON - 22 * D, NOON - 8 * D], NOON, {"rules": {"r": {"count": 0}}})
sentence("fixed: a millisecond before, it started at another",
         [rule(limit=2, window="fixed 16d")],
         [NOON - 32 * D, NOON - 22 * D, NOON - 8 * D], NOON - 1, {"rules": {"r": {"count": 1}}})

SAO = "America/Sao_Paulo"  # 2018-11-04: 00:00 -03 becomes 01:00 -02, at 03:00Z


def starts(zone, unit, first, following, week_start=""):
    first, following = instant(first), instant(following)
    window = f"calendar {unit} {zone} {week_start}".strip()
    text = f"{unit} of {zone}"
    sentence(text, [rule(window=window)], [first], following - 1, capped(1, 1, following))
    sentence(text, [rule(window=window)], [first - 1], first,
             {"allowed": True, "rules": {"r": {"counted_from": first, "counted_until": following}}})
    sentence(text, [rule(window=window)], [following - 1], following, PASSES)


starts(SAO, "day", "2018-11-04T03:00:00.000Z", "2018-11-05T02:00:00.000Z")
starts("Asia/Beirut", "day", "2024-03-30T22:00:00.000Z", "2024-03-31T21:00:00.000Z")
starts("Africa/Cairo", "day", "2024-04-25T22:00:00.000Z", "2024-04-26T21:00:00.000Z")
starts("America/Havana", "day", "2024-11-03T04:00:00.000Z", "2024-11-04T05:00:00.000Z")
starts("America/Havana", "day", "2024-03-10T05:00:00.000Z", "2024-03-11T04:00:00.000Z")
starts("America/St_Johns", "day", "2010-11-07T02:30:00.000Z", "2010-11-08T03:30:00.000Z")
starts("America/St_Johns", "hour", "2010-11-07T02:31:00.000Z", "2010-11-07T03:30:00.000Z")
starts("Pacific/Apia", "day", "2011-12-29T10:00:00.000Z", "2011-12-30T10:00:00.000Z")
starts("Pacific/Apia", "day", "2011-12-30T10:00:00.000Z", "2011-12-31T10:00:00.000Z")
starts("Pacific/Apia", "week", "2011-12-30T10:00:00.000Z", "2012-01-05T10:00:00.000Z", "friday")
starts("Pacific/Apia", "week", "2011-12-23T10:00:00.000Z", "2011-12-30T10:00:00.000Z", "friday")
starts("UTC", "week", "2024-03-04T00:00:00.000Z", "2024-03-11T00:00:00.000Z")
starts("Europe/London", "week", "2024-03-31T00:00:00.000Z", "2024-04-06T23:00:00.000Z", "sunday")
starts("Europe/London", "month", "2024-03-01T00:00:00.000Z", "2024-03-31T23:00:00.000Z", "friday")
starts("Europe/London", "month", "2024-09-30T23:00:00.000Z", "2024-11-01T00:00:00.000Z")
starts("Europe/London", "month", "2044-09-30T23:00:00.000Z", "2044-11-01T00:00:00.000Z")
starts("Europe/London", "hour", "2024-10-27T00:00:00.000Z", "2024-10-27T01:00:00.000Z")
starts("Europe/London", "hour", "2024-10-27T01:00:00.000Z", "2024-10-27T02:00:00.000Z")
starts("Australia/Lord_Howe", "hour", "2024-04-06T14:00:00.000Z", "2024-04-06T15:30:00.000Z")
starts("Australia/Lord_Howe", "hour", "2024-10-05T15:30:00.000Z", "2024-10-05T16:00:00.000Z")
starts("Asia/Kathmandu", "hour", "2024-03-05T11:15:00.000Z", "2024-03-05T12:15:00.000Z")
starts("Antarctica/Troll", "day", "2024-10-26T22:00:00.000Z", "2024-10-28T00:00:00.000Z")
starts("Antarctica/Troll", "hour", "2024-10-27T01:00:00.000Z", "2024-10-27T02:00:00.000Z")
starts("Asia/Pyongyang", "hour", "2015-08-14T14:00:00.000Z", "2015-08-14T15:30:00.000Z")

for length, retention, fits in (("sliding 33d", "32d", False), ("sliding 32d", "32d", True),
                                ("fixed 32d", "767h", False), ("fixed 32d", "32d", True),
                                ("calendar month", "744h", False), ("calendar month", "745h", True),
                                ("lifetime", "1h", True)):
    sentence(f"{length} within {retention}", [rule(window=length)], [], NOON,
             PASSES if fits else None, retention=retention)

# ---- Rules


def at(t):
    return rfc3339(t)


sentence("in force at its start", [rule(limit=0, start=at(NOON))], [], NOON, capped(0, 0, None))
sentence("not before", [rule(limit=0, start=at(NOON))], [], NOON - 1,
         {"allowed": True, "rules": []})
sentence("in force until its end", [rule(limit=0, end=at(NOON))], [], NOON - 1, capped(0, 0, NOON))
sentence("not at its end", [rule(limit=0, end=at(NOON))], [], NOON, {"allowed": True, "rules": []})
sentence("events before the start count", [rule(start=at(NOON - 5))], [NOON - 9], NOON,
         capped(1, 1, NOON - 9 + H))
sentence("limit NULL never caps", [rule(limit=None)], [NOON - 1, NOON - 2], NOON,
         {"allowed": True, "eligible_at": NOON, "rules": {"r": {"count": 2, "limit": None}}})
for scope, ids in (("campaign", ["c"]), ("creative", ["k"]), ("advertiser", ["a"]),
                   ("group", ["g", "h"])):
    sentence(f"* of {scope} applies to each id", [rule(limit=2, scope=scope, target="*")],
             [NOON - 1], NOON, {"rules": {f"r@{id}": {"count": 1} for id in ids}})
sentence("a default for each group apart", [rule(limit=2, scope="group", target="*")],
         [NOON - 1, {"timestamp": NOON - 2, "campaign_id": "d"}], NOON,
         {"allowed": False, "rules": {"r@g": {"count": 2}, "r@h": {"count": 1}}})
DEFAULT = rule("def", 0, target="*")
for own, suspends in (({"limit": None}, True), ({"limit": 9, "window": "fixed 2h"}, True),
                      ({"event_type": "click"}, False), ({"mode": "shadow"}, False),
                      ({"scope": "creative", "target": "k", "limit": 9}, False),
                      ({"target": "d"}, False), ({"start": at(NOON + 1)}, False),
                      ({"end": at(NOON)}, False), ({"segment": "s", "limit": 9}, False),
                      ({"segment": "s2", "limit": 9}, True), ({"enforcement": "hard"}, True)):
    sentence(f"a rule of its own: {own}", [DEFAULT, rule("own", **{"limit": 9, **own})], [], NOON,
             {"allowed": suspends}, segments=["s2"])
sentence("a limit-NULL rule of one group exempts that group only",
         [rule("def", 1, scope="group", target="*"), rule("g", None, scope="group", target="g")],
         [NOON - 1], NOON, {**capped(1, 1, NOON - 1 + H, "def"),
                            "rules": {"g@g": {"count": 1}, "def@h": {"count": 1}}})
sentence("several defaults stand side by side",
         [rule("x", 5, target="*"), rule("y", 5, target="*")], [], NOON,
         {"rules": {"x": {}, "y": {}}})
sentence("segments among defaults",
         [rule("x", 0, target="*"), rule("y", 5, target="*", segment="s")], [], NOON,
         {"rules": {"y@c": {}}, "allowed": True}, segments=["s"])
sentence("a default of a segment does not outrank a rule of its own",
         [rule("x", 7), rule("y", 0, target="*", segment="s")], [], NOON,
         {"rules": {"x": {}}, "allowed": True}, segments=["s"])
GENERAL = rule("gen", 0, "calendar week UTC monday")
for other, replaces in (({}, True), ({"window": "calendar week UTC sunday"}, False),
                        ({"window": "calendar week"}, True), ({"window": "calendar day"}, False),
                        ({"window": "calendar week Etc/UTC"}, False), ({"mode": "shadow"}, False),
                        ({"window": "sliding 7d"}, False), ({"event_type": "click"}, False),
                        ({"target": "*"}, False), ({"enforcement": "hard"}, True),
                        ({"limit": None}, True), ({"start": at(NOON + 1)}, False)):
    mine = {"limit": 9, "window": "calendar week UTC monday", "segment": "s", **other}
    sentence(f"segment rule of the same key? {other}", [GENERAL, rule("seg", **mine)], [], NOON,
             {"allowed": replaces}, segments=["s"])
    sentence("segment rules are for members only", [GENERAL, rule("seg", **mine)], [], NOON,
             {"allowed": False, "rule": "gen"}, segments=["other"])
sentence("the week start is ignored for other units",
         [rule("gen", 0, "calendar day UTC monday"),
          rule("seg", 9, "calendar day UTC sunday", segment="s")], [], NOON, PASSES,
         segments=["s"])
sentence("24h is 1d",
         [rule("gen", 0, "sliding 24h"), rule("seg", 9, "sliding 1d", segment="s")], [], NOON, PASSES,
         segments=["s"])
sentence("of several the smallest limit wins; NULL ranks as infinite",
         [rule("gen", 0), rule("x", None, segment="s"), rule("y", 4, segment="t"),
          rule("z", 3, segment="w")], [], NOON,
         {"rules": {"z": {}}, "replaced": ["gen", "x", "y"]}, segments=["s", "t", "w"])
sentence("NULL wins when alone", [rule("gen", 0), rule("x", None, segment="s")], [], NOON,
         {"rules": {"x": {}}, "allowed": True}, segments=["s"])
sentence("it replaces all general rules of the key",
         [rule("x", 0), rule("y", 0), rule("z", 1, segment="s")], [], NOON, PASSES,
         segments=["s"])
sentence("caller-given and stored membership are united",
         [rule("gen", 0), rule("x", 0, segment="s"), rule("y", 9, segment="t")], [], NOON,
         {"rule": "x"}, segments=["t"], stored={"s": ["u"]})
for user in ("7", "07"):
    sentence("stored ids are compared whole", [rule(limit=0, segment="s")], [], NOON,
             {"allowed": user == "07"}, stored={"s": ["7"]}, user=user)
sentence("a hard rule is evaluated like a soft one", [rule(enforcement="hard")], [NOON - 1], NOON,
         capped(1, 1, NOON - 1 + H))

# ---- Verdicts

sentence("a shadow rule never caps", [rule(limit=0, mode="shadow")], [], NOON,
         {"allowed": True, "eligible_at": NOON, "rules": {"r": {"stands_in_way": True}}})
sentence("eligible: the rule ends first", [rule(end=at(NOON + 5))], [NOON - 1], NOON,
         capped(1, 1, NOON + 5))
sentence("eligible: it is replaced first", [rule(), rule("s", 9, segment="s", start=at(NOON + 5))],
         [NOON - 1], NOON, capped(1, 1, NOON + 5), segments=["s"])
sentence("eligible: put aside first", [rule(target="*"), rule("s", None, start=at(NOON + 5))],
         [NOON - 1], NOON, capped(1, 1, NOON + 5))
sentence("limit 0: none when never", [rule(limit=0)], [], NOON, capped(0, 0, None))
sentence("limit 0 until replaced",
         [rule(limit=0), rule("s", None, segment="s", start=at(NOON + 5))], [], NOON,
         capped(0, 0, NOON + 5), segments=["s"])
sentence("starts are foreseen", [rule(), rule("q", 0, start=at(NOON + 5), end=at(NOON + 2 * H))],
         [NOON - 1], NOON, {"rule": "r", "eligible_at": NOON + 2 * H,
                            "rules": {"r": {"eligible_at": NOON - 1 + H}}})
sentence("a gap between two rules is enough", [rule("x", 0, end=at(NOON + 5)),
                                               rule("y", 0, start=at(NOON + 6))], [], NOON,
         capped(0, 0, NOON + 5, "x"))
sentence("no gap", [rule("x", 0, end=at(NOON + 5)), rule("y", 0, start=at(NOON + 5))], [], NOON,
         {"rule": "x", "eligible_at": None, "rules": {"x": {"eligible_at": NOON + 5}}})
sentence("a replacement's end is foreseen",
         [rule("gen", 0), rule("seg", 1, segment="s", end=at(NOON + 5))], [NOON - 1], NOON,
         {"rule": "seg", "eligible_at": None, "rules": {"seg": {"eligible_at": NOON + 5}}},
         segments=["s"])
sentence("the latest eligible_at names the rule", [rule("x"), rule("y", 1, "sliding 2h")],
         [NOON - 1], NOON, capped(1, 1, NOON - 1 + 2 * H, "y"))
sentence("none is latest", [rule("x", 0, "sliding 1ms"), rule("y", 1, "sliding 2h")], [NOON - 1],
         NOON, capped(1, 0, None, "x") | {"count": 0})
sentence("ties by smallest id", [rule("y"), rule("x"), rule("w", mode="shadow")], [NOON - 1], NOON,
         capped(1, 1, NOON - 1 + H, "x"))
sentence("the limit-th newest entry decides", [rule(limit=2)],
         [NOON - 9, NOON - 8, NOON - 7, NOON - 6], NOON, capped(4, 2, NOON - 7 + H))


# ---- Comparing


def found_wrong(case, want, errors, program):
    """What is wrong with the program's answer; empty when nothing."""
    try:
        answers, refused = program.ask(case)
    except fuzz.Difference as difference:
        return "" if want is None and "exit code" in str(difference) else str(difference)
    if want is None:
        return "taken, should be refused"
    if refused != (errors or 0):
        return f"{refused} messages refused, expected {errors or 0}"
    (verdict,) = answers[0]["verdicts"]
    wrong = []
    for member, value in want.items():
        if member == "rules":
            wrong += _wrong_rules(verdict["rules"], value)
        elif member == "replaced":
            replaced = sorted(r["id"] for r in verdict.get("replaced", []))
            wrong += [f"replaced {replaced}"] if replaced != value else []
        elif verdict.get(member) != value:
            wrong.append(f"{member} is {verdict.get(member)}, expected {value}")
    return "; ".join(wrong)


def _wrong_rules(rules, want):
    if len(rules) != len(want):
        return [f"rules {[(r['id'], r['target']) for r in rules]}, expected {list(want)}"]
    wrong = []
    for name in want:
        id, _, target = name.partition("@")
        same = [r for r in rules if r["id"] == id and (not target or r["target"] == target)]
        if len(same) != 1:
            wrong.append(f"no single rule {name}")
            continue
        for member, value in want[name].items():
            if same[0][member] != value:
                wrong.append(f"{name}.{member} is {same[0][member]}, expected {value}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fcap", default="build/release/cli/fcap", help="the command under test")
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        program = fuzz.Program(os.path.abspath(options.fcap), directory)
        for text, case, want, errors in CASES:
            wrong = found_wrong(case, want, errors, program)
            if wrong:
                failures += 1
                print(f"--- {text}: {wrong}\n{fuzz.printed(case)}\n")
            elif want is not None:  # the reference has to agree with the program
                try:
                    fuzz.compare(case, program)
                except fuzz.Difference as difference:
                    failures += 1
                    print(f"--- {text}: the reference differs: {difference}\n")
    print(f"{len(CASES)} cases, {failures} wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
