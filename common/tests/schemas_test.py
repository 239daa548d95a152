"""Files that other people's programs read, held against their schemas. Status 77 (skipped) where the checkers
can't be installed."""
import glob
import json
import os
import re
import subprocess
import sys
import unittest

from common.command import tools
from common.show import files
from common.show.files import ROOT
from common.tests.grade_test import Written

DATA = os.path.join(ROOT, "common/tests/data")


def run(program, *words):
    return subprocess.run([tools.folder("schemas", "bin", program), *words], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


class Schemas(Written):
    def test_marks(self):
        done = run("check-jsonschema", "--schemafile", f"{DATA}/gradescope.schema.json",
                   self.written("results.json"))
        self.assertEqual(done.returncode, 0, done.stdout)
        done = run("python", "-c", "import sys, xmlschema; xmlschema.validate(*sys.argv[1:])",
                   self.written("results.xml"), f"{DATA}/junit.xsd")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_mark_that_is_none(self):
        wrong = json.loads(files.read(self.written("results.json")))
        wrong["tests"][0]["status"] = "perhaps"
        done = run("check-jsonschema", "--schemafile", f"{DATA}/gradescope.schema.json",
                   self.save("wrong.json", wrong))
        self.assertEqual(done.returncode, 1, done.stdout)

    def test_workflows_forms_and_citation(self):
        for schema, pattern in (("github-workflows", ".github/workflows/*"),
                                ("github-issue-config", ".github/*/config.yml"),
                                ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*"),
                                ("citation-file-format", "CITATION.cff")):
            found = glob.glob(os.path.join(glob.escape(ROOT), pattern))
            self.assertTrue(found, pattern)
            done = run("check-jsonschema", "--builtin-schema", "vendor." + schema, *found)
            self.assertEqual(done.returncode, 0, done.stdout)

    def test_workflows_by_zizmor(self):
        done = run("zizmor", "--offline", "--no-progress", os.path.join(ROOT, ".github"))
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_licences(self):
        done = run("reuse", "--root", ROOT, "lint", "--quiet")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_one_version(self):
        versions = {re.search(pattern, files.read(os.path.join(ROOT, name)), re.M)[1]
                    for name, pattern in (("pyproject.toml", r'^version = "(\d+\.\d+)'),
                                          ("CITATION.cff", r"^version: (\d+\.\d+)"),
                                          ("CHANGELOG.md", r"^## (\d+\.\d+)"))}
        self.assertEqual(len(versions), 1, versions)


if __name__ == "__main__":
    try:
        tools.python("schemas")
    except tools.Lacking as lacking:
        print(f"skipped: {lacking}")
        sys.exit(77)
    unittest.main()
