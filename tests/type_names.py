#!/usr/bin/python3 -E
"""One word, one type: looks for types of production code, nested and local ones included, that are defined more than once by the
same name. An alias (`using`), a forward declaration and a specialisation of a template define nothing."""
import collections
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOMS = ["include", "libfcap", "kafka", "redis", "updater", "cli", "command_line", "examples", "bench"]
# Names of a role that the class around them makes plain, as `Canary::Options` and `Breaker::State`. Each class may have one; no other name is exempt.
ROLES = {"Kind", "Limits", "Options", "State"}
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
# What stands between the keyword and the name: attributes and macros. Behind the name comes what it is derived from, and a body.
DEFINITION = re.compile(r"\b(?:class|struct|enum(?:\s+(?:class|struct))?|union)\s+(?:\[\[.*?\]\]\s*|alignas\s*\([^)]*\)+\s*|[A-Z][A-Z_0-9]+\s+)*"
                        r"(?:\w+\s*::\s*)*(?!final\b)(\w+)\s*(?:final\s*)?(?::(?!:)[^;{]*)?\{", re.S)


def definitions(text):
    """The line and the name of each type that is defined."""
    code = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    for found in DEFINITION.finditer(code):
        yield code.count("\n", 0, found.start(1)) + 1, found[1]


def main():
    places = collections.defaultdict(list)
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *ROOMS], cwd=ROOT, check=True, capture_output=True, text=True)
    for path in sorted(set(listed.stdout.split())):
        if path.endswith((".h", ".cc")) and os.path.exists(os.path.join(ROOT, path)):
            with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                for line, name in definitions(file.read()):
                    places[name].append(f"{path}:{line}")
    twice = {name: found for name, found in places.items() if len(found) > 1 and name not in ROLES}
    for name, found in sorted(twice.items()):
        print(f"{name} is defined {len(found)} times: {', '.join(found)}")
    if twice:
        print("Each needs a name that says what it is.")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
