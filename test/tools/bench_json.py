#!/usr/bin/env python3
"""bench_json.py FILE: the lines of tilec bench --json, for bench.test."""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as f:
    rows = [json.loads(line) for line in f]
assert [r["sizes"] for r in rows] == ["N=100", "N=1000"], rows
for r, n in zip(rows, (100, 1000)):
    assert r["flops"] == 2 * (n + 1) + n / 4 and r["bytes"] == 8 * n, r
    assert 0 < r["best"] <= r["seconds"] <= r["worst"], r
    assert r["copy_bytes_per_second"] > 0 and r["product_flops_per_second"] > 0, r
