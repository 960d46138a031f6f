"""What happens to whom, and when: computed from the seed alone, before anything runs.

A run consists of rounds. In a round each lane (one server, one connection, one setting) suffers one fault after the other, and
the lanes do so side by side. Each lane deals its faults from a shuffled deck, so that all of them come up."""
import dataclasses
import random

ROUND_SECONDS = 60
QUIET_AT_THE_END = 5  # of a round: no fault lasts into it, if servers start as quickly as they should

# Lane: kind, the shortest and the longest it lasts in seconds, how often it is in the deck.
UPDATER = [("kill", 0, 3, 3), ("freeze past the session", 7, 12, 1), ("stop", 0, 3, 1)]
LINK = [("cut", 0, 0, 2), ("delay", 2, 6, 1), ("silence", 2, 6, 1), ("silence for long", 18, 22, 1), ("drop", 2, 6, 1)]
COMMON = {
    "updater 1": UPDATER,
    "updater 2": UPDATER,
    "updater 3": [("join", 10, 16, 2), ("join with a clock ahead", 10, 16, 1), ("join with a clock behind", 10, 16, 1)],
    "another group": UPDATER,
    "redis account": [("revoke appending", 2, 6, 1), ("revoke appending for long", 18, 22, 1), ("revoke scripts", 2, 6, 1), ("revoke reading", 2, 6, 1),
                      ("flush scripts", 0, 0, 1), ("cut clients", 0, 0, 1)],
    "broker": [("kill", 0, 3, 2), ("freeze", 3, 10, 1), ("freeze for long", 18, 22, 1), ("kill for long", 16, 20, 1),
               ("throttle", 4, 8, 1)],
    "link to the broker": LINK,
    "rules": [("kill", 0, 3, 2), ("freeze", 3, 10, 1), ("cut sessions", 0, 0, 1), ("delete all", 2, 6, 1), ("add a bad one", 2, 6, 1)],
    "dead letters": [("delete the topic", 4, 10, 1)],
}
LANES = {
    "single": COMMON | {
        "redis": [("kill", 0, 3, 2), ("restart with an old snapshot", 2, 6, 2), ("freeze", 2, 8, 1), ("freeze for long", 18, 22, 1),
                  ("throttle", 4, 8, 1), ("flush all", 0, 0, 1), ("fill up", 2, 6, 1)],
        "link to redis": LINK},
    "sentinel": COMMON | {
        "redis": [("kill the master", 3, 6, 3), ("fail over to a held-back replica", 2, 5, 2), ("freeze the master", 4, 8, 1),
                  ("fail over", 0, 0, 1), ("kill a replica", 1, 4, 1), ("freeze a replica", 2, 6, 1), ("flush all", 0, 0, 1),
                  ("throttle", 4, 8, 1), ("fill up", 2, 6, 1)],
        "sentinels": [("kill one", 2, 6, 2), ("freeze one", 2, 6, 1)]},
    "cluster": COMMON | {
        "shards": [("kill a master", 3, 6, 3), ("fail over to a held-back replica", 2, 5, 2), ("freeze a master", 2, 5, 1),
                   ("fail over in order", 0, 0, 1), ("kill a replica", 1, 4, 1), ("freeze a replica", 2, 6, 1),
                   ("flush a shard", 0, 0, 1), ("throttle a master", 4, 8, 1), ("fill up a shard", 2, 6, 1)],
        # Not what would keep the replica of a lost master from taking over.
        "another shard": [("freeze a master shortly", 1, 3, 2), ("freeze a replica", 2, 6, 1), ("throttle a master", 4, 8, 1),
                          ("fill up a shard", 2, 6, 1)],
        "slots": [("move there and back", 4, 8, 1)]}}
KILLS = ("kill", "snapshot", "held-back")
CI_SEED = 949  # in its first two rounds nearly every kind of fault comes up
RECREATED = 4  # the topic is recreated before every fourth round, beginning with the second
ONCE = ("dead letters",)  # a round: what a fault of these lanes takes is not judged


@dataclasses.dataclass(frozen=True)
class Fault:
    at: float  # seconds from the beginning of its round
    lane: str
    kind: str
    lasts: float  # seconds
    chance: int  # for choices that cannot be made before: which replica, and so on

    def __str__(self):
        lasts = f" for {self.lasts:.1f} s" if self.lasts else ""
        return f"{self.at:5.1f} s  {self.lane}: {self.kind}{lasts}"


@dataclasses.dataclass(frozen=True)
class Round:
    number: int
    recreated: bool  # whether the topic is deleted and made again before it
    faults: list

    def __str__(self):
        begins = f"round {self.number}" + (", in a topic made again" if self.recreated else "")
        return "\n".join([begins, *(f"  {fault}" for fault in self.faults)])


def lane_faults(chance, lane, kinds):
    """Without end: (round, fault)."""
    deck, number, at = [], 0, chance.uniform(1, 12)
    while True:
        if not deck:
            deck = [kind for kind in kinds for _ in range(kind[3])]
            chance.shuffle(deck)
        kind, shortest, longest, _ = deck[-1]
        lasts = round(chance.uniform(shortest, longest), 1)
        if at + lasts > ROUND_SECONDS - QUIET_AT_THE_END:
            number, at = number + 1, chance.uniform(1, 12)
            continue
        deck.pop()
        yield number, Fault(round(at, 1), lane, kind, lasts, chance.randrange(1 << 16))
        at += lasts + chance.uniform(5, 20)


def schedule(seed, redis, rounds):
    """The first rounds of this seed. More rounds begin with the same ones."""
    planned = [[] for _ in range(rounds)]
    for lane, kinds in LANES[redis].items():
        for number, fault in lane_faults(random.Random(f"{seed} {redis} {lane}"), lane, kinds):
            if number >= rounds:
                break
            rests = lane == "another group" and not has_another_group(number)
            if not rests and not (lane in ONCE and any(other.lane == lane for other in planned[number])):
                planned[number].append(fault)
    return [Round(number, number % RECREATED == 1, sorted(faults, key=lambda fault: fault.at))
            for number, faults in enumerate(planned)]


def has_another_group(number):
    """Whether a second group writes the same events in this round. What the first one has lost would be there then."""
    return number % 2 == 1


def is_kill(fault):
    return any(word in fault.kind for word in KILLS)
