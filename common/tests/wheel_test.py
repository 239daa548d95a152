"""What `pip install .` brings, in a fresh environment and from another folder: the command convladder, and
the module where PyTorch is. Status 77 (skipped) where pip can't get what it builds with."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv

from common.show.files import ROOT

BUILDS_WITH = "scikit-build-core>=0.11,<2"  # as in pyproject.toml
MODULE = """
import importlib.util
import pathlib
if importlib.util.find_spec("torch"):
    import convladder
    import torch
    torch.manual_seed(1)
    x, w = torch.randn(2, 3, 9, 8), torch.randn(5, 3, 3, 2)
    expected = torch.nn.functional.conv2d(x, w, stride=2, padding=1)
    for stage in convladder.stage_names():
        y = convladder.conv2d(x, w, stride=2, padding=1, stage=stage)
        assert torch.allclose(y, expected, atol=1e-5), stage
    print("as PyTorch's:", *convladder.stage_names(), "from", convladder.__file__)
else:
    import ctypes
    folder = pathlib.Path(importlib.util.find_spec("convladder").origin).parent
    library = ctypes.CDLL(str(folder / "libconvladder.so"))
    print("no PyTorch here; the library has version", library.convladder_abi_version(), "from", folder)
"""


def main():
    with tempfile.TemporaryDirectory() as folder:
        venv.create(f"{folder}/fresh", with_pip=True, system_site_packages=True)
        programs = f"{folder}/fresh/bin/"

        def call(program, *words):
            done = subprocess.run([programs + program, *words], cwd=folder, text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={
                                      name: value for name, value in os.environ.items()
                                      if name != "PYTHONPATH"})
            print(f"$ {program} {' '.join(words[:3])} ...\n{done.stdout}status {done.returncode}")
            return done

        install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1")
        if call("python", *install, BUILDS_WITH).returncode:
            return 77
        source = f"{folder}/source"  # gone before what it made is called
        os.mkdir(source)
        subprocess.run(f"git ls-files -z | tar --null -cT - | tar -xC {source}", shell=True, cwd=ROOT,
                       check=True)
        done = call("python", *install, "--no-build-isolation", "--no-deps", source)
        assert done.returncode == 0, "it can't be installed"
        shutil.rmtree(source)
        done = call("convladder", "check", "--shape", "nasty_primes")
        assert re.search(r"\n(\d\d) passed, 0 failed", done.stdout) and done.returncode == 0
        done = call("convladder", "run", "--stage", "01_naive")  # on the photograph
        assert re.search(r"raccoon_224(.|\n)* pass\n", done.stdout) and done.returncode == 0
        done = call("python", "-c", MODULE)
        assert done.returncode == 0 and re.search(rf" from {re.escape(folder)}", done.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
