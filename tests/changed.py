"""Which tests a diff concerns: those of the files that it changes, those that include a header that it changes, and those of the
rooms whose code it changes."""
import contextlib
import glob
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HALF_A_DAY = 12 * 3600  # seconds
# Rooms of code, by how their path begins, and the rooms of tests that say most about them; others have a room of their name.
ROOMS = {
    "include/fcap/": ["checker"],
    "libfcap/postgres/": ["sql"], "libfcap/sources/": ["sources", "sql"], "libfcap/segments/": ["segments", "sql"],
    "libfcap/events/": ["events", "updater"], "libfcap/ledger/": ["ledger", "checker", "updater"],
    "sql/": ["sql"], "redis/": ["redis", "updater"], "kafka/": ["kafka", "updater"],
    "updater/": ["updater", "updater_threads", "model"], "cli/": ["cli"], "scripts/": ["redis", "sql", "updater"]}


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True, check=False).stdout


def last_tested(file):
    """The commit that the file names, if this history has it: the last that CI has passed here. On a machine that knows none, the
    newest one from more than half a day before the last: a diff is hardly older."""
    with contextlib.suppress(OSError):
        with open(file, encoding="utf-8") as known:
            if base := git("merge-base", known.read().strip(), "HEAD").strip():
                return base
    newest = int(git("log", "-1", "--format=%ct") or 0)
    return git("rev-list", "-1", f"--before={newest - HALF_A_DAY}", "HEAD").strip() or "HEAD"


def files_since(base):
    """What differs from `base`, uncommitted and new files included; a file that was only moved does not."""
    lines = git("diff", "-M", "--name-status", base).splitlines()
    changed = [line.split("\t")[-1] for line in lines if not line.startswith("R100")]
    return sorted({*changed, *git("ls-files", "--others", "--exclude-standard").splitlines()})


def includers():
    """For each file of tests/, the files of tests/ that include it."""
    sources = [path for ending in ("h", "cc") for path in glob.glob(f"{ROOT}/tests/**/*.{ending}", recursive=True)]
    named = {}
    for path in sources:
        with open(path, encoding="utf-8") as file:
            for header in re.findall(r'^#include "([^"]+)"', file.read(), re.M):
                named.setdefault(os.path.basename(header), set()).add(path)
    return named


def test_of(path):
    """ctest's name of a file's tests, as tests/CMakeLists.txt gives it; None: it has none."""
    found = re.fullmatch(r"tests/(?:unit/|integration/|)(.+)/(\w+_test)\.(?:cc|sh)", path)
    return f"{found[1].replace('/', '.')}.{found[2]}" if found else None


def of_files(changed):
    """The tests of changed files and of those that include them, and the rooms whose code changed."""
    named, tests, rooms = includers(), set(), set()
    for path in changed:
        reached, new = set(), {f"{ROOT}/{path}"} if path.startswith("tests/") else set()
        while new:
            reached |= new
            new = {includer for one in new for includer in named.get(os.path.basename(one), ())
                   if one.endswith(".h")} - reached
        tests |= {test_of(os.path.relpath(one, ROOT)) for one in reached} - {None}
        known = [tested for begin, tested in ROOMS.items() if path.startswith(begin)]
        if known:
            rooms.update(known[0])
        elif found := re.match(r"libfcap/(\w+)/", path):
            rooms.add(found[1])
    return sorted(tests), sorted(rooms)


def expression(tests, rooms):
    """For ctest -R; None: nothing is concerned."""
    parts = [re.escape(test) + "$" for test in tests] + [f"{room}\\." for room in rooms]
    return f"^({'|'.join(parts)})" if parts else None
