"""stages_table.py LAYERS.json layers.csv: what bench's records come to, in a few lines."""
import csv, json, math, sys
data = json.load(open(sys.argv[1]))
rows = {r["name"]: r for r in csv.DictReader(l for l in open(sys.argv[2]) if l.strip() and l[0] != "#")}
tuned = {n for n, r in rows.items() if r["tuned"] == "1"}
T, errors, C, tf32 = {}, {}, {}, {}
for p in data["problems"]:
    for r in p["records"]:
        if r["status"] == "pass":
            T.setdefault(r["stage"], {})[p["problem"]] = r["cold_ms"]["median"]
            errors[r["stage"]] = max(errors.get(r["stage"], 0), r["max_error_ratio"])
        elif r["status"] != "rejected":
            print("NOT PASSED", p["problem"], r["stage"], r["status"], r["message"][:150])
    for r in p["competitors"]:
        if r["status"] == "pass":
            key = " ".join((r["competitor"], r["precision"], r["layout"]))
            C.setdefault(key, {})[p["problem"]] = r["cold_ms"]["median"]
            if not r.get("tf32_used", True):
                tf32.setdefault(key, set()).add(p["problem"])
def geo(v):
    v = list(v)
    return f"{math.exp(sum(map(math.log, v)) / len(v)):.3f} ({len(v)})" if v else "-"
print(len(data["problems"]), "layers; worst error / allowed:", {s[:2]: round(e, 3) for s, e in errors.items()})
for stage in sorted(T):
    for key in sorted(C):
        if ("tf32" in key) != stage.startswith("12"):
            continue
        common = [l for l in T[stage] if l in C[key] and l not in tf32.get(key, ())]
        x = {l: C[key][l] / T[stage][l] for l in common}
        print(f"{stage:22s} x {key:22s} all {geo(x.values())} fitted {geo(x[l] for l in common if l in tuned)} "
              f"unfitted {geo(x[l] for l in common if l not in tuned)} won {sum(v > 1 for v in x.values())}")
names = sorted(T)
for a, b in zip(names, names[1:]):
    if b.startswith("13"):
        a = next(n for n in names if n.startswith("11"))
    r = sorted(((T[b][l] / T[a][l], l) for l in T[b] if l in T[a]), reverse=True)
    bad = [x for x in r if x[0] > 1.05]
    print(f"{b} after {a}: {len(bad)} slower by > 5 %:", " ".join(f"{l} {v:.3f}" for v, l in bad),
          "| mean", geo(v for v, l in r), "next", " ".join(f"{l} {v:.3f}" for v, l in r[len(bad):len(bad) + 2]))
