"""Tests of common/tests: the commands that pages have, and the links between them."""

import ast
import pathlib
import re
import struct
import subprocess
import time
import unittest
import unittest.mock

from common.tests.folder_test import FolderTest, called
from common.show import files

from common.tests import commands, links

ROOT = pathlib.Path(__file__).resolve().parents[2]


def extract(*lines, page="page.md"):
    return commands.extract(page, "\n".join(lines) + "\n")


class Extract(unittest.TestCase):
    def test_only_sh_blocks_hold_commands(self):
        for lines, expected in (
            (["text", "```sh", "one", "```", "```", "no", "```", "```cpp", "no", "```",
              "```sh", "two --option  # why", "", "# a comment", "```"],
             [("page.md:3", "one"), ("page.md:12", "two --option  # why")]),
            (["```sh", "one \\", "  two \\", "  three", "four", "```"],  # a backslash joins lines
             [("page.md:2", "one   two   three"), ("page.md:5", "four")]),
            # A longer fence holds a shorter one.
            (["````", "```sh", "no", "```", "````", "```sh", "yes", "```"], [("page.md:7", "yes")]),
        ):
            self.assertEqual([(c.where, c.text) for c in extract(*lines)], expected)

    def test_what_a_command_needs(self):
        """By the words of its block, or since it is known."""
        for needs, block, texts in (
            ({"gpu", "slow"}, "gpu slow", ["a"]), ({"manual"}, "manual", ["b"]),
            ({"gpu"}, "", ["ncu x", "./ladder bench --repeats 3", "cmake --preset gpu", "compute-sanitizer x",
                           "build/gpu/bin/x", "./ladder build gpu x", "./ladder run --backend gpu"]),
            ({"slow"}, "", ["./ladder test   # all", "./ladder test --stage 03_shared_tiling",
                            "./ladder check --stage 01_naive  # all problems"]),
            ({"gpu", "slow"}, "", ["./ladder bench", "./ladder sanitize",
                                   "./ladder sanitize --jobs 8  # at a time"]),
            (set(), "", ["./ladder run  # like ./ladder bench on build/gpu", "echo ncu", "./ladder profile",
                         "./ladder check --stage 01_naive --shape alexnet_conv1",
                         "./ladder test --stage 99_my_idea"]),
        ):
            for text in texts:
                self.assertEqual(extract("```sh " + block, text, "```")[0].needs, needs, text)

    def test_errors_name_the_place(self):
        for lines, message in (
            (["", "```sh fast", "a", "```"], "page.md:2: 'fast' is none of gpu, slow, manual"),
            (["```sh", "a \\", "```"], "page.md:3: the block ends within a command"),
            (["```sh", "a"], "page.md: a block isn't closed"),
        ):
            with self.assertRaises(ValueError) as caught:
                extract(*lines)
            self.assertEqual(str(caught.exception), message)

    def test_what_a_page_uses_it_has_had_made(self):
        other = extract("```sh", "./ladder build sim b", "```", page="other.md")
        for lines, errors in (
            (["./ladder build sim a b", "build/sim/bin/b --x", "ctest --preset sim -L l"], []),
            (["./ladder build sim a", "build/sim/bin/b"], ["build sim b"]),
            (["./ladder build sim a", "build/sim-count/bin/a"], ["build sim-count a"]),
            (["ctest --preset sim", "./ladder build sim a"], ["build sim TARGET"]),
            (["./ladder build sim a", "ctest --test-dir build/gpu"], ["build gpu TARGET"]),
            (["cmake --preset sim"], ["cmake installs nothing"]),
            (["./ladder run  # not cmake"], []),
        ):
            found = commands.unprepared(other + extract("```sh", *lines, "```"))
            self.assertEqual(len(found), len(errors), found)
            for message, part in zip(found, errors):
                self.assertIn(part, message)

    def test_the_first_program_is_shown_as_it_is(self):
        text = (ROOT / "docs/cuda.md").read_text(encoding="utf-8")
        shown = re.search(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
        self.assertEqual(shown, (ROOT / "docs/cuda/add.cu").read_text(encoding="utf-8"))

    def test_every_page_of_ours_can_be_read(self):
        ours = commands.all_commands()
        self.assertEqual(commands.unprepared(ours), [])
        found = {command.page for command in ours}
        self.assertLessEqual({"README.md", "01_naive/README.md", "docs/pitfalls.md"}, found)


class Run(FolderTest):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.folder)

    def test_what_is_left_out_and_what_stands_in(self):
        for text, needs, gpu, slow, runs in (
            ("true", {"gpu"}, False, True, None), ("true", {"gpu"}, True, False, "true"),
            ("true", {"slow"}, True, False, None), ("true", {"slow"}, False, True, "true"),
            ("true", {"manual"}, True, True, None), ("true", set(), False, False, "true"),
            ("./ladder test  # all", set(), False, False, "./ladder build sim all"),
            ("./ladder check --stage 02_x --offset 1  # unaligned", set(), False, False,
             "./ladder check --stage 02_x --offset 1 --max-gmac 0.001"),
        ):
            self.assertEqual(commands.Command("page.md:1", text, needs).to_run(gpu, slow)[0], runs)

    def test_the_end_of_a_command(self):
        for text, expected in (("echo a && exit 3", (3, "a\n")), ("false; echo behind", (1, "")),
                               ("echo No tests were found'!!!'", (1, "No tests were found!!!\n")),
                               ("pwd", (0, self.folder + "\n"))):
            self.assertEqual(commands.run(text, self.folder), expected)

    def test_what_takes_too_long_is_ended_with_all_that_it_started(self):
        with unittest.mock.patch.object(commands, "TIME_LIMIT", 0.2):
            status, output = commands.run("(sleep 1; touch left) & wait", self.folder)
        self.assertEqual((status, output), (124, "\nended after 0.2 s"))
        time.sleep(1.2)
        self.assertEqual(self.files(), [])

    def run_all(self, slow, *texts):
        found = [commands.Command("page.md:1", text, set()) for text in texts]
        return called(commands.run_all, found, self.root, False, slow)

    def test_the_same_words_run_once_unless_all_is_asked_for(self):
        for slow, lines in ((False, "x\n"), (True, "x\nx\n")):
            self.save("log", "")
            self.assertEqual(self.run_all(slow, "echo x >> log", "echo x >> log  # again")[0], 0)
            self.assertEqual(self.read("log"), lines)

    def test_a_failure_is_shown_and_counted_and_what_was_made_goes_again(self):
        failed, shown, _ = self.run_all(False, "echo reason; mkdir 99_my_idea; touch y.npy; exit 3", "true")
        self.assertEqual(failed, 1)
        self.assertIn("FAIL", shown)
        self.assertIn("exit status 3; its last lines:\n    | reason", shown)
        commands.remove_made(self.root)
        self.assertEqual(self.files(), [])

    def test_npy_files_are_what_numpy_would_write(self):
        commands.write_npy(self.root / "x.npy", (2, 3))
        data = (self.root / "x.npy").read_bytes()
        length = struct.unpack("<H", data[8:10])[0]
        self.assertEqual(data[:8], b"\x93NUMPY\x01\x00")
        self.assertEqual((10 + length) % 64, 0)
        self.assertEqual(len(data), 10 + length + 2 * 3 * 4)
        header = ast.literal_eval(data[10:10 + length].decode())
        self.assertEqual(header, {"descr": "<f4", "fortran_order": False, "shape": (2, 3)})


