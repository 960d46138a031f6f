"""One report of what the parts of the benches found out (README.md): merged JSON, and tables for people."""
import math

# A number that every report has, if only with the reason why not: key, part, what it is, the bound to reach, its unit, the
# digits shown.
TARGETS = [
    ("check_vs_zcount", "check", "checks per second, by 10 ZCOUNT pipelined, 64 in flight", ">=", 8, "x", 2),
    ("check_vs_zcount_256_in_flight", "check", "the same, 256 in flight", ">=", 10, "x", 2),
    ("check_vs_get", "check", "checks per second, by redis-benchmark GET", ">=", 1.5, "x", 2),
    ("check_plain_get_vs_get", "check", "the same without coalescing into MGET", ">=", 0.85, "x", 2),
    ("check_tls_vs_plain", "check", "checks per second over TLS, by plain TCP", ">=", 0.6, "x", 2),
    ("caller_p50_vs_hiredis", "callers", "p50 of one blocking caller, by hiredis GET, cores of their own", "<=", 1.1, "x", 2),
    ("caller_p50_vs_hiredis_on_one_core", "callers", "the same on one core", "<=", 1.3, "x", 2),
    ("callers_64_vs_hiredis", "callers", "64 blocking callers, checks per second by hiredis GETs", ">=", 2.2, "x", 2),
    ("callers_64_cpu_vs_hiredis", "callers", "the same, CPU per check on both sides", "<=", 0.4, "x", 2),
    ("cluster_vs_one_server_256", "cluster", "a cluster of three, by one server's plain GETs, 256 in flight", ">=", 0.8, "x", 2),
    ("cluster_vs_one_server_64", "cluster", "the same, 64 in flight", ">=", 0.7, "x", 2),
    ("frozen_shard_p99_vs_before", "cluster", "p99 of other shards' users while one is frozen, by before", "<=", 1.3, "x", 2),
    ("eval_ns", "micro", "evaluate 10 candidates x 2 rules on 30 entries", "<=", 200, "ns", 0),
    ("eval_reservations_ns", "micro", "the same with 3 reservations", "<=", 300, "ns", 0),
    ("eval_allocs", "micro", "allocations of these evaluations", "<=", 0, "", 2),
    ("page_vs_first_allowed", "micro", "reserved page of 1,000 candidates, full record, by first_allowed", "<=", 3, "x", 2),
    ("rules_from_snapshot_s", "loading", "a million rules in force, from a snapshot", "<=", 2, "s", 1),
    ("rules_from_rows_s", "loading", "a million rules in force, from rows", "<=", 8, "s", 1),
    ("rules_reload_peak_by_set", "loading", "peak of a reload of a million rules, by one set", "<=", 2, "x", 2),
    ("rules_swap_longest_stall_us", "stalls", "longest stall of a checking thread, a million rules swapped", "<=", 1000, "µs", 0),
    ("hot_user_cost_to_others_us", "stalls", "what a user of 20,000 unconfirmed adds to others' p99.9", "<=", 100, "µs", 1),
    ("bytes_per_pair_compacted", "memory", "memory per (user, campaign), compacted", "<=", 47, "B", 1),
    ("bytes_per_pair_steady", "memory", "memory per (user, campaign), steady state", "<=", 50, "B", 1),
    ("p99_us_at_100k", "latency", "p99 of a check at 100,000 checks/s, open loop", "<=", 800, "µs", 0),
    ("updater_vs_zset", "updater", "events per second, by the sorted-set writer", ">=", 2.5, "x", 2),
    ("updater_vs_redis_limit", "updater", "events per second, by Redis alone", ">=", 0.85, "x", 2),
    ("updater_redis_cpu_vs_zset", "updater", "Redis' CPU per event, compaction included, by that writer's", "<=", 0.55, "x", 2),
    ("replay_into_nothing_vs_live", "updater", "replay into an empty Redis, by live", ">=", 0.7, "x", 2),
    ("propagation_p99_ms_at_half", "updater", "p99 from produced to visible, at half load", "<=", 25, "ms", 1),
    ("over_cap_percent_shared_5ms_four_servers", "over_delivery", "beyond the cap, shared notes, slots 5 ms apart", "<=", 0.1, "%", 3),
    ("over_cap_percent_page_in_one_call_four_servers", "over_delivery", "the same, a page in one call", "<=", 0.1, "%", 3),
    ("over_cap_percent_reserve_four_servers", "over_delivery", "the same with reserve, slots at once", "<=", 0, "%", 3),
    ("outage_shown_s", "outages", "until an outage is shown, the slowest", "<=", 10, "s", 1),
]
KINDS = ("missing", "tables")


