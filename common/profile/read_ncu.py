#!/usr/bin/env python3
"""Reads Nsight Compute's memory counters on a GPU, for the counting simulator to be held against.

  common/profile/read_ncu.py stages [--bin build/gpu/bin] [--out docs/results/ncu_stages.csv]
      every stage on every problem of common/tests/data/counted_problems.csv
  common/profile/read_ncu.py patterns [--bin build/gpu/bin] [--out docs/results/ncu_patterns.csv]
      every way of addressing memory in common/profile/bank_patterns.cu

Needs ncu in the PATH, and its permission to read counters (./ladder doctor).
"""
import argparse
import csv
import io
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STAGES = ["01_naive", "02_im2col_gemm", "03_shared_tiling", "04_register_blocking", "05_fused_bias"]
EXTENTS = ["n", "c", "h", "w", "k", "r", "s", "stride_h", "stride_w", "pad_h", "pad_w", "dil_h",
           "dil_w"]

GLOBAL = [f"l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum"
          for op in ("ld", "st") for what in ("requests", "sectors")]
GLOBAL += [f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.ratio"
           for op in ("ld", "st")]
COPIES = [f"sm__sass_l1tex_t_{what}_pipe_lsu_mem_global_op_ldgsts_cache_{way}.sum"
          for way in ("access", "bypass") for what in ("requests", "sectors")]
COPIES += ["smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"]
SHARED = [f"l1tex__data_{what}_mem_shared_op_{op}.sum" for op in ("ld", "st")
          for what in ("pipe_lsu_wavefronts", "bank_conflicts_pipe_lsu")]


def run_ncu(metrics, command):
    """The launches of `command` in order, as (kernel, {metric: value}), and its own output.

    Metrics that ncu doesn't know on this GPU are dropped from the list, with a warning."""
    while True:
        ncu = ["ncu", "--csv", "--clock-control", "none", "--metrics", ",".join(metrics)]
        done = subprocess.run(ncu + command, capture_output=True, text=True)
        if done.returncode == 0:
            break
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "metric" in line]
        unknown = [m for m in metrics if any(m.rsplit(".", 1)[0] in line for line in errors)]
        if not unknown or len(unknown) == len(metrics):
            sys.exit(f"{' '.join(ncu + command)} failed:\n{done.stdout}{done.stderr}")
        print("ncu doesn't know", ", ".join(unknown), file=sys.stderr)
        for metric in unknown:
            metrics.remove(metric)
    lines = done.stdout.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        sys.exit(f"{' '.join(ncu + command)}: no counters:\n{done.stdout}{done.stderr}")
    table = [line for line in lines[begin:] if line.startswith('"')]
    launches = {}
    for row in csv.DictReader(io.StringIO("\n".join(table))):
        _, values = launches.setdefault(int(row["ID"]), (plain_name(row["Kernel Name"]), {}))
        text = row["Metric Value"].replace(",", "")
        values[row["Metric Name"]] = float(text) if re.fullmatch(r"[-+.\deE]+", text) else None
    output = [line for line in lines if not line.startswith('"')]
    return [launches[i] for i in sorted(launches)], output


def plain_name(name):
    """'void a::<unnamed>::kernel<8, 8>(float *)' -> 'kernel'."""
    name = name.replace("<unnamed>::", "").replace("(anonymous namespace)::", "")
    return re.split(r"[<(]", name)[0].split()[-1].split("::")[-1]


def number(value):
    return "" if value is None else f"{value:.10g}"


def write_csv(path, header, rows, command):
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    version = subprocess.run(["ncu", "--version"], capture_output=True, text=True).stdout
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True).stdout.splitlines()
    with open(path + ".part", "w", newline="") as file:
        file.write(f"# made by: {command}\n")
        file.write(f"# GPU: {gpu[0] if gpu else '?'}; ncu: {version.strip().splitlines()[-1]}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    os.replace(path + ".part", path)
    print(f"wrote {path}: {len(rows)} rows")


def read_stages(binaries):
    metrics = GLOBAL + COPIES + SHARED
    rows = []
    with open(os.path.join(ROOT, "common/tests/data/counted_problems.csv")) as file:
        problems = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for problem in problems:
        for stage in STAGES:
            command = [os.path.join(binaries, "convladder"), "run", "--once", "--stage", stage,
                       "--bias", problem["bias"]]
            for extent in EXTENTS:
                command += ["--" + extent, problem[extent]]
            kernels = {}  # launches of one kernel are added up, as the simulator does
            for kernel, values in run_ncu(metrics, command)[0]:
                kernels.setdefault(kernel, []).append(values)
            for kernel, launches in kernels.items():
                row = [problem["name"], stage, kernel, len(launches)]
                for metric in metrics:
                    values = [launch.get(metric) for launch in launches]
                    if None in values:
                        row.append("")
                    elif metric.endswith(".ratio"):  # does not add up
                        row.append(number(values[0]) if len(values) == 1 else "")
                    else:
                        row.append(number(sum(values)))
                rows.append(row)
            print(f"{problem['name']} {stage}: {', '.join(kernels)}", flush=True)
    return ["problem", "stage", "kernel", "launches"] + metrics, rows


def read_patterns(binaries):
    metrics = GLOBAL + SHARED
    launches, output = run_ncu(metrics, [os.path.join(binaries, "bank_patterns")])
    names = [line.split(" ", 1)[1].split(",") for line in output if line.startswith("launched ")]
    if len(names) != len(launches):
        sys.exit(f"bank_patterns launched {len(names)} kernels, ncu saw {len(launches)}")
    rows = [name + [number(values.get(metric)) for metric in metrics]
            for name, (_, values) in zip(names, launches)]
    return ["kind", "bytes", "pattern"] + metrics, rows


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["stages", "patterns"])
    parser.add_argument("--bin", default=os.path.join(ROOT, "build/gpu/bin"))
    parser.add_argument("--out")
    arguments = parser.parse_args()
    read = read_stages if arguments.what == "stages" else read_patterns
    out = arguments.out or os.path.join(ROOT, f"docs/results/ncu_{arguments.what}.csv")
    header, rows = read(arguments.bin)
    write_csv(out, header, rows, f"common/profile/read_ncu.py {arguments.what}")


if __name__ == "__main__":
    main()
