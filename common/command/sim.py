"""Any CUDA program without a GPU: what `./ladder sim` runs.

  ./ladder sim FILE... [OPTION...] [-- ARGUMENT...]

Compiles the program (.cu files as nvcc would, .cpp and .c files by the host compiler; .c files that
include CUDA's headers as C++), runs it with the arguments, and prints what it prints; then, kernel by kernel,
the launches, and the races and bad accesses found in them, with file and line.
docs/simulator.md says what of CUDA there is.

  -I FOLDER       where headers are looked for
  -D NAME[=VALUE] a macro
  -std=c++20      the language, by default C++17
  --count         what the kernels ask of memory, and the least time that it takes on a GPU
  --machine GPU   that GPU's rates: a name of common/machines/, or a FILE (default: h200)
  --seed N        another order of blocks and threads
  --seconds N     of a processor that the program may take; then it is ended
  --json FILE     the report as JSON
  --keep FILE     the program that was compiled

The exit status is the program's, or 1 if it is 0 and something was found; 2 for a usage error.
Ctrl-C ends the program. How far it has come, and what was found until then, is printed.
"""
import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

from common.command.machine import say
from common.show import counter_tables, files, floors, formats
from common.show.records import profiles_of
from common.show.support import fail, require_folder, run_main, write_json
from common.variants.build import TRANSLATE, Build, BuildError, run_limited

EXEMPLAR, TARGET = "docs/cuda/add.cu", "add"
CUDA_HEADER = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]cu(da|blas|Complex|rand)', re.MULTILINE)
LEAST_MB = 64  # where less is left, a linker may have lacked it
MOST_SECONDS = 1 << 33  # the system counts nanoseconds in 64 bits


