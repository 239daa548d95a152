"""What `./ladder profile` counted of a stage the last time: its records, kept below build/report/last."""
import os
import re

from common.show.records import BadInput, read_profiles
from common.show.support import REPORT, write_json


def path_of(records, relu):
    """The file that keeps the records of one stage: there is one for each stage, problem and source."""
    first = records[0]
    name = " ".join([first["stage"], first["shape"]] + ["bias"] * first["bias"] + ["relu"] * relu)
    return os.path.join(REPORT, "last", first["source"], re.sub(r"[^0-9A-Za-z]", "_", name) + ".json")


def by_stage(records):
    stages = {}
    for record in records:
        stages.setdefault(record["stage"], []).append(record)
    return stages


def read(records, relu):
    """{stage: its Profile of the last time} for the stages of these records; without those of which
    nothing was kept that can still be read."""
    profiles = {}
    for stage, own in by_stage(records).items():
        try:
            profiles[stage], = read_profiles(path_of(own, relu))
        except (BadInput, ValueError):
            pass
    return profiles


def keep(records, relu):
    for own in by_stage(records).values():
        path = path_of(own, relu)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_json(path, own)
