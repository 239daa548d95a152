"""`./ladder doctor`: what this machine has, what it lacks, and how to get it. It installs nothing, and
fails where ./ladder run can't work."""
import itertools
import os
import re
import shutil

from common.command import building, machine
from common.show import files
from common.show.support import tell

TOOLKIT = "part of NVIDIA's CUDA Toolkit"
ONE_ALONE = "9.0"  # no later one has its wgmma


def of_the_gpu(nvcc):
    """(name, finding, purpose, detail, remedy) of what is never installed, and no build links."""
    path = os.pathsep.join([os.environ["PATH"], os.path.dirname(nvcc or "")])
    yield ("GPU and driver", " | ".join(machine.gpus()), "GPU backend", "",
           "an NVIDIA GPU, and NVIDIA's driver for it")
    yield ("nvcc", nvcc, "builds the GPU backend", "", "NVIDIA's CUDA Toolkit; in PATH, or set CUDACXX")
    yield ("ncu", shutil.which("ncu", path=path), "profile: reads a GPU's memory counters", "", TOOLKIT)
    yield ("compute-sanitizer", shutil.which("compute-sanitizer", path=path),
           "sanitize: stray accesses and races on a GPU", "", TOOLKIT)
    yield ("counter access", machine.counter_access(), "lets ncu read them", "",
           "be root, or NVreg_RestrictProfilingToAdminUsers=0 for the driver (docs/profiling.md)")


def numbers(stages):
    """"01 to 11 and 16"."""
    runs = [[stage[:2] for stage in run]
            for inside, run in itertools.groupby(files.stage_names(), stages.__contains__) if inside]
    return " and ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else " and ".join(run) for run in runs)


def of_the_stages(gpus):
    """Which stages run where: on this machine's GPU, or on which one if nothing is known of it."""
    by_need = {}
    for stage in files.stage_names():
        by_need.setdefault(files.capability_of(stage), []).append(stage)
    anywhere = by_need.pop("", [])
    words = {need: f"compute capability {need} " + ("alone" if need == ONE_ALONE else "or more")
             for need in by_need}
    known = re.search(r"compute (\d+\.\d+)$", gpus[0]) if gpus else None  # an old nvidia-smi says [N/A]
    if not known:
        others = [f"{words[need]} {numbers(by_need[need])} as well" for need in sorted(by_need)]
        return "; ".join([f"any GPU runs {numbers(anywhere)}", *others, "the simulator runs all"])
    own = float(known[1])
    lacking = [need for need in sorted(by_need)
               if own < float(need) or (own > float(need) and need == ONE_ALONE)]
    if not lacking:
        return "this GPU runs all, and so does the simulator"
    here = anywhere + [stage for need in by_need if need not in lacking for stage in by_need[need]]
    others = [f"{words[need]} is for {numbers(by_need[need])}" for need in lacking]
    return "; ".join([f"this GPU runs {numbers(here)}", *others, "the simulator runs all"])


def doctor(chosen, nvcc):
    rows = {row[0]: row for row in of_the_gpu(nvcc)}
    lacking = machine.lacking_tools()
    packages = machine.packages_used_by("run") if lacking else []
    for preset in [] if lacking else [*(["gpu"] if nvcc else []), "sim"]:
        with building.in_turn(preset, "configuring") as lock:
            status = building.configure_once(lock, preset, "doctor")
        if status and preset == chosen and not building.missing(preset, "run"):
            building.failed(preset, "configure.log", "configuring")
        for need in building.needs(preset):
            row = [need[column] for column in ("name", "found", "purpose", "detail", "remedy")]
            rows.setdefault(need["name"], row)
    for name, found, purpose, detail, remedy in rows.values():
        if found:
            tell(f"{name:18} found    {found} ({purpose}){detail and ', ' + detail}")
        else:
            tell(f"{name:18} missing  {purpose}. Get it: {remedy}")
    tell(f"{'stages':18} {of_the_stages(machine.gpus())}")
    if lacking:
        tell(f"missing: {' '.join(lacking)}; what else there is will be found out when they are there")
    lacks = [] if lacking else building.missing(chosen, "run")
    packages = packages or building.packages(lacks)
    remedies = [need["remedy"] for need in lacks if not need["package"]]
    if packages:
        reason = machine.install()
        remedies += [f"{reason}; apt-get install {' '.join(packages)}"] if reason else []
    if remedies:
        tell(f"./ladder run can't work yet: {'; '.join(remedies)}")
        return 1
    will = f"will install: {' '.join(packages)}" if packages else "works here"
    tell(f"./ladder run {will}; backend: {chosen}.")
    return 0