def parse(words):
    """The options; `arguments`, behind --, are the program's."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = lambda message: fail(f"sim: {message} (./ladder sim --help)", 2)
    parser.add_argument("files", nargs="+")
    for letter in "ID":
        parser.add_argument("-" + letter, action="append", default=[])
    parser.add_argument("-std", "--std", default="c++17", choices=("c++17", "c++20", "c++23"))
    parser.add_argument("--count", action="store_true")
    parser.add_argument("--machine")
    for name in ("--seed", "--seconds"):
        parser.add_argument(name, type=int)
    for name in ("--json", "--keep"):
        parser.add_argument(name)
    place = words.index("--") if "--" in words else len(words)
    options = parser.parse_intermixed_args(words[:place])
    options.arguments = words[place + 1:]
    if options.machine and not options.count:
        parser.error("--machine is for --count")
    options.flags = ["-std=" + options.std.replace("c++", "gnu++"), *("-D" + name for name in options.D),
                     *("-I" + os.path.abspath(folder) for folder in options.I)]
    options.machine = floors.read_machine(options.machine or "h200")
    if options.seed is not None and not 0 <= options.seed < 1 << 63:
        fail(f"--seed {options.seed}: must be from 0 to 2^63 - 1", 2)
    if options.seconds is not None and options.seconds < 1:
        fail(f"--seconds {options.seconds}: must be 1 or more", 2)
    written = [os.path.realpath(path) for path in (options.keep, options.json) if path]
    if len(set(written)) < len(written):
        fail("--json and --keep are the same file", 2)
    for number, file in enumerate(options.files):
        if not os.path.isfile(file):
            fail(f"{file}: " + ("is no regular file" if os.path.exists(file) else "no such file"), 2)
        if any(os.path.samefile(file, other) for other in options.files[:number]):
            fail(f"{file} is given twice", 2)
        if os.path.splitext(file)[1] not in (".cu", ".cpp", ".cc", ".cxx", ".c"):
            fail(f"{file}: is neither a .cu nor a .cpp or .c file", 2)
        if os.path.realpath(file) in written:
            fail(f"{file}: would be overwritten", 2)
    for path in filter(None, (options.json, options.keep)):
        require_folder(path)
    return options


def without_warnings(said):
    """What the compiler has said, but for its warnings; of these the lines on values that nobody has set."""
    blocks = re.split(r"^(?=\S.*?: (?:warning|error|fatal error|note): |.*: In |In file )", said,
                      flags=re.MULTILINE)
    for block in blocks:
        if " warning: " not in block.split("\n")[0]:
            yield block
        elif re.search(r"\[-W(maybe-|sometimes-|conditional-)?uninitialized\]", block) and \
                not block.startswith(f"{files.ROOT}/common/"):
            yield block.split("\n")[0] + "\n"


def compile_program(options, folder):
    """The program, in `folder`. Ends with the compiler's status where that fails."""
    build = Build("sim-count")
    _, words = build.compile_words(build.exemplar("program"))
    kept = [word for word in words if not word.startswith(("-W", "-std=", "-I", "-O3", "-DNDEBUG"))]
    headers = [word for word in words if word.startswith("-I")]  # not -isystem: what is there is translated
    common = ["-Wno-psabi", *options.flags, *headers]
    objects = []
    for number, file in enumerate(options.files):
        objects.append(os.path.join(folder, f"{number}.o"))
        if file.endswith(".cu"):
            command = [*TRANSLATE, "--kernels-alone", *kept, "-Wuninitialized", "-Wmaybe-uninitialized",
                       *common]
        else:
            coloured = ["-fdiagnostics-color"] * sys.stderr.isatty()  # what translate.py reads is not
            is_c = file.endswith(".c")
            if is_c and CUDA_HEADER.search(files.read_bytes(file)):
                is_c = False
                say(f"{file}: compiled as C++, since it includes CUDA's headers, which are C++ here")
            language = ["-xc", "-std=gnu17"] if is_c else []
            command = [kept[0], "-w", *common, *language, "-O2", "-gdwarf-4", "-g1", *coloured]
        done = run_limited([*command, "-o", objects[-1], "-c", file], os.getcwd())
        print(*without_warnings(done.stdout), sep="", end="", file=sys.stderr)
        if done.returncode:
            if "-xc" in command and "/common/simulator/include/" in done.stdout:
                say(f"{file}: compiled as C, and CUDA's headers, which another brings, are C++ here: "
                    "name it .cpp")
            sys.exit(done.returncode)
    program = os.path.join(folder, "program")
    done = build.link(TARGET, objects, os.path.basename(EXEMPLAR), program)
    if re.search(r"undefined (reference to|symbol:) .?main\b", done.stdout):
        fail(f"{', '.join(options.files)}: no main()")
    if done.returncode:
        free = shutil.disk_usage(folder).free >> 20
        fail(f"{done.stdout}the program could not be linked" +
             (f": {folder} has {free} MB left; TMPDIR names another place" if free < LEAST_MB else ""))
    if not options.keep:
        return program
    files.write(options.keep, files.read_bytes(program))
    shutil.copymode(program, options.keep)
    return os.path.abspath(options.keep)


def answer(handler):
    """Sets what is done when somebody ends this process; not by what it was started to ignore."""
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, handler)


def run_program(program, options, path):
    """The program's status; its report goes to `path`."""
    environment = {**os.environ, "CONVLADDER_SIM_REPORT": path}
    environment |= {"CONVLADDER_SIM_SEED": str(options.seed)} if options.seed is not None else {}
    environment |= {"CONVLADDER_SIM_COUNT": "1"} if options.count else {}
    def limit():
        if options.seconds:
            hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
            most = min(hard, MOST_SECONDS) if hard != resource.RLIM_INFINITY else MOST_SECONDS
            limits = (min(options.seconds, most), min(options.seconds + 30, most))
            resource.setrlimit(resource.RLIMIT_CPU, limits)

    with subprocess.Popen([program, *options.arguments], env=environment,
                          preexec_fn=limit) as running:  # pylint: disable=subprocess-popen-preexec-fn
        # The program ends, and what it has found until then is printed.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        answer(lambda *_: running.terminate())
        status = running.wait()
    died, status = status < 0, abs(status) + 128 if status < 0 else status
    number = status - 128
    # Else it is the program's own status.
    ended = died or not os.path.exists(path) or b'"ended"' in files.read_bytes(path)
    if ended and number in set(signal.Signals) - {signal.SIGPIPE}:
        say(f"the program was ended by {signal.Signals(number).name}")
    elif status not in (2, 128 + signal.SIGPIPE) and not os.path.exists(path):  # 2: it has said what is wrong
        say("the program has left no report: it calls nothing of CUDA, "
            "or it ended before main() or by _exit()")
    return status


