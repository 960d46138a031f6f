"""A user's history from event messages, written from the specification alone."""

import dataclasses
import decimal
import fractions
import json
import math
import struct

EVENT_TYPES = ["impression", "click", "viewable", "conversion"]
NULL_USER_IDS = ["", "00000000-0000-0000-0000-000000000000"]
_ID_BYTES_MAX = 256
_TIME_MAX = (1 << 48) - 1  # the last a record can hold, in the year 10889; a later one becomes it


# ---- Hashes: only the order of creative hashes is observable -----------------------------------

_XXH3_SECRET = bytes.fromhex("b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db")
_MASK = (1 << 64) - 1


def creative_hash(creative):
    """The low 48 bits of XXH3-64, for texts of 1 to 8 bytes."""
    data = creative.encode()
    if len(data) <= 3:
        word = data[0] << 16 | data[len(data) >> 1] << 24 | data[-1] | len(data) << 8
        a, b = struct.unpack_from("<II", _XXH3_SECRET)
        h = word ^ a ^ b
        h = (h ^ h >> 33) * 0xC2B2AE3D27D4EB4F & _MASK
        h = (h ^ h >> 29) * 0x165667B19E3779F9 & _MASK
        return (h ^ h >> 32) & (1 << 48) - 1
    assert len(data) <= 8, "the oracle's creatives are short"
    (a,), (b,) = struct.unpack("<I", data[:4]), struct.unpack("<I", data[-4:])
    c, d = struct.unpack_from("<QQ", _XXH3_SECRET, 8)
    h = (b + (a << 32)) ^ c ^ d
    h ^= _rotated(h, 49) ^ _rotated(h, 24)
    h = h * 0x9FB21C651E98DF25 & _MASK
    h = (h ^ (h >> 35) + len(data)) * 0x9FB21C651E98DF25 & _MASK
    return (h ^ h >> 28) & (1 << 48) - 1


def _rotated(h, bits):
    return (h << bits | h >> 64 - bits) & _MASK


# ---- Events ------------------------------------------------------------------------------------


class NoEvent(Exception):
    """The message belongs into the dead-letter topic."""


class Nobodys(Exception):
    """An event of the empty, null or configured null user: passed over."""


@dataclasses.dataclass(frozen=True)
class Event:
    user: str
    campaign: str
    event_type: str  # or "erasure"
    event_id: str
    time: int
    creative: str  # "" for none


def decoded(line):
    """The event of one message, a line of bytes. Raises NoEvent or Nobodys."""
    try:
        message = json.loads(
            line.decode("utf-8"), parse_float=decimal.Decimal, parse_constant=_no_constant
        )
        json.dumps(message, ensure_ascii=False, default=str).encode()  # half a surrogate pair
    except (ValueError, RecursionError) as error:
        raise NoEvent("not_json") from error
    if not isinstance(message, dict):
        raise NoEvent("not_an_object")
    ids = ["user_id", "campaign_id", "creative_id", "imp_id", "event_id"]
    text = {name: _optional_text(message, name) for name in ids}
    for name in ids:
        if len(text[name].encode()) > _ID_BYTES_MAX:
            raise NoEvent("id_too_long")
    event_type = message.get("type")
    if event_type is None:
        event_type = "impression"
    if not isinstance(event_type, str):
        raise NoEvent("wrong_type")
    if event_type not in EVENT_TYPES + ["erasure"]:
        raise NoEvent("unknown_type")
    if "user_id" not in message:
        raise NoEvent("missing_member")
    event_id = text["event_id"] or text["imp_id"]
    if event_type != "erasure" and not (text["campaign_id"] and event_id):
        raise NoEvent("missing_member")
    time = _time_of(message.get("timestamp"))
    if text["user_id"] in NULL_USER_IDS:
        raise Nobodys()
    return Event(
        text["user_id"], text["campaign_id"], event_type, event_id, time, text["creative_id"]
    )


def _no_constant(name):
    raise ValueError(name)


def _optional_text(message, name):
    value = message.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise NoEvent("wrong_type")
    return value


