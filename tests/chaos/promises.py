"""What hard calls and reserved pages have promised, judged by what they answered. Redis may have lost what
a call has written: only a fault that can take it explains that, and only until the event is back from Kafka.

All times are ms since 1970, of this machine's one clock."""
import bisect
import collections
import dataclasses

from resp import slot_of

LIFE_MAX = 15 * 60_000  # of a reservation, where the call does not say less
GAP_NOTICED = 30_000  # from when a gap is seen until every Checker must know of it
DECIDED = ("done", "repeated", "capped", "released")


@dataclasses.dataclass(frozen=True)
class Call:
    """One call, or one slot of a page. `campaign`: "" of a slot that stays empty."""
    kind: str  # reserve, record, page, release, note, take_back
    user: str
    campaign: str
    event: str
    began: float
    answered: float
    reason: str
    outcome: str  # allowed, refused, unknown
    time: int = 0
    expires: int = 0  # 0: an entry
    life: int = LIFE_MAX  # what was asked for

    def __str__(self):
        return f"{self.kind} {self.campaign or self.user} {self.event} {self.reason} {self.outcome} {self.time} {self.expires}"

    def grants(self):
        return self.kind in ("reserve", "record", "page") and self.outcome == "allowed"

    def may_last_until(self):
        """Until when what it may have written counts; an entry counts for as long as a run lasts."""
        if self.kind in ("release", "take_back") or self.outcome == "refused":
            return 0
        if self.kind == "record" or self.outcome == "allowed" and self.kind != "note" and not self.expires:
            return float("inf")
        return self.expires or self.answered + self.life


@dataclasses.dataclass
class Loss:
    """A fault that takes what Redis was told from `since` to `end`, of the users in these slots of a cluster; None: of all."""
    what: str
    began: float
    since: float = 0.0
    end: float = float("inf")
    slots: set = None

    def concerns(self, user):
        return self.slots is None or slot_of(user) in self.slots


@dataclasses.dataclass
class Published:
    campaign: str
    sent: float
    delivered: float = float("inf")


class Memory:
    """What Redis must still know. Claims: when the updaters said up to when everything is counted."""

    def __init__(self, losses, claims):
        self.losses = sorted(losses, key=lambda loss: loss.began)
        self.claims = []
        for claim in claims:
            if not self.claims or claim[1] > self.claims[-1][1]:
                self.claims.append(claim)

    def of(self, user):
        """What it must still know of a user."""
        mine = Memory([loss for loss in self.losses if loss.concerns(user)], [])
        mine.claims = self.claims
        return mine

    def counted(self, delivered):
        """When the updaters had certainly counted what Kafka had then; infinity: they have not said so."""
        place = bisect.bisect_right(self.claims, delivered, key=lambda claim: claim[1])
        return self.claims[place][0] if place < len(self.claims) else float("inf")

    def lost_by(self, written, until, delivered=float("inf")):
        """What has taken something that was in Redis at `written` and is not back from Kafka at `until`; None: it is there."""
        for loss in self.losses:
            if loss.began > until:
                break
            if loss.since <= written <= loss.end:
                written = self.counted(max(delivered, loss.end))
                if written > until:
                    return loss
        return None


class Identity:
    """The calls with one event id, in the order in which they began, and what became of the impression."""

    def __init__(self, memory):
        self.memory, self.calls, self.published = memory, [], None

    def grant(self, until, campaign=None):
        """The last one that was answered by then."""
        return max((call for call in self.calls if call.grants() and call.answered <= until and campaign in (None, call.campaign)),
                   key=lambda call: call.answered, default=None)

    def delivered(self):
        """When Kafka had its event."""
        return self.published.delivered if self.published else float("inf")

    def counts(self, campaign, begin, end):
        """(whether it must count for the campaign from `begin` to `end`, the loss that alone excuses it)."""
        if self.published and self.published.campaign == campaign:
            back = self.memory.counted(self.delivered())
            if back <= begin and not self.memory.lost_by(back, end, self.delivered()):
                return True, None
        grant = self.grant(begin, campaign)
        if grant is None or grant.expires and (grant.expires <= end or self.release_began(end)):
            return False, None
        loss = self.memory.lost_by(grant.answered, end, self.delivered())
        return loss is None, loss

    def may_count(self, campaign, begin, end):
        if self.published and self.published.campaign == campaign and self.published.sent <= end:
            return True
        if self.released(begin, end):
            return False
        return any(call.campaign == campaign and call.began <= end and call.may_last_until() > begin for call in self.calls)

    def release_began(self, until):
        return any(call.kind in ("release", "take_back") and call.began <= until for call in self.calls)

    def released(self, begin, end):
        """Whether Redis must know of a release from `begin` to `end`."""
        return any(call.kind == "release" and call.outcome == "allowed" and call.answered <= begin
                   and not self.memory.lost_by(call.answered, end) for call in self.calls)