def print_findings(report):
    """Kernel by kernel, and what the host has done; returns how much was found."""
    findings = report["findings"]
    print()
    for kernel in report["kernels"]:
        own = [finding for finding in findings if finding["kernel"] == kernel["kernel"]]
        verdict = f"{len(own)} found" if own else "nothing found"
        launches = f"{kernel['launches']:,} launch" + ("" if kernel["launches"] == 1 else "es")
        repeats = kernel["repeats"]
        also = f" ({repeats:,} of them repeat an earlier one, and need not run)" if repeats else ""
        print(f"{kernel['kernel']}: {launches}{also}, {verdict}")
        for finding in own:
            print_finding(finding)
    names = {kernel["kernel"] for kernel in report["kernels"]}
    for finding in findings:
        if finding["kernel"] not in names:
            print(finding["kernel"] or "host")
            print_finding(finding)
    return len(findings)


def print_finding(finding):
    times = f" ({finding['times']:,} times)" if finding["times"] > 1 else ""
    print(f"  {finding['what']}{times}")


def print_counts(report, options, name):
    """The tables of profile."""
    gpu, rates = options.machine
    same = {"version": 1, "stage": name, "problem": name, "shape": "", "flop": 1, "source": "simulator"}
    records = [{**same, **kernel} for kernel in report["kernels"] if "work" in kernel]
    if not records:
        return
    floors.add(records, rates, gpu)
    counted, = profiles_of(records, name)
    for about, table in counter_tables.tables(counted, rates=rates)[:3]:
        print(f"\n{about}\n\n{formats.aligned(table)}", end="")
    for record in records:
        print(f"{record['kernel']}: at least {formats.milliseconds(record['floor_ms'])} ms on the {gpu}, "
              f"limited by {record['floor_limit']}")


def main(arguments):
    own = arguments[:arguments.index("--")] if "--" in arguments else arguments  # the rest is the program's
    if "--help" in own or "-h" in own:
        print(__doc__)
        return 0
    options = parse(arguments)
    answer(lambda number, _: sys.exit(128 + number))  # and its folder goes
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = compile_program(options, folder)
        except BuildError as error:
            fail(str(error))
        path = os.path.join(folder, "report.json")
        sys.stdout.flush()
        status = run_program(program, options, path)
        if not os.path.exists(path):
            return status or 1
        with open(path, encoding="utf-8") as file:
            try:
                report = json.load(file)
            except ValueError:
                fail("the program ended before it had reported all" if status else
                     "the program's report is cut short: is a disk full, or did the program limit its files?")
    if not isinstance(report, dict) or not {"findings", "kernels"} <= report.keys():
        fail("the program has written a report of its own over ours")
    if "ended" in report:
        limit = f" after {options.seconds} seconds of a processor" if status == 128 + signal.SIGXCPU else ""
        say(f"the program was ended{limit} {report['ended']}. "
            "A smaller problem takes less: its arguments, or -D")
    found = print_findings(report)
    if options.count:
        print_counts(report, options, os.path.basename(options.files[0]))
    if options.json:
        write_json(options.json, {"status": status, **report})
    return status or min(found, 1)


if __name__ == "__main__":
    run_main(main)
