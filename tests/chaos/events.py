"""The messages of a run. Which message comes at which place follows from the seed alone; only its times depend on the clock. So
the judge makes the same bytes again, and reads them with the reference of tests/oracle, apart from the product.

A campaign's id begins with its user's: nobody else has events of it."""
import collections
import json
import sys

from record import TYPES, fingerprint, id_hash
from services import ROOT

sys.path.append(f"{ROOT}/tests/oracle")
import history
import signed_ids

USERS, CROWDED, CERTAIN = 4000, 2, 200  # usual ones; of thousands of events each; capped before the first fault
CAMPAIGNS = 6
LIMIT = 4  # impressions of any campaign in a day
BATCH = 50  # messages that share the instant at which they were made
MINUTE = 60_000
DAY = 24 * 60 * MINUTE
MASK = (1 << 64) - 1
SIGNING_KEY = "k1"
NOBODY = ["", "00000000-0000-0000-0000-000000000000"]
REFUSED = ["not JSON: {}", '["an array", {}]', '{{"user_id":"u","n":{}}}', '{{"user_id":7,"campaign_id":"c","imp_id":"i","n":{}}}',
           '{{"user_id":"u","campaign_id":"c","imp_id":"{}","timestamp":0}}',
           '{{"user_id":"u","campaign_id":"c","imp_id":"{}","timestamp":1,"type":"view"}}']

Message = collections.namedtuple("Message", "user value dead")  # dead: it belongs into the dead-letter topic


def mixed(number):
    """A number whose bits all depend on all of these."""
    number = (number + 0x9e3779b97f4a7c15) & MASK
    number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9 & MASK
    number = (number ^ number >> 27) * 0x94d049bb133111eb & MASK
    return number ^ number >> 31


class Epoch:
    """The users between two creations of the topic, and their messages, counted from 0."""

    def __init__(self, seed, number, users=USERS):
        self.seed, self.name, self.made_at = mixed(seed * 1000 + number), f"e{number}", []
        self.users, self.crowded_one_in = users, 40 * users // USERS

    def user(self, n):
        chance = mixed(self.seed ^ n)
        if chance % self.crowded_one_in == 0:
            return f"{self.name}-crowded{chance // self.crowded_one_in % CROWDED}"
        return f"{self.name}-u{n % self.users}"

    def certain_user(self, number):
        return f"{self.name}-certain{number}"

    def certain_messages(self, now):
        """What caps the first campaign of each certain user."""
        for number in range(CERTAIN):
            user = self.certain_user(number)
            for shown in range(LIMIT):
                yield Message(user, event(user, 0, f"{user}-{shown}", now - shown * MINUTE), False)

    def batch(self, now):
        """The next messages, made now."""
        first = len(self.made_at) * BATCH
        self.made_at.append(now)
        return [self.message(n) for n in range(first, first + BATCH)]

    def message(self, n):
        now, chance = self.made_at[n // BATCH], mixed(self.seed ^ n) >> 16
        user, kind, chance = self.user(n), chance % 200, chance // 200
        if kind < 20 and n >= self.users:  # one that was sent already, sometimes with a later time; or what became of that one
            return self.again(n - self.users * (1 + chance % min(5, n // self.users)), now if kind < 4 else None)
        if kind < 30:
            return Message(user, self.usual(n, now - chance % (20 * DAY)), False)
        if kind < 32:
            return Message(user, self.usual(n, now - 33 * DAY - chance % DAY), False)  # too old to count
        if kind < 34:
            return Message(user, self.usual(n, now + 3 * DAY), True)  # in the future
        if kind < 36:
            return Message(user, REFUSED[chance % len(REFUSED)].format(f"{self.name}-{n}").encode(), True)
        if kind < 38:
            return Message("", event(NOBODY[chance % 2], 0, f"{n}", now), False)
        if kind == 38 and chance % 4 == 0:
            erasure = {"type": "erasure", "user_id": user, "timestamp": now - chance % MINUTE}
            return Message(user, json.dumps(erasure).encode(), False)
        if kind < 45:
            return self.signed(n, now, forged=kind < 41)
        return Message(user, self.usual(n, now - chance % 5000), False)

    def again(self, n, now):
        if now is None:
            return self.message(n)
        return Message(self.user(n), self.usual(n, now), False)

    def usual(self, n, time):
        chance = mixed(self.seed ^ n ^ 0x5555)
        creative = f"cr{chance % 7}" if chance % 7 < 5 else ""
        event_type = TYPES[max(0, chance // 7 % 16 - 12)]
        return event(self.user(n), chance // 1000 % CAMPAIGNS, f"{self.name}-{n}", time, event_type, creative)


    def signed(self, n, now, forged):
        """An event whose id an ad server signed, for this user or, forged, for another one; or of whose id something was lost."""
        user, chance = self.user(n), mixed(self.seed ^ n ^ 0x7777)
        signed_for = f"{user}-other" if forged and chance % 2 else user
        imp_id = signed_ids.signed(SIGNING_KEY, now - chance % MINUTE, f"{chance >> 8:014x}", signed_for, campaign(user, 1), "")
        if forged and signed_for == user:
            imp_id = imp_id[:40]
        return Message(user, event(user, 1, imp_id, now), forged)


def signing_keys():
    """The key file of the updaters."""
    secret = signed_ids.SECRETS[SIGNING_KEY].hex()
    return {"keys": [{"id": SIGNING_KEY, "secret": secret, "from": "2020-01-01T00:00:00Z"}]}


def is_crowded(user):
    return "-crowded" in user


def campaign(user, number):
    return f"{user}-c{number}"


def event(user, number, imp_id, time, event_type="", creative=""):
    value = f'{{"user_id":"{user}","campaign_id":"{campaign(user, number)}","imp_id":"{imp_id}","timestamp":{time}'
    if event_type:
        value += f',"type":"{event_type}"'
    if creative:
        value += f',"creative_id":"{creative}"'
    return f"{value}}}".encode()


class Expected:
    """What the ledgers must hold: by user, entries by identity (campaign, type, fingerprint), each a (time, creative)."""

    def __init__(self):
        self.entries, self.erased_before = collections.defaultdict(dict), {}
        self.hashes = {}
        self.events = 0

    def add(self, message, oldest, newest):
        """No event outside of these instants may count."""
        try:
            found = history.decoded(message.value)
        except (history.NoEvent, history.Nobodys):
            return
        if found.event_type == "erasure":
            self.erased_before[found.user] = max(self.erased_before.get(found.user, 0), found.time)
        elif oldest < found.time <= newest:
            self.events += 1
            identity = (self.hash(found.campaign), TYPES.index(found.event_type), fingerprint(found.event_id))
            entries, value = self.entries[found.user], (found.time, self.hash(found.creative))
            entries[identity] = max(entries.get(identity, value), value)

    def hash(self, text):
        if text not in self.hashes:
            self.hashes[text] = id_hash(text)
        return self.hashes[text]

    def of(self, user):
        """The entries that were not erased, and until when the others were."""
        until = self.erased_before.get(user, 0)
        return {identity: value for identity, value in self.entries.get(user, {}).items() if value[0] > until}, until
