"""Tests of common/tests: the commands that pages have, and the links between them."""
import pathlib
import re
import subprocess
import time
import unittest
import unittest.mock

from common.command import site
from common.show import blocks, files
from common.tests import commands, links
from common.tests.folder_test import FolderTest, called

ROOT = pathlib.Path(files.ROOT)


def extract(*lines, page="page.md"):
    return commands.extract(page, "\n".join(lines) + "\n")


class Commands(unittest.TestCase):
    def test_only_sh_blocks_hold_them(self):
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
        for lines, message in ((["", "```sh fast", "a", "```"], "page.md:2: 'sh fast': words are gpu,"),
                               (["```sh", "a \\", "```"], "page.md:2: the block ends within a command"),
                               (["```sh", "a"], "page.md: a block isn't closed")):
            with self.assertRaisesRegex(ValueError, message):
                extract(*lines)

    def test_what_they_need(self):
        """By the words of the block, or since it is known."""
        for needs, block, texts in (
            ({"gpu", "slow"}, "gpu slow", ["a"]), ({"manual"}, "manual", ["b"]),
            ({"gpu"}, "", ["ncu x", "./ladder bench --repeats 3", "cmake --preset gpu",
                           "build/gpu/bin/x", "./ladder build gpu x", "./ladder run --backend gpu"]),
            ({"slow"}, "", ["./ladder test   # all", "./ladder test --stage 03_shared_tiling",
                            "./ladder check --stage 01_naive  # all problems"]),
            ({"gpu", "slow"}, "", ["./ladder bench", "./ladder sanitize --jobs 8  # at a time"]),
            (set(), "", ["./ladder run  # like ./ladder bench on build/gpu", "echo ncu", "./ladder profile",
                         "./ladder test --stage 99_my_idea"]),
        ):
            for text in texts:
                self.assertEqual(extract("```sh " + block, text, "```")[0].needs, needs, text)

    def test_what_a_page_uses_it_has_had_made(self):
        other = extract("```sh", "./ladder build sim b", "```", page="other.md")
        for lines, errors in (
            (["./ladder build sim a b", "build/sim/bin/b --x", "ctest --preset sim -L l"], []),
            (["./ladder build sim a", "build/sim/bin/b"], ["build sim b"]),
            (["./ladder build sim a", "build/sim-count/bin/a"], ["build sim-count a"]),
            (["ctest --preset sim", "./ladder build sim a"], ["build sim TARGET"]),
            (["cmake --preset sim"], ["cmake installs nothing"]), (["./ladder run  # not cmake"], []),
        ):
            found = commands.unprepared(other + extract("```sh", *lines, "```"))
            self.assertEqual(len(found), len(errors), found)
            for message, part in zip(found, errors):
                self.assertIn(part, message)
        ours = commands.all_commands()
        self.assertEqual(commands.unprepared(ours), [])
        self.assertGreater(len(ours), 100)

    def test_programs_are_shown_as_they_are(self):
        text = files.read(ROOT / "docs/cuda.md")
        shown = re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertEqual(shown, [files.read(ROOT / "docs/cuda" / name) for name in ("add.cu", "reverse.cu")])


class Run(FolderTest):
    def test_the_end_of_a_command(self):
        for text, expected in (("echo a && exit 3", (3, "a\n")), ("false; echo behind", (1, "")),
                               ("echo No tests were found'!!!'", (1, "No tests were found!!!\n"))):
            self.assertEqual(commands.run(text, self.folder), expected)
        with unittest.mock.patch.object(commands, "SECONDS", 0.2):
            self.assertEqual(commands.run("(sleep 1; touch left) & wait", self.folder)[0], 124)
        time.sleep(1.2)
        self.assertEqual(self.files(), [])

    def test_all_of_a_page(self):
        page = extract("```sh", "echo x >> log", "echo x >> log  # again", "echo reason; exit 3",
                       "./ladder test  # not here", "ncu x", "```", "```sh manual", "touch y", "```")
        for slow, lines, failed in ((False, "x\n", 2), (True, "x\nx\n", 2)):
            self.save("log", "")
            found, shown, _ = called(commands.run_all, page, pathlib.Path(self.folder), False, slow)
            self.assertEqual((found, self.read("log")), (failed, lines), shown)
            for part in ("exit status 3; its last lines:\n    | reason", "left out: needs a GPU",
                         "left out: manual"):
                self.assertIn(part, shown)
            self.assertEqual("instead: ./ladder build sim all" in shown, not slow)
        self.assertEqual(self.files(), ["log", "w.npy", "x.npy"])


