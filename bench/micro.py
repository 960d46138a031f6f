"""The part `micro`: evaluation, the ledger's own work, segments, fcap simulate, loading rules, and stalls of checking threads.
Workloads: micro/evaluate_bench.cc, ledger_bench.cc, segments_bench.cc (ten million members), rules_loading.cc (a million
rules; needs PostgreSQL), stalls.cc. Segments and loading not with --quick."""
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import time

from service import BUILD, ROOT, Service

RULES = 1_000_000
FILL = f"""INSERT INTO campaigns (id, advertiser_id, cap_limit, window_seconds)
  SELECT 'c' || 1000000 + n, 'a' || n / 50, 3, 3600 * (1 + n % 48) FROM generate_series(0, {RULES - 1}) n"""
MEMBERS = {"BM_Membership/sequential": "numbers close together", "BM_Membership/random32": "any 32-bit numbers",
           "BM_Membership/random64": "any 64-bit numbers", "BM_Membership/uuid": "36-character ids",
           "BM_Roaring/sequential": "numbers close together, plain CRoaring",
           "BM_Roaring/random32": "any 32-bit numbers, plain CRoaring",
           "BM_Roaring/random64": "any 64-bit numbers, plain CRoaring",
           "BM_Memory": "for comparison: one read in 128 MB"}


def table(title, note, columns, rows):
    return {"title": title, "note": note, "columns": [{"key": k, "title": t, "digits": d} for k, t, d in columns], "rows": rows}


def loading(directory):
    """A million rules from a snapshot, reloaded, and from rows: each in a process of its own."""
    def run(*arguments):
        return json.loads(subprocess.run([f"{BUILD}/bench/rules_loading", *arguments], stdout=subprocess.PIPE, check=True).stdout)

    def row(name, title, seconds, found=None, peak=None):
        return {"name": name, "title": title, "seconds": seconds,
                **({"set_mb": found["set_mb"], "peak_mb": found[peak]} if found else {})}

    file = f"{directory}/rules.snapshot"
    made = run("make", file, str(RULES))
    # Ever more of the rules change in the reload, scattered over the set; the targets look at 1 in 100.
    snapshot, tenth, everything = (run("snapshot", file, every) for every in ("100", "10", "1"))
    result = {"rules_from_snapshot_s": snapshot["start_s"], "rules_reload_peak_by_set": snapshot["reload_peak_mb"] / snapshot["set_mb"]}
    rows = [row("snapshot", "start from a snapshot", snapshot["start_s"], snapshot, "start_peak_mb"),
            *(row(name, title, found["reload_s"], found, "reload_peak_mb") for name, title, found in (
                ("reload", "reload from a snapshot, 1 rule in 100 changed", snapshot),
                ("reload_tenth", "the same, 1 in 10", tenth), ("reload_all", "the same, all of them", everything))),
            row("write", "write a snapshot", made["write_s"])]
    if shutil.which("psql"):
        os.chmod(directory, 0o755)  # the server has an account of its own
        with Service("postgres", directory) as postgres:
            conninfo = postgres["conninfo"]
            subprocess.run([f"{ROOT}/scripts/migrate", conninfo], stdout=subprocess.DEVNULL, check=True)
            subprocess.run(["psql", "-Xq", conninfo, "-c", FILL], check=True)
            tables = run("rows", conninfo, "100")
        result["rules_from_rows_s"] = tables["start_s"]
        result["rules_reload_from_rows_peak_by_set"] = tables["reload_peak_mb"] / tables["set_mb"]
        rows.append(row("rows", "start from the tables", tables["start_s"], tables, "start_peak_mb"))
        rows.append(row("reload_rows", "reload from the tables, 1 rule in 100 changed", tables["reload_s"], tables, "reload_peak_mb"))
    else:
        result["missing"] = {"rules_from_rows_s": "PostgreSQL is not installed"}
    result["tables"] = {"loading": table(
        "Loading a million rules",
        "From the start of a process to rules in force; memory above that of the empty process, both sets included.",
        [("seconds", "s", 2), ("set_mb", "set, MB", 0), ("peak_mb", "peak, MB", 0)], rows)}
    return result


def stalls(quick, directory):
    """Not bound to one core: what is swapped and freed must be able to run beside the thread that checks."""
    file = f"{directory}/stalls.json"
    subprocess.run([f"{BUILD}/bench/bench_stalls", *(["--quick"] if quick else []), "--json", file], check=True)
    with open(file, encoding="utf-8") as text:
        return json.load(text)


