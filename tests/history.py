"""What became of each test in the runs so far, on this machine: one file that every run of ./dev test adds to. A test is
unsteady when the same one passes in some runs and fails in others; only many runs show that."""
import collections
import json
import os

CACHE = os.environ.get("FCAP_CACHE_DIR") or os.path.expanduser("~/.cache/fcap")
FILE = f"{CACHE}/test-history.jsonl"
RUNS_KEPT = 40


def runs():
    """Those before this one, the oldest first: {"commit", "preset", "load", "tests": {name: [seconds, tries, "passed"]}}."""
    found = []
    try:
        with open(FILE, encoding="utf-8") as file:
            for line in file:
                try:
                    found.append(json.loads(line))
                except ValueError:  # a run that was killed while it wrote
                    continue
    except OSError:
        pass
    return found[-RUNS_KEPT:]


def add(commit, preset, load, tests):
    kept = [*runs(), {"commit": commit, "preset": preset, "load": round(load, 2), "tests": tests}][-RUNS_KEPT:]
    os.makedirs(CACHE, exist_ok=True)
    with open(f"{FILE}.{os.getpid()}", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(run) + "\n" for run in kept)
    os.replace(file.name, FILE)


def unsteady():
    """A line for each test that failed in some of these runs and passed in others, or needed a second try."""
    seen = collections.defaultdict(list)
    for run in runs():
        for name, (_, tries, outcome) in run["tests"].items():
            seen[f"{name} ({run['preset']})"].append((outcome, tries))
    for name, outcomes in sorted(seen.items()):
        failed = sum(outcome == "failed" for outcome, _ in outcomes)
        again = sum(tries > 1 for _, tries in outcomes)
        if 0 < failed < len(outcomes) or again:
            yield f"{name}: failed in {failed} of its last {len(outcomes)} runs, was tried again in {again}"


def usual_seconds():
    """Each test's time in its newest run."""
    return {name: seconds for run in runs() if run["preset"] == "release" for name, (seconds, _, _) in run["tests"].items()}
