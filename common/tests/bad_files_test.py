"""One table of bad files for all that reads files in Python (in C++: files_test.cpp): each is refused with
its name and the reason, in one line."""
import copy
import os
import unittest

from common.measure.profile import H200
from common.show import counted, floors, page, records
from common.show.files import ROOT
from common.tests.folder_test import FolderTest
from common.tests.page_test import small_trace
from common.variants import variants

READERS = {"bench": records.read_bench, "profile": records.read_profiles, "run": page.read_pictures,
           "trace": page.read_trace, "machine": floors.read_machine, "counts": counted.read_table,
           "variant": variants.read}
RESULTS = os.path.join(ROOT, "docs/results")
BENCH, COUNTS, MACHINE = (records.read_json(os.path.join(RESULTS, name)) for name in (
    "bench_h200.json", "profile_sim.json", H200))
BARE = {name: value for name, value in COUNTS[0].items() if "." not in name}
UNEVEN, CUT = copy.deepcopy(BENCH), small_trace()
UNEVEN["problems"][0]["records"][0]["cold_ms"]["median"] = 9999
CUT["stages"][0]["kernels"][0]["warps"][0]["runs"] = []
WHOLE, VERSION = "not as its writer makes it", r"version \d; this report reads version \d"

BAD = (
    *((reader, text, "not JSON, or cut short") for reader in ("bench", "profile", "run", "trace", "machine")
      for text in ("", "{", "[1, 2", "[NaN]", "[-Infinity]", "[1e999]")),
    ("machine", "[" * 100000, "not JSON, or nested too deep$"),
    ("bench", "7", "its format is null"), ("bench", COUNTS, "its format is null"),
    ("bench", {**BENCH, "version": 2}, VERSION), ("bench", UNEVEN, "around median 9999"),
    ("bench", {**BENCH, "problems": [{}]}, "member 'problem' is missing"),
    ("profile", BENCH, "not made by profile"), ("profile", [BARE], "no counters .* show, none at all"),
    ("profile", [{**BARE, "a__b.sum": 1}], "no counters .* show, only a__b.sum"),
    ("profile", [COUNTS[0], {**COUNTS[0], "version": "1"}], 'record 1: version "1"; '),
    ("profile", [{**COUNTS[0], "dram__bytes_read.sum": "7"}], WHOLE),
    ("profile", [], "no record of a kernel"), ("run", {"version": 2, "pictures": {}}, VERSION),
    *(("run", value, "not made by run") for value in ("7", COUNTS, BENCH)), ("run", {"pictures": {}}, WHOLE),
    ("trace", {**small_trace(), "version": 1}, VERSION), ("trace", CUT, "without all instructions"),
    ("trace", {"format": "x"}, 'its format is "x", not "convladder trace"'),
    ("trace", {**small_trace(), "shape": "n1"}, WHOLE),
    ("trace", {**small_trace(), "stages": [{}]}, WHOLE), ("machine", {"format": "x"}, "its format is"),
    ("machine", {**MACHINE, "rates": MACHINE["rates"][1:]}, "'multiprocessors' is missing, or no rate"),
    ("machine", {**MACHINE, "rates": [{"name": "multiprocessors", "value": 1e-300}]}, "or no rate"),
    *(("machine", {**MACHINE, "gpu": gpu}, "'gpu' is no name of one")
      for gpu in (7, None, "", "NVIDIA ", "a\nb", "a\x1b[1m")),
    *(("machine", {**MACHINE, "rates": rates}, "'rates' is no list of objects")
      for rates in (7, None, {}, [1, 2], "x", MACHINE["rates"] + [None])),
    *(("machine", {**MACHINE, "rates": [{**rate, "value": wrong}, *others]},
       f"'{rate['name']}' is missing, or no rate")
      for rate, *others in (MACHINE["rates"], MACHINE["rates"][::-1])
      for wrong in (True, "x", None, [1], 10 ** 400)),
    ("machine", {**MACHINE, "rates": MACHINE["rates"] + MACHINE["rates"][:1]}, "'.*' is there twice"),
    ("counts", "a,b\n1,2\n", "has no columns problem"),
    ("variant", "bug a: x\n- old\n", r"needs lines with - and with \+"),
    *(("variant", text, "no word of a variant") for text in ("bug a: x\n+ new\n", "nonsense\n")),
    ("variant", "bug a: x\n- o\n+ n\nbug a: y\n- o\n+ n\n", "there twice"),
    ("variant", "like bad: x\nbug a: x\n- o\n+ n\n", "which is like this one"),
    ("variant", "like other: gone\nbug a: x\n- o\n+ n\n", "no bug 'gone'"))


class BadFiles(FolderTest):
    def refused(self, reader, path, reason):
        with self.assertRaises((records.BadInput, variants.BadVariant)) as caught:
            READERS[reader](path)
        self.assertRegex(str(caught.exception), f"^[^\n]*{os.path.basename(path)}[^\n]*{reason}[^\n]*$")

    def test_are_refused_in_one_line_with_their_name(self):
        self.save("other.variant", "bug b: x\n- o\n+ n\n")
        for reader, value, reason in BAD:
            with self.subTest(reader, reason=reason):
                self.refused(reader, self.save("bad.variant", value), reason)
        for path, reason in ((self.path("none.json"), "No such file"), (self.folder, "Not a regular file"),
                             ("/dev/zero", "Not a regular file")):
            for reader in ("bench", "profile", "run", "trace"):
                self.refused(reader, path, reason)


if __name__ == "__main__":
    unittest.main()
