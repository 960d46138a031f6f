#!/usr/bin/python3 -E
"""Packs the inputs of a fuzz target into tests/fuzz/corpus/TARGET.txt, and unpacks them as files for libFuzzer to begin with.

The file has one input per line, sorted and without duplicates. A line that begins with a quotation mark is a JSON string, whose
UTF-8 form is the input; any other line is the input's bytes in Base64. The build of a target unpacks it in the build directory.
./dev fuzz --help says how inputs are added that a run has found."""
import argparse
import base64
import hashlib
import json
import os
import sys

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def line_of(data):
    """The input as one line of ASCII. An empty input is the empty string, so that no line is empty."""
    try:
        return json.dumps(data.decode("utf-8"))
    except UnicodeDecodeError:
        return base64.b64encode(data).decode("ascii")


def data_of(line):
    return json.loads(line).encode("utf-8") if line.startswith('"') else base64.b64decode(line, validate=True)


def read(path):
    """The inputs of a packed file; a target without one has none."""
    if not os.path.exists(path):
        return set()
    with open(path, encoding="ascii") as file:
        return {data_of(line) for line in file.read().splitlines()}


def pack(path, directory):
    """Adds the files of the directory to the packed file, and returns how many inputs are new."""
    before = read(path)
    inputs = set(before)
    for entry in os.scandir(directory):
        if entry.is_file():
            with open(entry.path, "rb") as file:
                inputs.add(file.read())
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{line}\n" for line in sorted(map(line_of, inputs)))
    return len(inputs - before)


def unpack(path, directory):
    """Writes each input to a file that is named by its SHA-1, as libFuzzer names them. What else is there stays."""
    os.makedirs(directory, exist_ok=True)
    inputs = read(path)
    for data in inputs:
        with open(os.path.join(directory, hashlib.sha1(data).hexdigest()), "wb") as file:
            file.write(data)
    return len(inputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["pack", "unpack"])
    parser.add_argument("target", metavar="TARGET", help="event, ledger, resp_parser, …")
    parser.add_argument("directory", metavar="DIRECTORY", help="where the inputs are, or are written to, one per file")
    parser.add_argument("--corpus", metavar="DIRECTORY", default=CORPUS, help="where the packed files are (%(default)s)")
    asked = parser.parse_args()
    path = os.path.join(asked.corpus, f"{asked.target}.txt")
    if asked.action == "unpack":
        print(f"{asked.target}: {unpack(path, asked.directory)} inputs in {asked.directory}")
    elif not os.path.isdir(asked.directory):
        parser.error(f"{asked.directory} is no directory")
    elif not os.path.exists(f"{os.path.dirname(CORPUS)}/{asked.target}_fuzz.cc"):
        parser.error(f"no such target: {asked.target}")
    else:
        print(f"{asked.target}: {pack(path, asked.directory)} new inputs, {len(read(path))} in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
