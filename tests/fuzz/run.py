#!/usr/bin/python3 -E
"""Runs the fuzz targets of tests/fuzz for as long as is asked, several side by side, and says how many inputs each has tried.
A target begins with its inputs in tests/fuzz/corpus, which the build unpacks, and with what its former runs found, which is
kept in build/asan/tests/fuzz/found. What makes it fail is written beside that. tests/fuzz/corpus.py adds inputs to the corpus:

    cd build/asan/tests/fuzz && mkdir NEW && cp corpus/event/* NEW
    ./event_fuzz -merge=1 NEW found/event
    ../../../../tests/fuzz/corpus.py pack event NEW

The second line adds to NEW only those of what was found that reach other code. An input that made a target fail needs no such
choice: a directory that holds it alone is packed."""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SHOWN_LINES = 40


def arguments():
    parser = argparse.ArgumentParser(prog="./dev fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="by default all: event, ledger, resp_parser, …")
    parser.add_argument("--minutes", type=float, default=5, help="in all, shared by the targets (5)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets side by side (one per core)")
    parser.add_argument("--json", metavar="FILE", help="write what was printed as JSON too")
    asked = parser.parse_args()
    if asked.minutes <= 0 or asked.jobs < 1:
        parser.error("--minutes and --jobs must be above 0")
    return parser, asked


def fuzz(directory, name, seconds):
    """A row of the table; `output` is what a target that failed has printed."""
    found = f"{directory}/found/{name}"
    os.makedirs(found, exist_ok=True)
    corpus = [path for path in [f"{directory}/corpus/{name}"] if os.path.isdir(path)]
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        status = subprocess.run([f"{directory}/{name}_fuzz", f"-max_total_time={max(1, round(seconds))}", "-timeout=60",
                                 "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={directory}/", found, *corpus],
                                stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
        output.seek(0)
        text = output.read()
    executed = re.findall(r"stat::number_of_executed_units:\s+(\d+)", text)
    # Lines with # are its progress.
    return {"target": name, "failed": status != 0, "executions": int(executed[-1]) if executed else 0,
            "inputs": len(os.listdir(found)),
            "output": [line for line in text.splitlines() if not line.startswith("#")][-SHOWN_LINES:] if status else []}


def main():
    parser, asked = arguments()
    directory = f"{os.environ.get('FCAP_BUILD_DIR', f'{ROOT}/build/asan')}/tests/fuzz"
    known = sorted(os.path.basename(path)[:-len("_fuzz.cc")] for path in glob.glob(f"{ROOT}/tests/fuzz/*_fuzz.cc"))
    if unknown := set(asked.targets) - set(known):
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    targets = asked.targets or known
    rounds = -(-len(targets) // asked.jobs)
    seconds = asked.minutes * 60 / rounds
    print(f"{len(targets)} targets, {seconds:.0f} s each, {asked.jobs} side by side: about {asked.minutes:g} min", flush=True)
    began, rows = time.monotonic(), []
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(fuzz, directory, name, seconds) for name in targets]):
            rows.append(row := done.result())
            print(f"  {row['target']:<18}{row['executions']:>14,} executions{row['inputs']:>8,} inputs kept"
                  f"{'   FAILED' if row['failed'] else ''}   ({len(rows)} of {len(targets)}, {time.monotonic() - began:.0f} s)",
                  *row["output"], sep="\n", flush=True)
    failed = [row["target"] for row in rows if row["failed"]]
    total = sum(row["executions"] for row in rows)
    print(f"{total:,} executions in all; " + (f"failed: {', '.join(failed)}" if failed else "none failed"))
    if asked.json:
        with open(asked.json, "w", encoding="utf-8") as file:
            json.dump({"executions": total, "failed": failed, "targets": rows}, file, indent=1)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
