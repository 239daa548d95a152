#!/usr/bin/env python3
"""The judge of common/command/cmake/ on made-up roots: what it finds, links and imports, and what it says of
what it can't. CMake is told to look nowhere but in the root, and in PATH."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = ROOT / "common/command/cmake"
PROJECT = """cmake_minimum_required(VERSION 3.25)
list(APPEND CMAKE_MODULE_PATH "{cmake}")
include(Compilers)
project(Machine CXX)
include({needs})
file(REMOVE "${{CONVLADDER_UNFINISHED}}")
"""
ONE_NEED = """include(Need)
find_package(Threads REQUIRED)
convladder_need("Thing" libthing-dev "testing" REQUIRED HEADER thing.h LIBRARIES thing other a+b
  TARGET thing SUFFIXES things CODE "return thing();")
convladder_settle_needs()
"""
CBLAS = """
enum CBLAS_ORDER { CblasRowMajor };
enum CBLAS_TRANSPOSE { CblasNoTrans };
extern "C" void cblas_sgemm(CBLAS_ORDER, CBLAS_TRANSPOSE, CBLAS_TRANSPOSE, int, int, int, float,
                            const float*, int, const float*, int, float, float*, int)"""
PYTHON = "#!/bin/bash\nexec {real} -S \"$@\"\n"  # without site-packages: a foreign one


class Machine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp(prefix="needs_")
        self.addCleanup(shutil.rmtree, folder)
        self.folder = pathlib.Path(folder)
        self.root, self.bin = self.folder / "root", self.folder / "bin"
        self.bin.mkdir()
        (self.root / "lib").mkdir(parents=True)
        for tool in ("c++", "g++", "gcc", "cc", "as", "ld", "ar", "ranlib", "make", "uname", "bash", "env"):
            found = shutil.which(tool, path="/usr/bin:/bin")
            if found:
                (self.bin / tool).symlink_to(found)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def lend(self, name):
        """The root gets what is called so on this machine."""
        if not pathlib.Path(name).exists():
            self.skipTest(f"no {name} here to lend")
        place = self.root / name.split("/")[2] / pathlib.Path(name).name
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(name)

    def library(self, name, code, folder="root/lib"):
        (self.folder / folder).mkdir(parents=True, exist_ok=True)
        subprocess.run(["c++", "-x", "c++", "-shared", "-fPIC", "-o",
                        self.folder / folder / f"lib{name}.so", "-"], input=code, text=True, check=True)

    def configure(self, *options, needs="Needs", env=None):
        """Its status and output; what needs.tsv says goes to self.needs, {name: [field]}."""
        source = self.folder / "source"
        source.mkdir(exist_ok=True)
        (source / "one.cmake").write_text(ONE_NEED)
        needs = source / "one.cmake" if needs == "one" else needs
        (source / "CMakeLists.txt").write_text(PROJECT.format(cmake=CMAKE, needs=needs))
        status, output = self.configure_source(source, self.folder / "build", *options, env=env)
        file = self.folder / "build/needs.tsv"
        rows = file.read_text().splitlines()[1:] if file.exists() else []
        self.needs = {row.split("\t")[2]: row.split("\t") for row in rows}
        return status, output

    def configure_source(self, source, build, *options, env=None):
        return self.cmake("-S", source, "-B", build, "-G", "Unix Makefiles",
                          f"-DCMAKE_PREFIX_PATH={self.root}", "-DCONVLADDER_BACKEND=sim",
                          "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF", *options, env=env)

    def cmake(self, *words, env=None, program="cmake"):
        """Status and output of CMake on that machine."""
        done = subprocess.run([shutil.which(program), *words], text=True, check=False,
                              env={"PATH": str(self.bin), **(env or {})},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def expect(self, name, verdict, path=None, detail=""):
        row = self.needs[name]
        self.assertEqual(row[0], verdict, row)
        if path:
            self.assertEqual(row[6], str(path), row)
        self.assertIn(detail, row[7])


class Libraries(Machine):
    def one(self, **keywords):
        return self.configure(needs="one", **keywords)

    def thing(self, headers, libraries):
        self.write(f"{headers}/thing.h", "int thing();\n")
        self.library("thing", "int thing() { return 0; }", libraries)

    def test_the_header_alone_then_the_library_too(self):
        status, output = self.one()
        self.assertEqual(status, 1)
        self.expect("Thing", "missing", detail="no header thing.h")
        self.write("root/include/thing.h", "int thing();\n")
        status, output = self.one()
        self.assertEqual(status, 1)
        self.expect("Thing", "missing", detail="thing.h has no library beside it (thing, other, a+b)")
        self.assertIn("Get it: apt-get install libthing-dev", output)
        # One that has not the function; then one that has, in the same build folder.
        self.library("thing", "int nothing() { return 0; }")
        self.assertEqual(self.one()[0], 1)
        self.expect("Thing", "missing", detail="undefined reference to `thing()'")
        self.library("other", "int thing() { return 0; }")
        self.assertEqual(self.one()[0], 0)
        self.expect("Thing", "found", self.root / "lib/libother.so")
        # It goes away, and comes back elsewhere, of two parts.
        (self.root / "lib/libother.so").unlink()
        self.assertEqual(self.one()[0], 1)
        self.library("a", "int thing() { return 0; }", "root/lib/things")
        self.library("b", "int b() { return 0; }", "root/lib/things")
        self.assertEqual(self.one()[0], 0)
        self.expect("Thing", "found", self.root / "lib/things/liba.so")

    def test_a_library_that_goes_away_is_missed_by_the_build(self):
        self.thing("root/include", "root/lib")
        self.assertEqual(self.one()[0], 0)
        library = self.root / "lib/libthing.so"
        library.rename(self.folder / "libthing.so")
        status, output = self.cmake("--build", self.folder / "build")
        self.assertNotEqual(status, 0)
        self.assertIn("This is missing here:", output)
        (self.folder / "libthing.so").rename(library)
        self.assertEqual(self.cmake("--build", self.folder / "build")[0], 0)

    def test_the_compilers_own_folders(self):
        self.thing("apart", "apart")
        apart = str(self.folder / "apart")
        self.assertEqual(self.one(env={"CPATH": apart, "LIBRARY_PATH": apart})[0], 0)
        self.expect("Thing", "found", f"{apart}/libthing.so")

    def test_a_compiler_that_did_not_work(self):
        self.thing("root/include", "root/lib")
        (self.bin / "c++").unlink()
        self.write("bin/c++", "#!/bin/bash\nexit 1\n")
        self.assertEqual(self.one()[0], 1)
        self.write("bin/c++", "#!/bin/bash\nexec /usr/bin/c++ \"$@\"\n")
        self.assertEqual(self.one()[0], 0)
        # The one that was configured has gone; CXX is heard again.
        self.assertEqual(self.one(env={"CXX": "g++"})[0], 0)
        (self.bin / "c++").unlink()
        self.assertEqual(self.one(env={"CXX": "g++"})[0], 0)
        self.expect_compiler("g++")

    def expect_compiler(self, name):
        cache = (self.folder / "build/CMakeCache.txt").read_text()
        self.assertIn(f"CMAKE_CXX_COMPILER:FILEPATH={self.bin / name}\n", cache)


class Needs(Machine):
    """The list itself."""

    def test_a_machine_with_headers_alone(self):
        self.lend("/usr/include/boost")
        self.write("root/include/openblas/cblas.h", CBLAS + ";\n")
        if pathlib.Path("/usr/include/gtest").exists():
            self.lend("/usr/include/gtest")
        status, output = self.configure()
        self.assertEqual(status, 1)
        self.assertRegex(" ".join(output.split()), "Boost.Context: .* CBLAS: .* Get it: apt-get install "
                         "libboost-context-dev libopenblas-dev")
        for name in ("Boost.Context", "CBLAS", "GoogleTest", "libpng", "Python 3", "matplotlib",
                     "PyTorch", "libFuzzer", "GPU and driver"):
            self.expect(name, "missing")
        # The library of CBLAS beside the header in a folder of its own.
        self.library("openblas", CBLAS + " {}")
        self.configure()
        self.expect("CBLAS", "found", self.root / "lib/libopenblas.so",
                    f"{self.root}/include/openblas/cblas.h")
        _, output = self.configure()  # remembers it
        self.assertNotIn("CMake Warning", output)
        self.expect("Boost.Context", "missing", detail="no library beside it")

    def test_a_foreign_python_first(self):
        real = shutil.which("python3", path="/usr/bin") or self.skipTest("no Python of the system's")
        self.write("bin/python3", PYTHON.format(real=real))
        self.write("later/python3", f"#!/bin/bash\nPYTHONPATH={self.folder}/modules exec {real} \"$@\"\n")
        for module in ("numpy", "matplotlib"):
            self.write(f"modules/{module}/__init__.py", "__version__ = '1.2'\n")
        path = {"PATH": f"{self.bin}:{self.folder}/later"}
        self.configure(env=path)
        self.expect("Python 3", "found")
        self.expect("matplotlib", "found", detail="numpy 1.2, matplotlib 1.2")
        # Gone, and here again: nothing is remembered.
        shutil.rmtree(self.folder / "modules/matplotlib")
        self.configure(env=path)
        self.expect("matplotlib", "missing", detail="No module named")
        self.write("modules/matplotlib/__init__.py", "")
        self.configure(env=path)
        self.expect("matplotlib", "found")

    def test_an_old_python_first(self):
        real = shutil.which("python3", path="/usr/bin") or self.skipTest("no Python of the system's")
        self.write("bin/python3", "#!/bin/bash\necho 'AssertionError: Python 3.7.3' >&2\nexit 1\n")
        self.configure()
        self.expect("Python 3", "missing", detail="Python 3.7.3")
        self.write("later/python3", f"#!/bin/bash\nexec {real} \"$@\"\n")
        self.configure(env={"PATH": f"{self.bin}:{self.folder}/later"})
        self.expect("Python 3", "found")

    def test_counting_has_gnus_compiler(self):
        clang = shutil.which("clang++", path="/usr/bin") or self.skipTest("no clang here")
        gnu = self.bin / "g++"
        (self.bin / "c++").unlink()
        (self.bin / "c++").symlink_to(clang)
        gnu.unlink()
        self.configure("-DCONVLADDER_COUNTING=ON")
        self.expect("g++", "missing", detail="Clang")
        gnu.symlink_to("/usr/bin/g++")
        for environment in ({}, {"CXX": "clang++"}):
            self.configure("-DCONVLADDER_COUNTING=ON", env=environment)
            self.expect("g++", "found", gnu)
            self.expect("C++ compiler", "found", gnu)

    def test_cudnns_header_and_library_of_two_versions(self):
        self.write("bin/nvcc", "#!/bin/bash\nexit 1\n")
        header = "#define CUDNN_MAJOR {0}\n#define CUDNN_VERSION ({0} * 10000 + 100)\n"
        library = "#include <cstddef>\nextern \"C\" size_t cudnnGetVersion() {{ return {}; }}"
        for major, version, verdict in ((9, 8907, "missing"), (8, 80100, "missing"),
                                        (9, 91400, "found")):
            self.write("root/include/cudnn_version.h", header.format(major))
            self.library("cudnn", library.format(version))
            status, _ = self.configure("-DCONVLADDER_BACKEND=gpu")
            self.assertEqual(status, 1)  # that nvcc is none
            self.expect("cuDNN", verdict, detail=f"header {major}0100, library {version}")


class Gpus(Machine):
    def facts(self, **environment):
        status, output = self.cmake("-P", CMAKE / "Gpus.cmake", env=environment)
        self.assertEqual(status, 0, output)
        return output.splitlines()

    def test_gpus_that_are_hidden(self):
        self.write("bin/nvidia-smi", """#!/bin/bash
