"""The open task: any kernel, and as few sectors and wavefronts as it can do with."""
import os
import shutil

from common.variants import judge
from common.variants import task as tasks
from common.variants.judge import shown
from common.show.support import fail
from common.variants.task import number

FOLDER = os.path.join(judge.ROOT, "common", "exercises", "golf")
SECONDS = 120
REGISTER_BYTES = 255 * 4  # what a thread has at most; more would go to global memory
OWN_BYTES = 4 * REGISTER_BYTES  # of stack in the counting build: unrolled loops and the hooks add theirs
LAYERS = ("alexnet_conv1", "resnet50_3x3_256_b64", "resnet50_3x3_128_s2_b64",
          "resnet50_1x1_256_64_b64")


def play(source, builds):
    """(status, records)."""
    if not os.path.exists(source):
        if os.path.basename(source) != "golf.cu":
            fail(f"{source}: there is no such file")
        os.makedirs(os.path.dirname(os.path.abspath(source)), exist_ok=True)
        shutil.copyfile(os.path.join(FOLDER, "start.cu"), source)
        print(f"made {shown(source)}. The task: {shown(os.path.join(FOLDER, 'README.md'))}")
    known = judge.problems()
    verdict = judge.judge(builds["sim-count"], source, {name: known[name] for name in tasks.NASTY},
                          {name: {**known[name], "n": 1} for name in LAYERS}, seconds=SECONDS)
    record = {"exercise": "golf", "file": shown(source), "status": "fail" if verdict.kind else "pass",
              "kind": verdict.kind, "message": verdict.message, "layers": {}, "score": None}
    if not verdict.kind:
        largest = max(verdict.frames.items(), key=lambda frame: frame[1], default=("", 0))
        if largest[1] > OWN_BYTES:
            record.update(status="fail", kind="registers", message=(
                f"{shown(source)}: a thread of {largest[0].split('(')[0]} keeps {largest[1]:,} bytes of "
                f"its own; more than {OWN_BYTES:,} would not be in registers"))
    if record["kind"]:
        print(f"{record['kind']}: {record['message']}")
        return 1, [record]
    for name, kernels in verdict.counted.items():
        counters = tasks.counters_of(kernels)
        record["layers"][name] = int(counters["sectors"] + counters["wavefronts"])
        print(f"  {name:26} {number(counters['sectors']):>13} sectors "
              f"{number(counters['wavefronts']):>13} wavefronts")
    record["score"] = sum(record["layers"].values())
    print(f"score {record['score']:,}: sectors and wavefronts, of one image each; fewer is better. "
          f"{shown(os.path.join(FOLDER, 'README.md'))} has ours.")
    return 0, [record]
