#!/usr/bin/python3 -E
"""Looks whether everything that docs/inside.md names in `code` exists. A path must be there, a room of libfcap as it is included. What follows it in the same paragraph,
row or item is looked for in that file, or in its other half (.h and .cc), until another path is named; so are names that are said
to be `in` or `of` the path behind them, or have it in parentheses. `Class::function()` and `function()` must be declared or
defined there, and so must a `Type`; any other word must occur outside comments. A word without a path, as in a heading or a
column of tests, is not this script's business."""
import argparse
import functools
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = "docs/inside.md"
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+/?|[\w-]+\.(?:py|sh|md|h|cc)")
FUNCTION = re.compile(r"((?:\w+::)*)(~?\w+)\(\)")
TYPE = re.compile(r"((?:\w+::)*)([A-Z]\w*[a-z]\w*)")
WORD = re.compile(r"(?:\w+::)*\w*[a-z]\w*")
# Between a name, or the last of several, and the path behind it that it belongs to.
NAMES_ITS_PATH = re.compile(r"\s+(?:in|of)\s+|\s+\(")
JOINS = re.compile(r"(?:,|\s+(?:or|and))\s+")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^\s*#(?!include)[^\n]*|^\s*\"\"\".*?\"\"\"", re.S | re.M)
# What stands before a name that is declared is a type; before one that is called, a statement or an operator.
NOT_A_TYPE = r"(?!\s*(?:return|co_return|else|throw|delete|new|case|goto|not|and|or)\b)"
RETURNS = r"^" + NOT_A_TYPE + r"[ \t]*(?:[\w:<>,&*~\[\]().\"]+[ \t&*]+)+"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.cache
def code_of(path):
    """The code of a file and of its other half, without comments; of a folder, nothing."""
    stem, ending = os.path.splitext(path)
    paths = {path, stem + ".h", stem + ".cc"} if ending in (".h", ".cc") else {path}
    return COMMENT.sub("", "\n".join(read(each) for each in sorted(paths) if os.path.isfile(each)))


def declares_type(code, name):
    return re.search(rf"\b(?:class|struct|enum|enum class|namespace|union)\s+(?:[A-Z_]+\s+)?(?:\w+::)*{name}\b(?!\s*;)|\b(?:using|concept)\s+{name}\s*=|"
                     rf"^(?:class|def)\s+{name}\b", code, re.M) is not None


def declares_function(code, scope, name):
    """With a scope, as `Class::name(` at the beginning of a definition, or inside the class, in its file."""
    if scope and re.search(rf"(?:^|[\s*&]){scope}::{name}\(", code, re.M):
        return True
    if scope and not declares_type(code, scope):
        return False
    return re.search(rf"{RETURNS}(?:\w+::)*{name}\(|^(?:\w+::)*{name}\(|^[ \t]*(?:async )?def {name}\(", code, re.M) is not None


def exists(code, word):
    """None: it is not the name of anything."""
    if found := FUNCTION.fullmatch(word):
        scope = found[1].split("::")[-2] if found[1] else ""
        return declares_function(code, scope, found[2])
    if found := TYPE.fullmatch(word):
        return declares_type(code, found[2])
    if WORD.fullmatch(word):
        return re.search(rf"\b{word.split('::')[-1]}\b", code) is not None
    return None


def items(page):
    """Paragraphs, items of lists and rows of tables; what is indented belongs to the item above it. A last
    column "shown by" is left out: it is for tests/promises.py."""
    item, code_block, last_is_tests = [], False, False
    for line in [*page.splitlines(), ""]:
        if line.startswith("```"):
            code_block = not code_block
        if line.startswith("|"):
            cells = line.strip("| ").split("|")
            last_is_tests = last_is_tests or cells[-1].strip() == "shown by"
            line = "|".join(["", *(cells[:-1] if last_is_tests else cells)])
        else:
            last_is_tests = False
        if item and (code_block or not line.strip() or re.match(r"\|| *(?:[-*]|\d+\.) |#", line)):
            yield "\n".join(item)
            item = []
        if not code_block and line.strip():
            item.append(line)


def names_of(item):
    """Pairs of a path and a name in it; a path by itself has the name None."""
    spans = list(re.finditer(r"`([^`]+)`", item))
    path, waiting = None, []
    for i, span in enumerate(spans):
        word = " ".join(span[1].split())
        if PATH.fullmatch(word):
            path = word
            yield path, None
            yield from ((path, name) for name in waiting)
            waiting = []
            continue
        between = item[span.end():spans[i + 1].start()] if i + 1 < len(spans) else ""
        waiting.append(word)
        if i + 1 < len(spans) and PATH.fullmatch(spans[i + 1][1]) and NAMES_ITS_PATH.fullmatch(between):
            continue  # it is the next one's
        if JOINS.fullmatch(between) and not PATH.fullmatch(spans[i + 1][1]):
            continue  # as the next name
        yield from ((path, name) for name in waiting)
        waiting = []


def missing_in(root):
    """What does not exist, and how many names do."""
    missing, count = [], 0
    for path, name in (pair for item in items(read(f"{root}/{PAGE}")) for pair in names_of(item)):
        file = next((file for file in (f"{root}/{path}", f"{root}/libfcap/{path}") if os.path.exists(file)), None)
        if name is None:
            there = file is not None
        else:
            there = exists(code_of(file), name) if file and os.path.isfile(file) else None
        if there is not None:
            count += 1
        if there is False:
            missing.append(f"{name} is not in {path}" if name else f"{path} does not exist")
    return missing, count


def main():
    parser = argparse.ArgumentParser(prog="tests/inside.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", metavar="DIRECTORY", default=ROOT, help="another checkout of fcap")
    missing, count = missing_in(parser.parse_args().root)
    print(*(f"{PAGE}: {each}" for each in missing), sep="\n", end="\n" if missing else "")
    print(f"{count - len(missing)} names of {PAGE} exist, {len(missing)} do not")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
