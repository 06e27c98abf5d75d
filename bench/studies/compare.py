"""The comparison a Python runtime would do: a Counter over sorted-key JSON of each effect.

Reads one request per line, {"effects": n, "rounds": k}, and answers with the median microseconds of one comparison.
The approved side is prepared once; the observed side starts from raw row images, as in the TypeScript study.
"""
import json
import sys
import time
from collections import Counter


def images(n):
    for i in range(n):
        before = {"id": i, "status": "pending", "amount_cents": 1000 + i, "note": "invoice %d" % i}
        yield {"op": "update", "target": "invoice", "key": {"id": i}, "before": before, "after": dict(before, status="paid")}


def effect_key(record):
    before, after = record["before"], record["after"]
    changed = [column for column in before if before[column] != after[column]]
    effect = {
        "op": record["op"],
        "target": record["target"],
        "key": record["key"],
        "before": {column: before[column] for column in changed},
        "after": {column: after[column] for column in changed},
    }
    return json.dumps(effect, sort_keys=True, separators=(",", ":"))


for line in sys.stdin:
    request = json.loads(line)
    records = list(images(request["effects"]))
    approved = Counter(effect_key(record) for record in records)
    samples = []
    for _ in range(request["rounds"]):
        started = time.perf_counter()
        equal = Counter(effect_key(record) for record in records) == approved
        samples.append(time.perf_counter() - started)
        if not equal:
            sys.exit("the comparison must find the bags equal")
    samples.sort()
    print(json.dumps({"us": samples[len(samples) // 2] * 1e6}), flush=True)