if [[ $1 == -L ]]; then
  echo "GPU 0: NVIDIA H200 (UUID: GPU-11aa)"
  echo "GPU 1: NVIDIA L4 (UUID: GPU-22bb)"
else
  echo "NVIDIA H200, 580.1, 9.0"
  echo "NVIDIA L4, 580.1, 8.9"
fi
""")
        both = ["gpu NVIDIA H200, driver 580.1, compute 9.0", "gpu NVIDIA L4, driver 580.1, compute 8.9"]
        for visible, expected in ((None, both), ("0", both), ("1,0", both), ("GPU-22", both),
                                  ("", []), ("-1", []), ("2", []), ("GPU-33", []), ("none", []),
                                  ("-1,0", [])):
            environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
            facts = [fact for fact in self.facts(**environment) if fact.startswith("gpu")]
            self.assertEqual(facts, expected, visible)

    def test_cudacxx_is_a_program(self):
        self.write("toolkit/bin/nvcc", "#!/bin/bash\n")
        self.write("toolkit/bin/nvcc-13", "#!/bin/bash\n")
        toolkit = self.folder / "toolkit"
        for environment, expected in (({"CUDACXX": f"{toolkit}/bin/nvcc-13"}, "nvcc-13"),
                                      ({"CUDA_PATH": str(toolkit)}, "nvcc"),
                                      ({"PATH": f"{self.bin}:{toolkit}/bin"}, "nvcc"),
                                      ({"CUDACXX": "nvcc-13", "PATH": f"{toolkit}/bin"}, "nvcc-13")):
            self.assertEqual(self.facts(**environment), [f"nvcc {toolkit}/bin/{expected}"])
        self.assertEqual(self.facts(CUDACXX=str(toolkit / "bin")), [])


class Digest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def digest(self, name="plain", kernel="int a = b / c;\n", other="1", at="01_naive/naive.cu"):
        """Of a checkout called `name`, with that kernel and another file."""
        root = self.root / name
        shutil.rmtree(root, ignore_errors=True)
        for file, text in ((at, kernel), ("common/core/stage.h", other)):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text)
        done = subprocess.run(["cmake", "-D", f"ROOT={root}", "-P", CMAKE / "KernelsDigest.cmake"],
                              check=True, stderr=subprocess.PIPE, text=True)
        self.assertRegex(done.stderr, r"^[0-9a-f]{12}\n$")
        return done.stderr.strip()

    def test_names_comments_and_white_space_make_no_other_kernel(self):
        for same in ({"name": "a[x]b"}, {"name": "a*b?"}, {"kernel": "// why\nint a = b / c;"},
                     {"kernel": "int a\n  = b / c;  // [x]; \"y\"\n"},
                     {"kernel": "/* one\n * two */ int a = b /**/ / c; /***/"}):
            self.assertEqual(self.digest(**same), self.digest(), same)

    def test_whatever_else_changes_makes_another(self):
        for changes in ({"kernel": "int a = b * c;"}, {"kernel": "// int a = b / c;"}, {"other": "2"},
                        {"at": "01_naive/other.cu"}, {"kernel": "int a = b / c; /* */ int d;"},
                        {"kernel": "int [a] = b / c;;"}):
            self.assertNotEqual(self.digest(**changes), self.digest(), changes)

    def test_the_header_has_the_same(self):
        digest, header = self.digest(), self.root / "digest.h"
        command = ["cmake", "-D", f"ROOT={self.root}/plain", "-D", f"HEADER={header}", "-P",
                   CMAKE / "KernelsDigest.cmake"]
        subprocess.run(command, check=True)
        self.assertIn(f'KERNELS_DIGEST[] = "{digest}"', header.read_text())

    def test_without_kernels_there_is_none(self):
        empty = subprocess.run(["cmake", "-D", f"ROOT={self.root}", "-P", CMAKE / "KernelsDigest.cmake"],
                               check=False, stderr=subprocess.PIPE)
        self.assertNotEqual(empty.returncode, 0)


class Presets(unittest.TestCase):
    def test_builds_use_several_cores(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())["buildPresets"]
        by_name = {preset["name"]: preset for preset in presets}
        for preset in presets:
            jobs = preset.get("jobs") or by_name[preset["inherits"]]["jobs"]
            self.assertGreater(jobs, 1)

    @unittest.skipUnless(shutil.which("ninja"), "no ninja here")
    def test_a_generator_of_several_configurations(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-DCONVLADDER_BACKEND=sim"],
                                  env={**os.environ, "CMAKE_GENERATOR": "Ninja Multi-Config"},
                                  text=True, check=False, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
            rules = (pathlib.Path(folder) / "CMakeFiles/impl-Release.ninja").read_text()
        for name in ("bin/convladder", "lib/libconvladder.so"):
            self.assertIn(f"\nbuild {name}: ", rules)


class Project(Machine):
    """The project itself on a machine without Python and without GoogleTest: its tests are there."""

    def test_what_can_not_run_is_skipped(self):
        self.configure()  # whether the root can do
        self.lend("/usr/include/boost")
        self.lend("/usr/lib/x86_64-linux-gnu/libboost_context.so")
        self.write("root/include/cblas.h", CBLAS + ";\n")
        self.library("cblas", CBLAS + " {}")
        build = self.folder / "whole"
        status, output = self.configure_source(ROOT, build)
        self.assertEqual(status, 0, output)
        self.assertNotIn("FetchContent", output)
        names = ["01_naive", "unit", "docs", "torch_module", "fuzz.npy", "known_bad.canaries",
                 "known_bad.01_naive"]
        status, output = self.cmake("--test-dir", build, "-R", f"^({'|'.join(names)})$",
                                    program="ctest")
        self.assertEqual((status, output.count("***Skipped")), (0, len(names)), output)


if __name__ == "__main__":
    unittest.main()