def table(title, note, columns, rows):
    """`columns`: key, title, digits."""
    return {"title": title, "note": note, "columns": [{"key": k, "title": t, "digits": d} for k, t, d in columns], "rows": rows}


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def add_once(to, key, value):
    if key in to:
        raise ValueError(f"two parts claim {key}")
    to[key] = value


def merge(about, parts, not_run):
    """`about` (machine, versions, date), each part's numbers at the top level, "tables", and "missing" with a
    reason for each target that is null. `not_run` gives the reason for a part."""
    found = {kind: {} for kind in KINDS}
    for result in parts.values():
        for key, value in result.items():
            if key not in KINDS:
                add_once(found, key, value)
        for kind in KINDS:
            for key, value in result.get(kind, {}).items():
                add_once(found[kind], key, value)
    report = {"about": about, **{target[0]: None for target in TARGETS}, **found}
    for key, part, *_ in TARGETS:
        if report[key] is None:
            reason = not_run.get(part)
            report["missing"].setdefault(key, f'the part "{part}"' + (f": {reason}" if reason else " did not say"))
    add_capacity(report["tables"])
    return report


def add_capacity(tables):
    """What the numbers mean for 500,000 requests per second and 100 million users."""
    requests, users, campaigns = 500_000, 100e6, 10
    # Assumed, not measured: how much of a core a shard may use, copies of the data (master and one replica), and what the
    # allocator adds to used_memory.
    utilisation, copies, fragmentation = 0.5, 2, 1.15

    def cost(check_row, memory_row, state):
        rows = [row for table, name in (("check_layouts", check_row), ("memory", memory_row))
                for row in tables.get(table, {"rows": []})["rows"] if row["name"] == name]
        return (rows[0]["client_cpu_us"], rows[0]["redis_cpu_us"], rows[1].get(state, 0)) if len(rows) == 2 else None

    costs = {"ledger": cost("ledger_mget", "ledger", "steady"), "zset": cost("zset", "zset", "fresh")}
    if None in costs.values():
        return
    lines = [("redis_cores", "Redis cores busy", lambda c: requests * c[1] / 1e6),
             ("redis_shards", "Redis shards, by CPU", lambda c: math.ceil(requests * c[1] / 1e6 / utilisation)),
             ("client_cores", "client cores busy", lambda c: requests * c[0] / 1e6),
             ("copy_gb", "memory of one copy, GB", lambda c: users * campaigns * c[2] / 1e9),
             ("total_gb", "memory of all copies, fragmented, GB",
              lambda c: users * campaigns * c[2] / 1e9 * copies * fragmentation)]
    add_once(tables, "capacity", table(
        "Capacity: 500,000 requests/s, 100 million users of 10 campaigns each",
        f"From the numbers above, checks alone. Assumed: shards at {utilisation:g} of a core, {copies:g} copies of the "
        f"data, fragmentation {fragmentation:g}.",
        [("ledger", "ledger, steady", 1), ("zset", "ZSET per user+campaign", 1)],
        [{"name": name, "title": title, **{layout: of(cost) for layout, cost in costs.items()}} for name, title, of in lines]))


def number_text(value, digits):
    return f"{value:,.{digits}f}" if is_number(value) else "–"


def aligned(rows):
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "".join(("  " + rows_first.ljust(widths[0]) + "".join("   " + cell.rjust(width) for cell, width in zip(rest, widths[1:])))
                   .rstrip() + "\n" for rows_first, *rest in rows)


def text(report):
    parts = ["fcap bench" + "".join(f"\n  {key:10} {value}" for key, value in report["about"].items()) + "\n"]
    for table in report["tables"].values():
        columns = table["columns"]
        rows = [["", *(column["title"] for column in columns)]]
        rows += [[row["title"], *(number_text(row.get(column["key"]), column.get("digits", 2)) for column in columns)]
                 for row in table["rows"]]
        parts.append("\n".join(filter(None, (table["title"], table.get("note")))) + "\n" + aligned(rows))
    rows = [["", "measured", "target", ""]]
    for key, _, what, sense, bound, unit, digits in TARGETS:
        value = report[key]
        reached = is_number(value) and (value >= bound if sense == ">=" else value <= bound)
        rows.append([what, number_text(value, digits), f"{'≥' if sense == '>=' else '≤'} {bound:g} {unit}".rstrip(),
                     ("reached" if reached else "missed") if is_number(value) else "not measured"])
    missing = "".join(f"  {key}: {reason}\n" for key, reason in report["missing"].items())
    parts.append("Numbers to reach\n" + aligned(rows) + missing)
    return "\n".join(parts)