class Links(FolderTest):
    def check(self, link, fix=False):
        page = self.save("page.md", f"# Here\n\nSee {link}.\n")
        return [[said.removeprefix(f"{page}:3: ") for said in found]
                for found in links.check(pathlib.Path(page), fix)]

    def test_links(self):
        self.save("code.h", "one\ntwo three\nfour\nfour\n")
        self.save("other.md", "# The first, 2nd: title\n")
        for link in ("[a](code.h)", "[a](other.md#the-first-2nd-title)", "[a](#here)",
                     '[a](code.h#L2 "two")', "[a](https://example.org/no)", "![a](code.h)",
                     "\n```\n[a](no.h)\n```\n"):
            self.assertEqual(self.check(link), [[], []], link)
        for link, message in (
            ("[a](no.h)", "no.h: no such file"),
            ("[a](other.md#second)", "other.md#second: no such heading"),
            ("[a](code.h#L2)", 'code.h#L2: give a piece of the line as title: (FILE#L12 "piece")'),
            ('[a](code.h#two "two")', "code.h#two: neither a page's heading nor a line (#L12)"),
            ('[a](code.h#L1 "five")', "code.h#L1: 'five' is on 0 lines of that file"),
            ('[a](code.h#L1 "four")', "code.h#L1: 'four' is on 2 lines of that file"),
        ):
            self.assertEqual(self.check(link), [[message], []], link)
        moved = '[a](code.h#L1 "two three")'
        self.assertEqual(self.check(moved), [[], ["code.h#L1: 'two three' is on line 2 now"]])
        self.assertEqual(self.check(moved, fix=True), [[], []])
        self.assertEqual(self.read("page.md"), '# Here\n\nSee [a](code.h#L2 "two three").\n')


class TopLevel(unittest.TestCase):
    """A newcomer's first look: the stages and a few names, and nothing that was left lying about."""

    NAMES = {"CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "common", "docs", "ladder",
             "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "Dockerfile", "LICENSES", "REUSE.toml",
             "pyproject.toml"}

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
        text = files.read(ROOT / "README.md")
        way = text[text.index("## The way up"):].split("\n## ")[0]
        self.assertEqual(re.findall(r"\]\((\d\d_\w+)/README\.md\)", way), files.rungs(),
                         "README.md, The way up: see docs/adding-a-stage.md, Once it is a rung")


class Lessons(unittest.TestCase):
    """A lesson is read in ten minutes; what else is known stands in details.md beside it."""

    WORDS, FIGURES, EXCERPT = range(600, 901), range(41), range(1, 26)
    SECTIONS = ["The idea", "What changed", "Who owns what", "Measured", "What limits now", "Try it"]

    @staticmethod
    def prose(text):
        """Its sentences, those in folds among them: without tables, code, headings and pictures."""
        for left_out in (r"<!-- generated.*?<!-- end -->", r"^ *```.*?^ *```$", r"^[|#!].*?$", r"</?\w+>",
                         r"(?<=\])\([^)]*\)"):
            text = re.sub(left_out, "", text, flags=re.DOTALL | re.MULTILINE)
        return text

    def counted(self, text):
        """(words, figures): of the latter those in code, and the numbers of stages, are none."""
        prose = self.prose(text)
        plain = re.sub(r"`[^`]*`|\b0\d\b|\b[Ss]tages? \d\d|\*\*\d\.", "", prose)
        return (len([word for word in prose.split() if re.search(r"\w", word)]),
                len(re.findall(r"(?<![\w.,])\d[\d.,]*", plain)))

    def not_of_the_kernels(self, stage, excerpt):
        """Lines that don't stand in the stage's kernel; those with a minus, in the one before."""
        kernels = {}
        for sign, name in zip("+-", [stage, *files.rungs()[:files.rungs().index(stage)][-1:]]):
            path, = files.kernel_files(ROOT, name)
            kernels[sign] = {line.strip() for line in files.read(path).split("\n")} | {"…"}
        for line in excerpt.rstrip().split("\n"):
            if line.lstrip("+- ") not in kernels["-" if line[:1] == "-" else "+"]:
                yield line

    def test_counted(self):
        text = "# 7 Title\n\nStage 10 has `8` of 4,096.5 FP32 units: [3](a4.md).\n\n| 5 |\n\n```\n9\n```\n"
        self.assertEqual(self.counted(text), (9, 2))

    def test_ten_minutes(self):
        for stage in files.rungs():
            text = files.read(ROOT / stage / "README.md")
            with self.subTest(stage):
                words, figures = self.counted(text)
                excerpts = re.findall(r"^```(?:cpp|diff)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
                found = {"words": (words, self.WORDS), "figures": (figures, self.FIGURES),
                         "lines of the excerpt": ("".join(excerpts).count("\n"), self.EXCERPT),
                         "excerpts": (len(excerpts), [1]), "pictures": (text.count("\n!["), [1])}
                self.assertEqual([f"{value} {name}" for name, (value, good) in found.items()
                                  if value not in good], [])
                head = re.match(rf"# .*\n\n{blocks.MINUTES}\n", text)
                self.assertIsNotNone(head, blocks.MINUTES)
                if head[3]:
                    self.assertIn(f"{head[3]} {head[2]}", files.read(ROOT / "docs/teaching.md"))
                self.assertEqual([line for excerpt in excerpts
                                  for line in self.not_of_the_kernels(stage, excerpt)], [])
                self.assertEqual([title for title in re.findall(r"^## (.*)$", text, re.MULTILINE)
                                  if title in self.SECTIONS], self.SECTIONS)


class Site(FolderTest):
    def test_links_that_lead_nowhere(self):
        self.save("a.html", '<h1 id="top">a</h1><a href="#top"></a><a href="b%20c.html#here"></a>'
                            '<img src="x.svg"><a href="#nowhere"></a><a href="b%20c.html#there"></a>'
                            '<a href="https://example.org/"></a>')
        self.save("b c.html", '<a id="here" href="a.html?q=x">')
        self.assertEqual([wrong.split()[1] for wrong in site.wrong_links(pathlib.Path(self.folder))],
                         ["#nowhere", "b%20c.html#there", "x.svg"])


if __name__ == "__main__":
    unittest.main()