def _time_of(timestamp):
    if isinstance(timestamp, bool) or not isinstance(timestamp, (int, decimal.Decimal)):
        raise NoEvent("missing_member" if timestamp is None else "wrong_type")
    if isinstance(timestamp, decimal.Decimal) and abs(timestamp.adjusted()) > 400:
        raise NoEvent("bad_timestamp")
    exact = fractions.Fraction(timestamp)
    time = math.floor(exact * 1000 if exact <= 10**11 else exact)
    if not 0 < time < 10**18:
        raise NoEvent("bad_timestamp")
    return min(time, _TIME_MAX)


# ---- The ledger --------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Entry:
    campaign: str
    event_type: str
    time: int
    creative: str


AHEAD_MAX = 300_000  # beyond that, a reservation does not count yet


@dataclasses.dataclass(frozen=True)
class Reservation:
    """An event that is expected. `entry_time`: of its identity's entry; None: there is none."""

    campaign: str
    event_type: str
    time: int
    creative: str
    expires: int
    released: bool = False
    entry_time: int | None = None

    def live(self, at, retention):
        confirmed = self.entry_time is not None and at - retention < self.entry_time
        expected = at < self.expires and self.time <= at + AHEAD_MAX
        return expected and not self.released and not confirmed


class Ledger:
    """One user's record: entries and reservations by identity, and an erased-before mark."""

    def __init__(self):
        self._by_identity = {}
        self._reserved = {}
        self._erased_until = 0

    def add(self, event):
        if event.event_type == "erasure":
            self._erased_until = max(self._erased_until, event.time)
            return
        identity = (event.campaign, event.event_type, event.event_id)
        entry = Entry(event.campaign, event.event_type, event.time, event.creative)
        self._by_identity[identity] = max(
            entry, self._by_identity.get(identity, entry), key=_precedence
        )

    def reserve(self, event, expires, released):
        """One copy of a reservation, for the impression (or whatever) that `event` describes."""
        identity = (event.campaign, event.event_type, event.event_id)
        copy = Reservation(
            event.campaign, event.event_type, event.time, event.creative, expires, released
        )
        known = self._reserved.get(identity, copy)
        self._reserved[identity] = dataclasses.replace(
            max(copy, known, key=_precedence),
            expires=max(copy.expires, known.expires),
            released=copy.released or known.released,
        )

    def erased_until(self):
        return self._erased_until

    def of(self, event):
        """(the entry of this event's identity, or None; its reservation, or None)."""
        identity = (event.campaign, event.event_type, event.event_id)
        entry = self._by_identity.get(identity)
        reservation = self._reserved.get(identity)
        return (
            entry if entry and entry.time > self._erased_until else None,
            reservation if reservation and reservation.time > self._erased_until else None,
        )

    def holds_impression(self, event_id, at):
        """Whether an impression of any campaign is there under this id, or reserved and not over."""
        def mine(identity, known):
            return identity[1:] == ("impression", event_id) and known.time > self._erased_until
        return any(mine(*each) for each in self._by_identity.items()) or any(
            mine(identity, known) and not known.released and at < known.expires
            for identity, known in self._reserved.items())

    def entries(self):
        return [e for e in self._by_identity.values() if e.time > self._erased_until]

    def reservations(self, known_until=math.inf):
        """Each with the time of its entry, if there is one by this instant; without later ones."""
        found = []
        for identity, reservation in self._reserved.items():
            if not self._erased_until < reservation.time <= known_until:
                continue
            entry = self._by_identity.get(identity)
            confirmed = entry and self._erased_until < entry.time <= known_until
            entry_time = entry.time if confirmed else None
            found.append(dataclasses.replace(reservation, entry_time=entry_time))
        return found


def _precedence(entry):
    """The later time; then a present creative; then the larger hash."""
    return (entry.time, entry.creative != "", entry.creative and creative_hash(entry.creative))


def ledgers_of(lines):
    """(user -> Ledger, number of messages that are no events)."""
    ledgers, refused = {}, 0
    for line in lines:
        if not line.strip(b" \t\r"):
            continue  # of a file: an empty line is no message
        try:
            event = decoded(line)
        except NoEvent:
            refused += 1
        except Nobodys:
            pass
        else:
            ledgers.setdefault(event.user, Ledger()).add(event)
    return ledgers, refused
