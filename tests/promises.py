#!/usr/bin/python3 -E
"""Prints which test shows each promise of docs/guarantees.md and docs/reliability.md, and each invariant of docs/inside.md, in
which file, and how that test runs.
If a test is named that does not exist, a promise is without its test, and the exit code is 1; so it is if any page names a file
of tests/ that does not exist. Two tables, of before and after a change, can be compared:

    tests/promises.py --root BEFORE --json before.json
    tests/promises.py --against before.json"""
import argparse
import collections
import functools
import glob
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGES = ("docs/guarantees.md", "docs/reliability.md")
INSIDE = "docs/inside.md"  # whose table alone names tests; tests/inside.py looks for its other names
CODE = ("include", "libfcap", "updater", "cli", "kafka", "command_line")
DEFINITION = re.compile(r"^\s*(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.M)
# `Suite.Test`, `Suite`, `Suite.Beginning…`, `Beginning…`, `Suite.*` and, of the suite before it, `…Beginning…`
NAME = re.compile(r"`(…?)([A-Z]\w*[a-z]\w*)(?:\.([A-Z]\w*|\*))?(…?)`(?: \((two|three|four)\))?")
# What stands in parentheses after a promise in prose: (`Suite`, `Suite` and `Suite.Test`: …)
LIST = re.compile(r"\(`[A-Z][\w.…`*,\s]*")
COUNTS = {"": 1, "two": 2, "three": 3, "four": 4}
NO_TEST = "no test"
CHAOS = "tests/chaos/run.py"
PLACEHOLDER = "Suite"  # with which the pages explain how tests are named
SHOWN = 72  # characters of a promise


class Tests:
    """All tests of a checkout: by suite and name, and those that are not GoogleTest's by the words that the pages use."""

    def __init__(self, root):
        self.root = root
        self.suites = collections.defaultdict(dict)
        for path in sorted(glob.glob(f"{root}/tests/**/*.cc", recursive=True)):
            for suite, test in DEFINITION.findall(read(path)):
                self.suites[suite][test] = os.path.relpath(path, root)

    @functools.cached_property
    def code_words(self):
        """What the code outside tests calls something, which prose may mean when it names no suite."""
        paths = [path for folder in CODE for path in glob.glob(f"{self.root}/{folder}/**/*.[ch]*", recursive=True)]
        return set(re.findall(r"\w+", "\n".join(map(read, paths))))

    def of_suite(self, suite, beginning="", exactly=False):
        """Those of a suite whose names begin so, as pairs of name and file."""
        return {f"{suite}.{test}": path for test, path in self.suites.get(suite, {}).items()
                if (test == beginning if exactly else test.startswith(beginning))}

    def named(self, former, name):
        """The tests that a match of NAME means, and the suite to which a beginning after it belongs."""
        continued, first, test, open_end, _ = name
        if test is not None:
            return self.of_suite(first, test.rstrip("*"), not open_end and test != "*"), first
        if (continued or open_end) and (found := self.of_suite(former, first)):
            return found, former
        suites = [suite for suite in self.suites if suite == first or open_end and suite.startswith(first)]
        return {test: path for suite in suites for test, path in self.of_suite(suite).items()}, first

    @staticmethod
    def files(text):
        return {path: path.rstrip("/") for path in re.findall(r"`(tests/[a-z\d_./-]+)`", text)}

    def other(self, text):
        """Tests that are programs of their own: fuzz targets, oracles, runs with faults, benches and files that are named."""
        found = self.files(text)
        found.update((f"{target}_fuzz", f"tests/fuzz/{target}_fuzz.cc") for target in re.findall(r"(\w+) fuzzer\b", text))
        found.update((f"bench {part}", f"bench/{part}") for part in re.findall(r"\bbench (?:--only |`)(\w+)", text))
        if "`oracle_…`" in text:
            found["oracle_…"] = "tests/oracle"
        if re.search(r"\bchaos\b", text):
            found["chaos"] = CHAOS
        return found


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def how(path):
    """How the tests of a file run: as its folder and the end of its name say."""
    if re.search(r"_model(_test)?\.", path) or path.startswith("tests/model/"):
        return "model"
    if path.startswith("tests/integration/"):
        need = re.search(r"(?:^|_|/)(redis|kafka|pg|path)_test\.cc$", path)
        return f"integration: {need[1]}" if need else "integration"
    kinds = {"tests/unit": "unit", "tests/chaos": "soak/chaos", "tests/fuzz": "fuzz", "tests/oracle": "oracle",
             "tests/scripts": "script", "tests/install": "script", "bench": "bench"}
    return next((kind for folder, kind in kinds.items() if f"{path}/".startswith(f"{folder}/")), "other")


def plain(text):
    """A promise without links and marks of emphasis."""
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)|[`*]", r"\1", text).split())


def rows(page):
    """The promises of a page, as (where, promise, text that names tests, the cell that must name one). They are the rows of
    tables under "shown by", and the other text of each section: its promise is the heading, and it has no such cell."""
    heading, part, in_table, prose = "", "", False, collections.defaultdict(list)
    for line in page.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if line.startswith("#"):
            heading, part = line.lstrip("# "), ""
        elif re.fullmatch(r"\*\*[^*]+\*\*", line):
            part = f": {line.strip('*')}"
        elif cells and not in_table and cells[-1] == "shown by":
            in_table = True
        elif cells and in_table:
            if not re.fullmatch(r"[-: ]+", cells[0]):
                yield f"{heading}{part}", plain(cells[0]), " | ".join(cells[1:]), cells[-1]
        else:
            in_table = False
            prose[heading].append(line)
    for heading, lines in prose.items():
        yield heading, plain(heading), "\n".join(lines), None


def names_in(tests, text, must):
    """The tests that a text means, the words with which it names them, and those of its words that name nothing."""
    found, named, missing, suite = {}, [], [], ""
    lists = [match.span() for match in LIST.finditer(text)]
    for match in NAME.finditer(text):
        name = match.groups()
        if name[1] == PLACEHOLDER:
            continue
        meant, its_suite = tests.named(suite, name)
        if len(meant) >= COUNTS[name[4] or ""]:
            suite = its_suite
            named.append(match[0])
            found.update(meant)
        # Prose and the middle of a row also name what is no test.
        elif name[2] or name[3] or must and match[0] in must or name[1] not in tests.code_words or \
                any(first < match.start() < end for first, end in lists):
            missing.append(f"{match[0]} does not exist")
    return found, ", ".join(dict.fromkeys(named)), missing


def promise_of(tests, page, where, promise, text, must):
    """A row of the table, or None where prose names no test. `missing` says which of its tests are not there."""
    found, named, missing = names_in(tests, text, must)
    if must is None and not found and not missing:
        return None
    # What prose says of other programs is not always that they show something.
    other = tests.other(must) if must is not None else {"chaos": CHAOS} if "`./dev chaos`" in text else {}
    found.update(other)
    missing += [f"{path} does not exist" for path in other.values() if not os.path.exists(f"{tests.root}/{path}")]
    if must is not None and not found and not missing and NO_TEST not in must:
        missing.append(f'it names no test, and does not say "{NO_TEST}"')
    return {"page": page, "where": where, "promise": promise, "named": must or named, "tests": found, "missing": missing,
            "how": sorted(set(map(how, found.values()))) or ["none"]}


def table(root):
    tests = Tests(root)
    found = [promise_of(tests, page, *row) for page in (*PAGES, INSIDE) for row in rows(read(f"{root}/{page}"))
             if page != INSIDE or row[-1] is not None]
    return [row for row in found if row]


def shortened(text, length):
    return text if len(text) <= length else text[:length - 1] + "…"


def print_table(promises):
    """Each promise with one line per suite of its tests, and where a suite is in two files, per file."""
    where = None
    for row in promises:
        if where != (where := (row["page"], row["where"])):
            print(f"\n{row['page']}, {row['where']}")
        by_suite = collections.defaultdict(list)
        for test, path in row["tests"].items():
            by_suite[test.split(".")[0], path].append(test)
        promise = shortened(row["promise"], SHOWN)
        for (suite, path), tests in by_suite.items() or [(("", ""), [NO_TEST])]:
            test = tests[0] if len(tests) == 1 else f"{suite} ({len(tests)} tests)"
            print(f"  {promise:<{SHOWN}} | {shortened(test, 60):<60} | {path:<60} | {how(path) if path else 'none'}")
            promise = ""


def print_summary(promises):
    print(f"\n{len(promises)} promises, of which are shown by")
    for kind, count in sorted(collections.Counter(kind for row in promises for kind in row["how"]).items()):
        print(f"  {kind:<20}{count:>4}")
    tests = {test: path for row in promises for test, path in row["tests"].items()}
    print(f"{len(tests)} tests in {len(set(tests.values()))} files; a promise may have tests of several kinds")


def key(row):
    return row["page"], row["where"], row["promise"]


def compare(before, after):
    """What has changed since a table that was written before: promises, the tests of each, and how these run."""
    before, after = ({key(row): row for row in rows_} for rows_ in (before, after))
    changes = [("added", name, []) for name in after if name not in before]
    changes += [("lost", name, []) for name in before if name not in after]
    kept = [(before[name], row) for name, row in after.items() if name in before]
    for old, new in kept:
        tests = [f"- {test}" for test in old["tests"] if test not in new["tests"]]
        tests += [f"+ {test}" for test in new["tests"] if test not in old["tests"]]
        named = [old["named"], f"now {new['named']}"] if old["named"] != new["named"] else []
        runs = [", ".join(old["how"]), f"now {', '.join(new['how'])}"] if old["how"] != new["how"] else []
        details = {"tests": tests, "names": named, "runs": runs}
        changes += [(what, key(new), lines) for what, lines in details.items() if lines]
    moved = {test for old, new in kept for test, path in new["tests"].items() if old["tests"].get(test, path) != path}
    print(f"Before {len(before)} promises, now {len(after)}; {len(moved)} of their tests are in another file")
    for what, (page, where, promise), details in changes:
        print(f"  {what}: {page}, {where}: {promise}", *details, sep="\n    ")
    if not any(what in ("added", "lost", "tests", "runs") for what, _, _ in changes):
        print("every promise has the tests that it had, and they run as they did")


def missing_files(root):
    """Which files of tests/ any page names that do not exist."""
    pages = [*glob.glob(f"{root}/docs/*.md"), *glob.glob(f"{root}/*.md"), f"{root}/bench/README.md"]
    return [f"{os.path.relpath(page, root)}: {path} does not exist" for page in sorted(pages)
            for path in sorted(Tests.files(read(page)).values()) if not os.path.exists(f"{root}/{path}")]


def main():
    parser = argparse.ArgumentParser(prog="tests/promises.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", metavar="DIRECTORY", default=ROOT, help="another checkout of fcap")
    parser.add_argument("--json", metavar="FILE", help="write the table as JSON instead of printing it")
    parser.add_argument("--against", metavar="FILE", help="print what has changed since this table was written instead")
    parser.add_argument("--check", action="store_true", help="print only the summary, and what is missing")
    asked = parser.parse_args()
    promises = table(asked.root)
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump(promises, file, indent=1, ensure_ascii=False)
    if asked.against:
        compare(json.loads(read(asked.against)), promises)
    elif not asked.json and not asked.check:
        print_table(promises)
    print_summary(promises)
    missing = [f"{row['page']}, {row['where']}: {row['promise']}: {what}"
               for row in promises for what in row["missing"]] + missing_files(asked.root)
    print(*missing or ["every test that is named exists"], sep="\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