def benchmark(program, *arguments):
    """Iterations by name."""
    found = {}
    on_one_core = ["taskset", "-c", "1"] if os.cpu_count() > 1 else []
    command = [*on_one_core, f"{BUILD}/bench/{program}", "--benchmark_format=json", *arguments]
    for run in json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["benchmarks"]:
        if run["run_type"] == "iteration":
            found.setdefault(run["run_name"].split("/iterations")[0], []).append(run)
    return found


def repeated(program, *arguments):
    found = benchmark(program, "--benchmark_repetitions=5", "--benchmark_enable_random_interleaving=true", *arguments)
    rows = [{"name": name[3:], "title": name[3:], "ns": statistics.median_low(run["cpu_time"] for run in runs),
             **({"allocs": max(run["allocs"] for run in runs)} if "allocs" in runs[0] else {})} for name, runs in found.items()]
    return sorted(rows, key=lambda row: [(not word.isdigit(), int(word) if word.isdigit() else word)
                                         for word in re.split("[/:]", row["name"])])


def simulated(directory, quick):
    """fcap simulate, from the start of the process to its report: reading, ordering and replaying a log."""
    log, rules, counts = f"{directory}/log.csv", f"{directory}/rules.json", []
    impressions = 100_000 if quick else 1_000_000
    rng = random.Random(1)
    with open(log, "w", encoding="utf-8") as file:
        file.write("user_id,campaign_id,timestamp\n")
        # Some users see much, most see little.
        file.writelines(f"u{int(rng.expovariate(1 / 20_000))},c{rng.randrange(200)},{1_700_000_000 + i * 604_800 // impressions}\n"
                        for i in range(impressions))
    with open(rules, "w", encoding="utf-8") as file:
        json.dump({"version": 1, "rules": [
            {"id": "day", "scope": "campaign", "target": "*", "limit": 3, "window": {"kind": "sliding", "length": "24h"}},
            {"id": "week", "scope": "user", "limit": 200, "window": {"kind": "calendar", "unit": "week", "time_zone": "UTC"}}]}, file)
    for _ in range(3):
        began = time.monotonic()
        subprocess.run([f"{BUILD}/cli/fcap", "simulate", "--log", log, "--rules", rules, "--json"], stdout=subprocess.DEVNULL, check=True)
        counts.append(impressions / (time.monotonic() - began))
    return statistics.median(counts)


def micro(quick, directory):
    evaluate, ledger = ["--benchmark_min_time=0.2"], ["--benchmark_min_time=0.2"]
    if quick:
        evaluate = ["--benchmark_min_time=0.02", "--benchmark_filter=Headline|Candidates|Entries"]
        ledger = ["--benchmark_min_time=0.01", "--benchmark_filter=Mixed|Compact"]
    evaluations = repeated("evaluate_bench", *evaluate)
    headline = next(row for row in evaluations if row["name"] == "Headline")
    result = {"eval_ns": headline["ns"], "eval_allocs": headline["allocs"]}
    tables = {
        "evaluation": table("Evaluation, in-process", "CPU time of one, median of 5; decoding not included.",
                            [("ns", "ns", 0), ("allocs", "allocations", 2)], evaluations),
        "ledger": table("The ledger, in-process", "CPU time of one, median of 5.", [("ns", "ns", 0)],
                        repeated("ledger_bench", *ledger))}
    if os.path.exists(f"{BUILD}/cli/fcap"):
        result["simulate_impressions_per_s"] = simulated(directory, quick)
        tables["simulate"] = table(
            "fcap simulate", "From the start of the process to its report, two rules, a CSV log; median of 3.",
            [("impressions_per_s", "impressions/s", 0)],
            [{"name": "simulate", "title": "read, order and replay", "impressions_per_s": result["simulate_impressions_per_s"]}])
    if not quick:
        found = benchmark("segments_bench")
        rows = [{"name": re.sub("^BM_(Membership/)?", "", name).replace("/", "_").lower(), "title": title,
                 "ns": found[name][0]["cpu_time"], "bytes": found[name][0].get("bytes/member")} for name, title in MEMBERS.items()]
        result.update({f"segment_membership_ns_{row['name']}": row["ns"] for row in rows if row["name"] != "memory"})
        tables["segments"] = table(
            "Membership of a segment of ten million", "CPU time of one question, half of them about members; what the set takes.",
            [("ns", "ns", 0), ("bytes", "bytes per member", 1)], rows)
    return {**result, "tables": tables}


def run(quick, alone, directory):
    """`alone`: "loading" or "stalls", that one alone."""
    parts = []
    if not alone:
        parts.append(micro(quick, directory))
    if alone != "loading":
        parts.append(stalls(quick, directory))
    if alone == "loading" or not (alone or quick):
        parts.append(loading(directory))
    result = {"tables": {}}
    for part in parts:
        result["tables"].update(part.pop("tables"))
        result.update(part)
    return result
