"""The parts over programs of micro/ that print JSON of their own. Their workloads: evaluate_bench.cc, ledger_bench.cc, page_bench.cc
and signing_bench.cc (`micro`), segments_bench.cc (ten million members), rules_loading.cc (a million rules; needs PostgreSQL)."""
import json
import os
import re
import shutil
import statistics
import subprocess

from report import table
from service import BUILD, ROOT, running
from services import make

RULES = 1_000_000
FILL = f"""INSERT INTO campaigns (id, advertiser_id, cap_limit, window_seconds)
  SELECT 'c' || 1000000 + n, 'a' || n / 50, 3, 3600 * (1 + n % 48) FROM generate_series(0, {RULES - 1}) n"""
MEMBERS = {"BM_Membership/sequential": "numbers close together", "BM_Membership/random32": "any 32-bit numbers",
           "BM_Membership/random64": "any 64-bit numbers", "BM_Membership/uuid": "36-character ids",
           "BM_Roaring/sequential": "numbers close together, plain CRoaring",
           "BM_Roaring/random32": "any 32-bit numbers, plain CRoaring",
           "BM_Roaring/random64": "any 64-bit numbers, plain CRoaring",
           "BM_Memory": "for comparison: one read in 128 MB"}


def answer(*command):
    """The JSON that a command writes to its standard output."""
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def loading(_quick, directory):
    """A million rules from a snapshot, reloaded, and from rows: each in a process of its own."""
    def run(*arguments):
        return answer(f"{BUILD}/bench/rules_loading", *arguments)

    def row(name, title, found, step):
        return {"name": name, "title": title, "seconds": found[f"{step}_s"], "set_mb": found.get("set_mb"),
                "peak_mb": found.get(f"{step}_peak_mb")}

    file = f"{directory}/rules.snapshot"
    made = run("make", file, str(RULES))
    # Ever more of the rules change in the reload, scattered over the set; the targets look at 1 in 100.
    snapshot, tenth, everything = (run("snapshot", file, every) for every in ("100", "10", "1"))
    rows = [row("snapshot", "start from a snapshot", snapshot, "start"),
            row("reload", "reload from a snapshot, 1 rule in 100 changed", snapshot, "reload"),
            row("reload_tenth", "the same, 1 in 10", tenth, "reload"),
            row("reload_all", "the same, all of them", everything, "reload"),
            row("write", "write a snapshot", made, "write")]
    result = {"rules_from_snapshot_s": snapshot["start_s"], "rules_reload_peak_by_set": snapshot["reload_peak_mb"] / snapshot["set_mb"]}
    if shutil.which("psql"):
        os.chmod(directory, 0o755)  # the server has an account of its own
        with running(make("postgres", directory)) as postgres:
            conninfo = postgres.address()
            subprocess.run([f"{ROOT}/sql/migrate", conninfo], stdout=subprocess.DEVNULL, check=True)
            subprocess.run(["psql", "-Xq", conninfo, "-c", FILL], check=True)
            tables = run("rows", conninfo, "100")
        rows += [row("rows", "start from the tables", tables, "start"),
                 row("reload_rows", "reload from the tables, 1 rule in 100 changed", tables, "reload")]
        result["rules_from_rows_s"] = tables["start_s"]
        result["rules_reload_from_rows_peak_by_set"] = tables["reload_peak_mb"] / tables["set_mb"]
    else:
        result["missing"] = {"rules_from_rows_s": "PostgreSQL is not installed"}
    result["tables"] = {"loading": table(
        "Loading a million rules",
        "From the start of a process to rules in force; memory above that of the empty process, both sets included.",
        [("seconds", "s", 2), ("set_mb", "set, MB", 0), ("peak_mb", "peak, MB", 0)], rows)}
    return result


def benchmark(program, *arguments):
    """Iterations by name."""
    found = {}
    on_one_core = ["taskset", "-c", "1"] if os.cpu_count() > 1 else []
    for run in answer(*on_one_core, f"{BUILD}/bench/{program}", "--benchmark_format=json", *arguments)["benchmarks"]:
        if run["run_type"] == "iteration":
            found.setdefault(run["run_name"].split("/iterations")[0], []).append(run)
    return found


def repeated(program, *arguments):
    """A row for each workload, numbers in their names in order."""
    found = benchmark(program, "--benchmark_repetitions=5", "--benchmark_enable_random_interleaving=true", *arguments)
    rows = [{"name": name[3:], "title": name[3:], "ns": statistics.median_low(run["cpu_time"] for run in runs),
             **({"allocs": max(run["allocs"] for run in runs)} if "allocs" in runs[0] else {})} for name, runs in found.items()]
    return sorted(rows, key=lambda row: [(not word.isdigit(), int(word) if word.isdigit() else word)
                                         for word in re.split("[/:]", row["name"])])


def micro(quick, _directory):
    def rows(program, quick_time, quick_filter="."):
        return repeated(program, *([f"--benchmark_min_time={quick_time}", f"--benchmark_filter={quick_filter}"] if quick
                                   else ["--benchmark_min_time=0.2"]))

    def named(found, *names):
        return (next(row for row in found if row["name"] == name) for name in names)

    evaluations = rows("evaluate_bench", 0.02, "Headline|Reserved|Candidates|Entries")
    headline, reserved = named(evaluations, "Headline", "Reserved")
    pages = rows("page_bench", 0.01, "Capped")
    page, first_allowed = named(pages, "Capped/reserved_page/1000", "Capped/first_allowed/1000")
    ns = ("ns", "ns", 0)
    return {"eval_ns": headline["ns"], "eval_reservations_ns": reserved["ns"],
            "eval_allocs": max(headline["allocs"], reserved["allocs"]),
            "page_vs_first_allowed": page["ns"] / first_allowed["ns"], "tables": {
        "signing": table("Signed impression ids, in-process", "CPU time of one id, median of 5.", [ns], rows("signing_bench", 0.01)),
        "evaluation": table("Evaluation, in-process", "CPU time of one, median of 5; decoding not included.",
                            [ns, ("allocs", "allocations", 2)], evaluations),
        "ledger": table("The ledger, in-process", "CPU time of one, median of 5.", [ns],
                        rows("ledger_bench", 0.01, "Mixed|Compact")),
        "pages": table("Searches where nothing passes, and crafted records, in-process", "CPU time of one call, median of 5.",
                       [ns], pages)}}


def segments(_quick, _directory):
    found = benchmark("segments_bench")
    rows = [{"name": re.sub("^BM_(Membership/)?", "", name).replace("/", "_").lower(), "title": title,
             "ns": found[name][0]["cpu_time"], "bytes": found[name][0].get("bytes/member")} for name, title in MEMBERS.items()]
    return {"tables": {"segments": table("Membership of a segment of ten million",
                                         "CPU time of one question, half of them about members; what the set takes.",
                                         [("ns", "ns", 0), ("bytes", "bytes per member", 1)], rows)}}
