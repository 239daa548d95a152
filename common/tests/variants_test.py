"""Tests of variants without compiling any: every edit fits, each stage has enough, bad files are refused."""
import os
import tempfile
import unittest

from common.command.__main__ import read
from common.show import files
from common.show.files import ROOT
from common.tests.folder_test import called
from common.variants import task, variant, variants

ALL = variants.of_stages()


class Variants(unittest.TestCase):
    def test_every_edit_fits(self):
        for each in ALL:
            with self.subTest(each.title), tempfile.TemporaryDirectory() as folder:
                kernel, _ = each.write(folder)
                changed = files.read(kernel) != files.read(files.kernel_file(each.stage))
                self.assertEqual(changed, any(edit.file is None for edit in each.edits))

    def test_each_stage_has_enough_and_its_lesson_names_its_experiments(self):
        for stage in files.lessons():
            own = [each for each in ALL if each.stage == stage]
            self.assertGreaterEqual(sum(each.kind == "bug" for each in own), 20, stage)
            experiments = [each.name for each in own if each.kind == "experiment"]
            self.assertGreaterEqual(len(experiments), 3, stage)
            lesson = "".join(files.read_existing(os.path.join(ROOT, stage, page))
                             for page in ("README.md", "details.md"))
            self.assertEqual([name for name in experiments if f"`{name}`" not in lesson], [])

    def test_mistakes_fit_their_solutions(self):
        for each in task.read_all():
            for mistake in each.variants():
                changed = mistake.apply(each.solved()) != each.solved()
                self.assertEqual(changed, bool(mistake.edits), mistake.title)

    def test_an_edit_that_fits_nowhere_or_twice(self):
        edited = variants.Variant("f:1", "bug", "s", "n", "", edits=[variants.Edit(None, ["a  b"], ["c"])])
        self.assertEqual(edited.apply("x a\n b y"), "x c y")
        for text in ("", "a b a b"):
            with self.assertRaises(variants.BadVariant):
                edited.apply(text)

    def test_what_counts_as_caught(self):
        bug = variants.Variant("f:1", "bug", "s", "n", "")
        self.assertFalse(variant.is_caught(bug, ["small integers", "", "crash"]))
        self.assertTrue(variant.is_caught(bug, ["small integers"] * 3))
        bug.expect = "data race or never written"
        self.assertFalse(variant.is_caught(bug, ["small integers"] * 3))
        self.assertTrue(variant.is_caught(bug, ["", "never written"]))

    def test_usage(self):
        self.assertEqual(read(["variant", "--stage", "race"])[1], ["variant", "--stage", "race"])
        for words in (["--jobs", "0"], ["--repeats", "0"], ["--nosuch"], ["--kind", "x"], ["nosuch"],
                      ["--stage", "01", "nosuch"], ["--stage", "race", "nosuch"], ["--stage", "77"]):
            status, _, said = called(variant.main, words)
            self.assertEqual(status, 2, words)
            self.assertRegex(said, "^ladder: error: (variant|stage)[: ][^\n]*\n$")


if __name__ == "__main__":
    unittest.main()
