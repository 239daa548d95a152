"""What the texts must be: commands that a reader can type, lessons of ten minutes, a tidy first look."""
import pathlib
import re
import subprocess
import unittest

from common.show import blocks, files
from common.tests import commands

ROOT = pathlib.Path(files.ROOT)


class Commands(unittest.TestCase):
    def test_what_a_page_uses_it_has_had_made(self):
        ours = commands.all_commands()
        self.assertEqual(commands.unprepared(ours), [])
        self.assertGreater(len(ours), 100)

    def test_programs_are_shown_as_they_are(self):
        text = files.read(ROOT / "docs/cuda.md")
        shown = re.findall(r"^```cpp\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        self.assertEqual(shown, [files.read(ROOT / "docs/cuda" / name) for name in ("add.cu", "reverse.cu")])
        for name in ("sliding", "fragments", "ring", "wgmma", "windows"):
            page = files.read(ROOT / f"docs/{name}.md")
            kernel, = re.findall(r"^```cpp\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
            self.assertIn("\n\n" + kernel + "\nint main", files.read(ROOT / f"docs/cuda/{name}.cu"))


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
        self.assertEqual(re.findall(r"\]\((\d\d_\w+)/README\.md\)", way), files.lessons(),
                         "README.md, The way up: see docs/adding-a-stage.md, Once it is a rung")


class Lessons(unittest.TestCase):
    """A lesson is read in ten minutes; what else is known stands in details.md beside it."""

    WORDS, FIGURES, EXCERPT = range(600, 901), range(41), range(1, 26)
    LEFT_OUT = {"14_warpgroups": ["sum, "],  # of lines that excerpts show simpler
                "15_copy_engine": ["sum, ", "if (last) ", "last && ", "channel + ", ", 0"]}
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
        for sign, name in zip("+-", [stage, *files.lessons()[:files.lessons().index(stage)][-1:]]):
            text = files.read(files.kernel_file(name))
            for part in self.LEFT_OUT.get(name, []):
                text = text.replace(part, "")
            kernels[sign] = {line.strip() for line in text.split("\n")} | {"…"}
        for line in excerpt.rstrip().split("\n"):
            if line.lstrip("+- ") not in kernels["-" if line[:1] == "-" else "+"]:
                yield line

    def test_counted(self):
        text = "# 7 Title\n\nStage 10 has `8` of 4,096.5 FP32 units: [3](a4.md).\n\n| 5 |\n\n```\n9\n```\n"
        self.assertEqual(self.counted(text), (9, 2))

    def test_ten_minutes(self):
        for stage in files.lessons():
            text = files.read(ROOT / stage / "README.md")
            with self.subTest(stage):
                words, figures = self.counted(text)
                excerpts = re.findall(r"^```(?:cpp|diff)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
                found = {"words": (words, self.WORDS), "figures": (figures, self.FIGURES),
                         "lines of the excerpt": ("".join(excerpts).count("\n"), self.EXCERPT),
                         "excerpts": (len(excerpts), [1, 2]), "pictures": (text.count("\n!["), [1])}
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


if __name__ == "__main__":
    unittest.main()
