"""A page to look at, and tables, from the JSON that the measuring commands write.

  ./ladder report [--bench FILE] [--profile FILE]... [--run FILE] [--trace FILE] [--open]
                                      from the files named; if none is, from bench.json,
                                      profile.json, run.json and trace.json in build/report
  ./ladder report --docs [--check]    the generated blocks, the picture and the page of the committed
                                      texts, from docs/results; --check only says whether they
                                      are current

Writes index.html (all in one file, for a browser, with plots; it says what is missing) and report.md. Two
neighbouring stages side by side, counters and code: ./ladder diff. With --docs, the page keeps the trace
and the photograph that it has, unless --trace and --run name newer ones.
"""
import argparse
import os
import sys
import time

from common.show import blocks, files, page, records, text
from common.show.files import ROOT, write


class Once(argparse.Action):
    """An option that takes one value: a second would take the first one's place unseen."""

    def __call__(self, parser, options, value, option=None):
        first = getattr(options, self.dest)
        if first is not None:
            parser.error(f"{option} {value}: there is {option} {first} already; it takes one")
        setattr(options, self.dest, value)


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="./ladder report", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda message: parser.exit(2, f"ladder report: error: {message}\n")
    parser.add_argument("--bench", metavar="FILE", action=Once, help="what bench wrote")
    parser.add_argument("--profile", metavar="FILE", action="append", default=[],
                        help="what profile wrote; may be repeated: GPU and simulator")
    parser.add_argument("--run", metavar="FILE", action=Once, help="what run or check wrote")
    parser.add_argument("--trace", metavar="FILE", action=Once, help="what profile --trace wrote")
    parser.add_argument("--open", action="store_true", help="show the page in a browser")
    parser.add_argument("--out", metavar="DIR", action=Once,
                        help="where to write to (default build/report)")
    parser.add_argument("--docs", action="store_true",
                        help="renew the generated parts of the committed texts")
    parser.add_argument("--check", action="store_true", help="with --docs: change nothing")
    options = parser.parse_args(arguments)
    if options.docs and (options.bench or options.profile or options.out or options.open):
        parser.error("--docs reads docs/results: of files, it takes --trace and --run alone")
    if options.check and not options.docs:
        parser.error("--check goes with --docs")
    return options


def named(options):
    return options.bench, options.profile, options.run, options.trace


def inputs(options):
    """(bench, [profile], run, trace): the files named; if none is, those of build/report that
    exist."""
    if any(named(options)):
        return named(options)
    usual = (os.path.join(ROOT, "build/report", name + ".json")
             for name in ("bench", "profile", "run", "trace"))
    bench, profile, run, trace = map(files.existing, usual)
    return bench, [profile] if profile else [], run, trace


def written(path):
    """The file's name, and when it was written."""
    moment = time.localtime(os.path.getmtime(path))
    return f"{os.path.basename(path)} ({time.strftime('%Y-%m-%d %H:%M', moment)})"


def make_report(options):
    bench_path, profile_paths, run_path, trace_path = inputs(options)
    folder = options.out or os.path.join(ROOT, "build/report")
    os.makedirs(folder, exist_ok=True)
    page_path = os.path.join(folder, "index.html")
    page.write(page_path, page.Inputs(bench_path, profile_paths, run_path and os.path.dirname(run_path),
                                      trace_path, ROOT))
    print("wrote " + os.path.relpath(page_path))
    if options.open:
        page.show(page_path)
    if not (bench_path or profile_paths or run_path or trace_path):
        raise records.BadInput("nothing to report: build/report has no bench.json, profile.json, "
                               "run.json or trace.json; ./ladder bench, profile or run makes one")
    bench = records.read_bench(bench_path) if bench_path else None
    problems = records.join(bench, [profile for path in profile_paths
                                    for profile in records.read_profiles(path)])
    runs = records.read_runs(run_path) if run_path else []
    paths = [path for path in (bench_path, *profile_paths, run_path) if path]
    title = (f"# Report\n\nOf {', '.join(map(written, paths))}: each has the stages that its command was "
             "asked for.\n\n")
    write(os.path.join(folder, "report.md"), title + text.report(bench, problems, runs))
    print("wrote " + os.path.relpath(os.path.join(folder, "report.md")))


def make_docs(data, options):
    new_texts = {name: blocks.renewed(data, name)[1] for name in blocks.texts(data.root)}
    for name, new in new_texts.items():
        write(os.path.join(data.root, name), new)
    write(data.picture_path(), data.picture())
    write(data.page_path(), data.page(options.trace, options.run and os.path.dirname(options.run)))
    print(f"renewed from {blocks.FOLDER}: {len(new_texts)} texts, a picture and the page")


def check_docs(data):
    """The exit status."""
    complaints = blocks.stale(data)
    for complaint in complaints:
        print(f"ladder report: {complaint}; ./ladder report --docs renews it", file=sys.stderr)
    if not complaints:
        print(f"up to date with {blocks.FOLDER}: {len(blocks.texts(data.root))} texts, a picture, the page")
    return 1 if complaints else 0


def main(arguments):
    options = parse(arguments)
    try:
        if options.check:
            return check_docs(blocks.Results(ROOT))
        if options.docs:
            make_docs(blocks.Results(ROOT), options)
        else:
            make_report(options)
    except (records.BadInput, OSError) as error:
        print(f"ladder report: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
