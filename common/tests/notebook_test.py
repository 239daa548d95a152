"""Runs docs/notebook.ipynb whole, as a reader would, and looks at what its cells print. Status 77 (skipped)
where nbclient can't be installed. `--run NOTEBOOK RESULT` is the other half, by the Python with nbclient."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NOTEBOOK = os.path.join(ROOT, "docs", "notebook.ipynb")
SECONDS = 300  # when what the cells run is built
# In this order, of the cells with code: what must be printed.
PRINTED = ("", "(?s)12_tensor_cores.* pass.*least", "image/svg", "(?s)requests.*text/html.*iframe", "",
           r"(?s)sectors per load +[\d.]+ +at most 8.8 +missed.*not yet", r"(?s)at most 8.8 +met.*passed \(")


def run_whole(path, result):
    import nbclient
    import nbformat
    notebook = nbformat.read(path, as_version=4)
    folder = os.path.dirname(os.path.abspath(path))
    nbclient.NotebookClient(notebook, timeout=None, resources={"metadata": {"path": folder}}).execute()
    nbformat.write(notebook, result)


def main():
    from common.command import tools
    try:
        python = tools.python("notebook")
    except tools.Lacking as lacking:
        print(f"skipped: {lacking}")
        return 77
    with open(NOTEBOOK, encoding="utf-8") as file:
        kept = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in kept), "outputs are not to be kept"
    for preset, targets in (("sim", ["convladder"]), ("sim-count", ["convladder", "exercise_judge"])):
        subprocess.run(["./ladder", "build", preset, *targets], cwd=ROOT, check=True)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "result.ipynb")
        done = subprocess.run([python, "-B", __file__, "--run", NOTEBOOK, result], check=False, env={
            name: value for name, value in os.environ.items() if name != "DISPLAY"})
        if done.returncode:
            return done.returncode
        with open(result, encoding="utf-8") as file:
            cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    seconds, wrong = time.monotonic() - begun, 0
    assert len(cells) == len(PRINTED), "a cell without an expectation"
    for cell, expected in zip(cells, PRINTED):
        text = json.dumps(cell["outputs"], ensure_ascii=False).replace("\\n", "\n")
        if not re.search(expected, text):
            wrong += 1
            print(f"not {expected!r}, but:\n{text[:3000]}")
    print(f"{len(cells)} cells in {seconds:.0f} s")
    assert seconds < SECONDS, f"more than {SECONDS} s"
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run_whole(*sys.argv[2:])
    else:
        sys.exit(main())
