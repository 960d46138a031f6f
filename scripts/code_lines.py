#!/usr/bin/python3 -E
"""scripts/code_lines.py [REV]: how many lines of code each room has, in a commit or in the working tree. C++ is counted as
clang-format-14 writes it. Comments, blank lines and assertions do not count."""
import argparse
import collections
import os
import re
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# A room is a folder, within these two each folder of theirs.
OF_FOLDERS = ("libfcap", "updater")
GROUPS = {"production": ("include", "libfcap", "kafka", "redis", "updater", "cli", "command_line", "sql"),
          "tests": ("tests",), "bench and examples": ("bench", "examples"), "scripts": ("scripts", "dev", ".ci", "cmake", "systemd")}
ENDINGS = {".cc": "C++", ".h": "C++", ".sql": "SQL", ".py": "Python", ".sh": "shell", ".cmake": "CMake", ".html": "HTML", ".js": "HTML"}
STRING = r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
COMMENT = {"C++": STRING + r"|(?P<comment>//[^\n]*|/\*.*?\*/)", "SQL": r"(?P<comment>--[^\n]*)", "HTML": r"(?P<comment><!--.*?-->|^\s*//[^\n]*|/\*.*?\*/)",
           "Python": r'(?P<comment>^\s*#[^\n]*|^\s*"""(?:.*?)""")', "shell": r"(?P<comment>^\s*#[^\n]*)", "CMake": r"(?P<comment>^\s*#[^\n]*)"}
ASSERTION = re.compile(r"^\s*(?:assert|static_assert|must_hold)\((?:[^;\"]|\"(?:\\.|[^\"\\\n])*\")*\);", re.M)


def language(path, text):
    first = text.split("\n", 1)[0]
    if first.startswith("#!"):
        return "Python" if "python" in first else "shell"
    return "CMake" if path.endswith("CMakeLists.txt") else ENDINGS.get(os.path.splitext(path)[1])


def code_lines(text, kind):
    text = re.sub(COMMENT[kind], lambda found: "" if found["comment"] else found[0], text, flags=re.S | re.M)
    if kind == "C++":
        text = ASSERTION.sub("", text)
    return sum(1 for line in text.splitlines() if line.strip())


def room_of(path):
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] in OF_FOLDERS and len(parts) > 2 else parts[0]


def copy_into(folder, rev):
    """The files of a commit, or of the working tree where `rev` is None."""
    if rev:
        archive = subprocess.run(["git", "archive", rev], cwd=ROOT, check=True, capture_output=True).stdout
    else:
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        there = "\n".join(path for path in listed.split("\n") if os.path.isfile(os.path.join(ROOT, path)))
        archive = subprocess.run(["tar", "c", "-T", "-"], cwd=ROOT, input=there.encode(), check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", folder], input=archive, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rev", nargs="?", metavar="REV", help="the commit; without it, the working tree")
    rev = parser.parse_args().rev
    lines, files = collections.Counter(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        copy_into(folder, rev)
        paths = [os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names]
        cpp = [path for path in paths if path.endswith((".cc", ".h"))]
        for begin in range(0, len(cpp), 100):
            subprocess.run(["clang-format-14", "-i", *cpp[begin:begin + 100]], cwd=folder, check=True)
        for path in paths:
            try:
                with open(os.path.join(folder, path), encoding="utf-8") as file:
                    text = file.read()
            except UnicodeDecodeError:
                continue  # not a text
            if kind := language(path, text):
                lines[room_of(path), kind] += code_lines(text, kind)
                files[room_of(path), kind] += 1
    for group, folders in GROUPS.items():
        total = 0
        print(f"{group}\n{'':4}{'room':28}{'':8}{'files':>7}{'lines':>9}")
        for room, kind in sorted(lines):
            if room.split("/")[0] in folders:
                total += lines[room, kind]
                print(f"{'':4}{room:28}{kind:8}{files[room, kind]:7,}{lines[room, kind]:9,}")
        print(f"{'':4}{'together':43}{total:9,}\n")
    print(f"{'all':47}{sum(count for (room, _), count in lines.items() if any(room.split('/')[0] in group for group in GROUPS.values())):9,}")


if __name__ == "__main__":
    main()