class Links(FolderTest):
    def setUp(self):
        super().setUp()
        self.save("code.h", "one\ntwo three\nfour\nfour\n")
        self.save("other.md", "# The first, 2nd: title\n")

    def check(self, link, fix=False):
        page = self.save("page.md", f"# Here\n\nSee {link}.\n")
        errors, moved = links.check(pathlib.Path(page), fix)
        strip = f"{page}:3: "
        return [e.removeprefix(strip) for e in errors], [m.removeprefix(strip) for m in moved]

    def test_what_is_there(self):
        for link in ("[a](code.h)", "[a](other.md#the-first-2nd-title)", "[a](#here)",
                     '[a](code.h#L2 "two")', "[a](https://example.org/no)", "![a](code.h)"):
            self.assertEqual(self.check(link), ([], []), link)

    def test_what_is_not(self):
        for link, message in (
            ("[a](no.h)", "no.h: no such file"),
            ("[a](other.md#second)", "other.md#second: no such heading"),
            ("[a](code.h#L2)", 'code.h#L2: give a piece of the line as title: (FILE#L12 "piece")'),
            ('[a](code.h#two "two")', "code.h#two: neither a page's heading nor a line (#L12)"),
            ('[a](code.h#L1 "five")', "code.h#L1: 'five' is on 0 lines of that file"),
            ('[a](code.h#L1 "four")', "code.h#L1: 'four' is on 2 lines of that file"),
        ):
            self.assertEqual(self.check(link), ([message], []), link)

    def test_moved_lines_are_told_of_and_corrected(self):
        link = '[a](code.h#L1 "two three")'
        self.assertEqual(self.check(link), ([], ["code.h#L1: 'two three' is on line 2 now"]))
        self.assertEqual(self.check(link, fix=True), ([], []))
        self.assertEqual(self.read("page.md"), '# Here\n\nSee [a](code.h#L2 "two three").\n')

    def test_code_is_not_read_as_links(self):
        self.assertEqual(self.check("\n```\n[a](no.h)\n```\n"), ([], []))


class TopLevel(unittest.TestCase):
    """A newcomer's first look: the stages and a few names, and nothing that was left lying about."""

    NAMES = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "common", "docs", "ladder"}

    def test_holds_the_stages_and_little_else(self):
        kept = subprocess.run(["git", "ls-files"], cwd=ROOT, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.split("\n")
        names = {path.split("/")[0] for path in kept if path}
        if not names:  # not from git: all that is there
            names = {path.name for path in ROOT.iterdir()} - {"build", "CMakeUserPresets.json"}
        others = [name for name in names - self.NAMES
                  if not name.startswith(".") and not re.fullmatch(r"\d\d_\w+", name)]
        self.assertEqual(others, [])

    def test_the_way_up_has_every_stage(self):
        text = (ROOT / "README.md").read_text(encoding="utf-8")
        way = text[text.index("## The way up"):].split("\n## ")[0]
        self.assertEqual(re.findall(r"\]\((\d\d_\w+)/README\.md\)", way), files.rungs(),
                         "README.md, The way up: see docs/adding-a-stage.md, Once it is a rung")


if __name__ == "__main__":
    unittest.main()
