"""The open task: any kernel, and as few sectors and wavefronts as it can do with."""
import os

from common.show.files import ROOT
from common.variants import task as tasks

REGISTER_BYTES = 255 * 4  # what a thread has at most; more would go to global memory
OWN_BYTES = 4 * REGISTER_BYTES  # of stack in the counting build: unrolled loops and the hooks add theirs
TASK = tasks.Task("golf", os.path.join(ROOT, "common/variants/golf"), {"goals": [], "count": [
    {"shape": shape, "n": 1} for shape in ("alexnet_conv1", "resnet50_3x3_256_b64",
                                           "resnet50_3x3_128_s2_b64", "resnet50_1x1_256_64_b64")]}, 120)


def score(verdict, record):
    """(status, [record]) with the score, which is printed, or with why there is none."""
    counted = {name: tasks.counters_of(kernels) for name, kernels in verdict.counted.items()}
    largest = max(verdict.frames.items(), key=lambda frame: frame[1], default=("", 0))
    record.update(exercise="golf", layers={}, score=None)
    if not record["kind"] and not all(counted.values()):
        record.update(kind="counters", message=f"{record['file']}: no kernel has run that could be counted")
    elif not record["kind"] and largest[1] > OWN_BYTES:
        record.update(kind="registers", message=(
            f"{record['file']}: a thread of {largest[0].split('(')[0]} keeps {largest[1]:,} bytes of "
            f"its own; more than {OWN_BYTES:,} would not be in registers"))
    if record["kind"]:
        print(f"{record['kind']}: {record['message']}")
        return 1, [record | {"status": "fail"}]
    for name, counters in counted.items():
        sectors, wavefronts = int(counters["sectors"]), int(counters["wavefronts"])
        record["layers"][name] = sectors + wavefronts
        print(f"  {name:26} {sectors:>13,} sectors {wavefronts:>13,} wavefronts")
    record["score"] = sum(record["layers"].values())
    print(f"score {record['score']:,}: sectors and wavefronts, of one image each; fewer is better. "
          "common/variants/golf/README.md has ours.")
    return 0, [record]
