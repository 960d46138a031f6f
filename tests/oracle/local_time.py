"""Calendar units by their definition, over zoneinfo's offsets.

An instant is a whole number of milliseconds since 1970 everywhere in this oracle.
"""

import bisect
import datetime
import functools
import zoneinfo

MS_PER_HOUR = 3_600_000
MS_PER_DAY = 24 * MS_PER_HOUR
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_EPOCH_ORDINAL = datetime.date(1970, 1, 1).toordinal()
_PROBE_S = 2 * 3600  # no zone changes its offset twice within so short a time
WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class Zone:
    """One IANA zone. Local times are milliseconds since 1970-01-01T00:00 on the local clock."""

    def __init__(self, name):
        self._tz = zoneinfo.ZoneInfo(name)
        self._year_changes = functools.lru_cache(None)(self._find_year_changes)

    def _offset_s(self, at_s):
        moment = _EPOCH + datetime.timedelta(seconds=at_s)
        return int(moment.astimezone(self._tz).utcoffset().total_seconds())

    def offset(self, at):
        return self._offset_s(at // 1000) * 1000

    def local(self, at):
        return at + self.offset(at)

    def _find_year_changes(self, year):
        """Instants (seconds) in this UTC year at which the offset changes."""
        begin = (datetime.date(year, 1, 1).toordinal() - _EPOCH_ORDINAL) * 86400
        end = (datetime.date(year + 1, 1, 1).toordinal() - _EPOCH_ORDINAL) * 86400
        changes = []
        for low in range(begin, end, _PROBE_S):
            high = min(low + _PROBE_S, end)
            before, after = self._offset_s(low - 1), self._offset_s(high - 1)
            if before == after:
                continue
            first, last = low - 1, high - 1  # the offset differs: halve until the second is found
            while last - first > 1:
                middle = (first + last) // 2
                if self._offset_s(middle) == before:
                    first = middle
                else:
                    last = middle
            changes.append(last)
        return changes

    def changes(self, begin, end):
        """Instants in (begin, end] at which the offset changes, ascending."""
        years = range(_year(begin), _year(end) + 1)
        found = [s * 1000 for year in years for s in self._year_changes(year)]
        return found[bisect.bisect_right(found, begin) : bisect.bisect_right(found, end)]


@functools.lru_cache(None)
def zone(name):
    return Zone(name)


def _year(at):
    return (_EPOCH + datetime.timedelta(milliseconds=at)).year


def _first_instant_with_date(tz, day):
    """The first instant whose local date is `day` (days since 1970) or later."""
    wanted = day * MS_PER_DAY
    begin, end = wanted - 3 * MS_PER_DAY, wanted + 3 * MS_PER_DAY
    pieces = [begin] + tz.changes(begin, end) + [end]
    for piece_begin, piece_end in zip(pieces, pieces[1:]):
        reached = max(piece_begin, wanted - tz.offset(piece_begin))
        if reached < piece_end:
            return reached
    raise AssertionError("a date that is never reached")


def _is_first_date(unit, week_start, day):
    date = datetime.date.fromordinal(day + _EPOCH_ORDINAL)
    if unit == "week":
        return date.weekday() == WEEKDAYS.index(week_start)
    return unit == "day" or date.day == 1


@functools.lru_cache(200_000)
def unit_around(zone_name, unit, week_start, at):
    """(start of the unit that `at` lies in, start of the next one)."""
    tz = zone(zone_name)
    if unit == "hour":
        return _hour_around(tz, at)
    today = tz.local(at) // MS_PER_DAY
    start, day = None, today + 3  # later than any date that `at` can have reached
    following = None
    while True:
        if _is_first_date(unit, week_start, day):
            first = _first_instant_with_date(tz, day)
            if first <= at:
                start = first
                break
            following = first
        day -= 1
    day = today
    while following is None or following <= at:
        day += 1
        if _is_first_date(unit, week_start, day):
            first = _first_instant_with_date(tz, day)
            if first > at:
                following = first
    return start, following


def _hour_around(tz, at):
    starts = _hour_starts(tz, at - 3 * MS_PER_HOUR, at + 3 * MS_PER_HOUR)
    return max(s for s in starts if s <= at), min(s for s in starts if s > at)


def _hour_starts(tz, begin, end):
    """All instants at which an hour starts: at hh:00, or where a jump changes the hour."""
    changes = tz.changes(begin, end)
    starts = {c for c in changes if tz.local(c - 1) // MS_PER_HOUR != tz.local(c) // MS_PER_HOUR}
    pieces = [begin] + changes + [end]
    for piece_begin, piece_end in zip(pieces, pieces[1:]):
        offset = tz.offset(piece_begin)
        full = -(-(piece_begin + offset) // MS_PER_HOUR) * MS_PER_HOUR - offset
        starts.update(range(full, piece_end, MS_PER_HOUR))
    return starts