class Promises:
    """`differs(kind, what)` is told what was broken. `published`: by (user, event). `gaps`: (when one was first seen, and last)."""

    def __init__(self, calls, published, memory, gaps, limit, differs):
        self.gaps, self.limit, self.differs = gaps, limit, differs
        self.identities = {}  # by (user, event)
        self.campaigns = collections.defaultdict(set)  # their identities, by user and campaign
        self.over = collections.Counter()  # grants beyond a limit, by the fault that explains them
        memories = {user: memory.of(user) for user in {call.user for call in calls}}
        for call in sorted(calls, key=lambda call: call.began):
            name = call.user, call.event
            identity = self.identities.setdefault(name, Identity(memories[call.user]))
            identity.calls.append(call)
            identity.published = published.get(name)
            if call.campaign:
                self.campaigns[call.user, call.campaign].add(identity)

    def judge(self):
        for identity in self.identities.values():
            for place, call in enumerate(identity.calls):
                self.judge_form(call)
                if call.kind in ("reserve", "record", "page") and call.reason in DECIDED and call.outcome != "unknown":
                    self.judge_repetition(identity, call)
                    self.judge_count(identity, identity.calls[:place], call)

    def judge_form(self, call):
        if call.grants() and call.reason not in ("done", "repeated"):
            self.differs("calls that were allowed although they were not decided", str(call))
        if call.grants() and call.kind != "record" and call.reason == "done" and any(
                since + GAP_NOTICED < call.began and call.answered < until for since, until in self.gaps):
            self.differs("calls that were decided while a gap was open", str(call))

    def judge_repetition(self, identity, call):
        published = identity.published and identity.published.sent <= call.answered
        if not published and call.reason != "released" and identity.released(call.began, call.answered):
            self.differs("released event ids that were not refused as such", str(call))
        if call.reason == "released" and not identity.release_began(call.answered):
            self.differs("event ids that are called released, and nobody released them", str(call))
        first = identity.grant(call.began)
        if (first is None or first.expires and first.expires <= call.answered or identity.release_began(call.answered)
                or identity.memory.lost_by(first.answered, call.answered, identity.delivered())):
            return
        same = call.outcome == "allowed" and call.campaign == first.campaign and call.time == first.time
        if not same or call.expires not in (first.expires, 0) or call.kind == "reserve" and call.reason != "repeated":
            self.differs("repetitions that gave another answer", f"{call}, first {first}")

    def judge_count(self, identity, earlier, call):
        """Judges a grant that nothing explains but the rules, and a refusal."""
        others = self.campaigns[call.user, call.campaign] - {identity}
        if call.reason == "done" and call.outcome == "allowed":
            if any(before.may_last_until() > call.began for before in earlier):
                return  # it was decided before
            found = [other.counts(call.campaign, call.began, call.answered) for other in others]
            certain, excused = sum(counts for counts, _ in found), [loss for _, loss in found if loss]
            if certain >= self.limit:
                self.differs("limits that were exceeded", f"{call} beside {certain} of a limit of {self.limit}")
            elif certain + len(excused) >= self.limit:
                self.over[excused[0].what] += 1
        elif call.reason == "capped" and call.kind != "page":
            possible = sum(other.may_count(call.campaign, call.began, call.answered) for other in others)
            if possible < self.limit:
                self.differs("refusals below the limit", f"{call} beside {possible} of a limit of {self.limit}")

    def judge_record(self, user, record, now, names):
        """That the user's record holds all that it must, and no reservation that nobody made. `names`: of an identity's campaign
        and event, as records have them."""
        mine = {names(campaign, event): (identity, campaign) for (owner, event), identity in self.identities.items() if owner == user
                for campaign in {call.campaign for call in identity.calls if call.campaign}}
        for name in record.reservations:
            if name not in mine:
                self.differs("reservations that nobody made", f"{user}: {name}")
        for name, (identity, campaign) in mine.items():
            found, grant = record.reservations.get(name), identity.grant(now, campaign)
            if grant is None or name in record.entries:
                continue
            if identity.released(now, now) and not (found and found.released):
                self.differs("releases that were lost", f"{user}: {found}, {grant}")
            if identity.counts(campaign, now, now + 1000)[0] and (
                    found is None or found.released or (found.time, found.expires) != (grant.time, grant.expires)):
                self.differs("reservations that were lost or changed", f"{user}: {found}, {grant}")
