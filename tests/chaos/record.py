"""A user's record, read as docs/ledger-format.md describes it: apart from the product's own decoder, so that the judge does not
share its mistakes."""
import collections
import ctypes

XXH3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
XXH3.restype, XXH3.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
TYPES = ["impression", "click", "viewable", "conversion"]
ENTRY, RUNS, ERASED_BEFORE, COMPLETE_SINCE, RESERVATION = 1, 2, 3, 4, 5

Reservation = collections.namedtuple("Reservation", "time creative expires released")


class Malformed(Exception):
    """The bytes are not a record."""


def id_hash(text):
    """The hash of a campaign's or creative's id; 0 where there is none."""
    data = text.encode()
    return (XXH3(data, len(data)) & (1 << 48) - 1) or 1 if data else 0


def fingerprint(event_id):
    data = event_id.encode()
    return XXH3(data, len(data)) & (1 << 32) - 1


class Record:
    """What a record says: entries by identity (campaign, type, fingerprint), each a (time, creative), and reservations."""

    def __init__(self, data=b""):
        self.entries, self.reservations, self.erased_before, self.complete_since = {}, {}, 0, 0
        at = 0
        while at < len(data):
            tag = data[at]
            length, at = leb128(data, at + 1)
            payload, at = data[at:at + length], at + length
            if len(payload) != length:
                raise Malformed("a frame is longer than the record")
            self.read_frame(tag, payload)
        self.entries = {identity: value for identity, value in self.entries.items() if value[0] > self.erased_before}
        self.reservations = {identity: one for identity, one in self.reservations.items() if one.time > self.erased_before}

    def count(self, campaign, now):
        """How many impressions of a campaign count at this instant, live reservations among them."""
        ahead = now + 5 * 60_000
        reserved = {identity for identity, one in self.reservations.items()
                    if not one.released and now < one.expires and one.time <= ahead}
        return sum(identity[:2] == (campaign, 0) for identity in {*self.entries, *reserved})

    def read_frame(self, tag, payload):
        if tag == ENTRY:
            self.read_entry(payload)
        elif tag == RUNS:
            self.read_runs(Columns(payload))
        elif tag == RESERVATION:
            self.read_reservation(payload)
        elif tag in (ERASED_BEFORE, COMPLETE_SINCE) and len(payload) == 6:
            name = "erased_before" if tag == ERASED_BEFORE else "complete_since"
            setattr(self, name, max(getattr(self, name), number(payload)))
        else:
            raise Malformed(f"a frame with the tag {tag} and {len(payload)} bytes")

    def add(self, campaign, event_type, print_, time, creative):
        identity = (campaign, event_type, print_)
        self.entries[identity] = max(self.entries.get(identity, (0, 0)), (time, creative))

    def read_entry(self, payload):
        flags = payload[0] if payload else 0xff
        if flags & ~7 or len(payload) != (23 if flags & 4 else 17):
            raise Malformed("an entry of the wrong length or with unknown flags")
        creative = number(payload[17:])
        self.add(number(payload[1:7]), flags & 3, number(payload[13:17]), number(payload[7:13]), creative)

    def read_reservation(self, payload):
        flags = payload[0] if payload else 0xff
        if flags & ~0xf or len(payload) != (27 if flags & 4 else 21):
            raise Malformed("a reservation of the wrong length or with unknown flags")
        identity, time = (number(payload[1:7]), flags & 3, number(payload[13:17])), number(payload[7:13])
        one = Reservation(time, number(payload[21:]), time + number(payload[17:21]), bool(flags & 8))
        known = self.reservations.get(identity, one)
        self.reservations[identity] = Reservation(*max(known[:2], one[:2]), max(known.expires, one.expires),
                                                  known.released or one.released)

    def read_runs(self, columns):
        flags = columns.bytes(1)[0]
        if flags & ~0x3f or (flags & 4 and flags & 3):
            raise Malformed("runs with unknown flags")
        width = 3 + (flags >> 4 & 3)
        base = 0 if width == 6 else 1000 * number(columns.bytes(4))
        runs = columns.leb128()
        lengths = [1 + length for length in columns.packed(runs, 4)]
        types = columns.packed(runs, 2) if flags & 4 else [flags & 3] * runs
        lengths = [16 + columns.leb128() if length == 16 else length for length in lengths]
        campaigns = columns.numbers(6, runs)
        times = columns.numbers(width, sum(lengths))
        prints = columns.numbers(4, sum(lengths))
        creatives = columns.creatives(sum(lengths)) if flags & 8 else [0] * sum(lengths)
        columns.end()
        at = 0
        for campaign, event_type, length in zip(campaigns, types, lengths):
            for place in range(at, at + length):
                self.add(campaign, event_type, prints[place], base + times[place], creatives[place])
            at += length


class Columns:
    """The payload of a runs frame, read from its beginning."""

    def __init__(self, payload):
        self.payload, self.at = payload, 0

    def bytes(self, count):
        found = self.payload[self.at:self.at + count]
        if len(found) != count:
            raise Malformed("a column is longer than its frame")
        self.at += count
        return found

    def leb128(self):
        value, self.at = leb128(self.payload, self.at)
        return value

    def packed(self, count, bits):
        per_byte = 8 // bits
        data = self.bytes(-(-count // per_byte))
        return [data[n // per_byte] >> bits * (n % per_byte) & (1 << bits) - 1 for n in range(count)]

    def numbers(self, width, count):
        data = self.bytes(width * count)
        return [number(data[at:at + width]) for at in range(0, len(data), width)]

    def creatives(self, entries):
        known = [0, *self.numbers(6, self.leb128())]
        width = 1 if len(known) <= 256 else 2 if len(known) <= 65536 else 4
        places = self.numbers(width, entries)
        if max(places) >= len(known):
            raise Malformed("an entry's creative is not in the list")
        return [known[place] for place in places]

    def end(self):
        if self.at != len(self.payload):
            raise Malformed("bytes behind the columns")


def number(data):
    return int.from_bytes(data, "little")


def leb128(data, at):
    value, shift = 0, 0
    while True:
        if at >= len(data) or shift > 28:
            raise Malformed("a length without an end")
        value |= (data[at] & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at
