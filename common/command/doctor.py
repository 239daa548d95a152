"""`./ladder doctor`: what this machine has, what it lacks, and how to get it. It installs nothing, and
fails where ./ladder run can't work."""
import os
import shutil

from common.command import building, machine
from common.show.support import tell

TOOLKIT = "part of NVIDIA's CUDA Toolkit"


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


def doctor(chosen, nvcc):
    rows = {row[0]: row for row in of_the_gpu(nvcc)}
    lacking = machine.lacking_tools()
    packages = machine.packages_used_by("run") if lacking else []
    for preset in [] if lacking else [*(["gpu"] if nvcc else []), "sim"]:
        with building.in_turn(preset, "configuring"):
            status = building.configure_once(preset, "doctor")
        if status and preset == chosen and not building.missing(preset, "run"):
            building.failed(building.folder(preset, "configure.log"), "configuring")
        for need in building.needs(preset):
            row = [need[column] for column in ("name", "found", "purpose", "detail", "remedy")]
            rows.setdefault(need["name"], row)
    for name, found, purpose, detail, remedy in rows.values():
        if found:
            tell(f"{name:18} found    {found} ({purpose}){detail and ', ' + detail}")
        else:
            tell(f"{name:18} missing  {purpose}. Get it: {remedy}")
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
