#!/usr/bin/python3 -E
"""One class, one file: looks for classes of production code whose members are defined in more than two .cc files. What is nested
in a class counts as its own."""
import collections
import os
import re
import subprocess
import sys

from type_names import NOT_CODE, ROOT

ROOMS = ["libfcap", "kafka", "updater", "cli", "command_line", "examples", "bench"]
FILES_MAX = 2
# These are to be rebuilt. A class that lies in fewer files by now is no longer exempt.
EXEMPT = {
    "Link": "connects and greets as four other classes do, which are to share one connector",
}
# A definition begins its line: what it returns, then namespaces and classes, its own name, and a parenthesis.
DEFINITION = re.compile(r"^(?:[\[\w:][^;{}()=]*?[\s*&])?(?:[a-z_]\w*::)*([A-Z]\w*)(?:<[\w, ]*>)?::(?:\w+(?:<[\w, ]*>)?::)*(?:~?\w+|operator[^\w\s(]+|operator\(\))\s*\(", re.M)


def classes_of(text):
    """The classes whose members a file defines."""
    code = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return {found[1] for found in DEFINITION.finditer(code)}


def main():
    files = collections.defaultdict(list)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *ROOMS], cwd=ROOT, check=True, capture_output=True, text=True)
    for path in sorted(set(listed.stdout.split())):
        if path.endswith(".cc") and os.path.exists(os.path.join(ROOT, path)):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                for name in classes_of(file.read()):
                    files[name].append(path)
    torn = {name: found for name, found in files.items() if len(found) > FILES_MAX and name not in EXEMPT}
    for name, found in sorted(torn.items()):
        print(f"{name} lies in {len(found)} files: {', '.join(found)}")
    whole = [name for name in EXEMPT if len(files[name]) <= FILES_MAX]
    for name in whole:
        print(f"{name} is exempt (EXEMPT in {os.path.relpath(__file__, ROOT)}) and need not be: it lies in {len(files[name])} files")
    if torn:
        print("Each is too large for one idea: what is an idea of its own becomes a class of its own, with a header and a name.")
    return 1 if torn or whole else 0


if __name__ == "__main__":
    sys.exit(main())
