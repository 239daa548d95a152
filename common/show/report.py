"""A page to look at, from the JSON that the measuring commands write.

  ./ladder report [--bench FILE] [--profile FILE]... [--run FILE] [--trace FILE] [--open]
                                      from the files named; if none is, from bench.json,
                                      profile.json, run.json and trace.json in build/report
  ./ladder report --docs [--check]    the generated blocks, the picture and the page of the committed
                                      texts, from docs/results; --check only says whether they
                                      are current

Writes index.html, all in one file, for a browser, with tables and plots; it says what is missing. Two
neighbouring stages side by side, counters and code: ./ladder diff. With --docs, the page keeps the trace
and the photograph that it has, unless --trace and --run name newer ones.
"""
import argparse
import os
import sys

from common.show import blocks, files, page, records
from common.show.support import REPORT, ROOT, fail, run_main, shortened


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./ladder report", description=__doc__, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.error = lambda message: fail(f"report: {message}", 2)
    for name, what in (("bench", "what bench wrote"), ("run", "what run wrote, beside its pictures"),
                       ("trace", "what profile --trace wrote")):
        parser.add_argument("--" + name, metavar="FILE", help=what)
    parser.add_argument("--profile", metavar="FILE", action="append", default=[],
                        help="what profile wrote; may be repeated: GPU and simulator")
    parser.add_argument("--open", action="store_true", help="show the page in a browser")
    parser.add_argument("--out", metavar="DIR", help="where to write to (default build/report)")
    parser.add_argument("--docs", action="store_true",
                        help="renew the generated parts of the committed texts")
    parser.add_argument("--check", action="store_true", help="with --docs: change nothing")
    options = parser.parse_args(arguments)
    if options.docs and (options.bench or options.profile or options.out or options.open):
        parser.error("--docs reads docs/results: of files, it takes --trace and --run alone")
    if options.check and not options.docs:
        parser.error("--check goes with --docs")
    return options


def make_page(options):
    """The exit status: a file that was named and is no good fails, after the page has said so."""
    bench, profiles, run, trace = options.bench, options.profile, options.run, options.trace
    named = bench or profiles or run or trace
    if not named:
        bench, profile, run, trace = (files.existing(os.path.join(REPORT, name + ".json"))
                                      for name in ("bench", "profile", "run", "trace"))
        profiles = [profile] * bool(profile)
    folder = options.out or REPORT
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "index.html")
    if os.path.exists(path) and "<title>ConvLadder" not in files.read(path):
        fail(f"{path}: is no page of ours, and would be overwritten", 2)
    notices = page.write(path, page.Inputs([bench] * bool(bench), profiles, run, trace, ROOT))
    bad = [notice["text"] for notice in notices if notice["path"]]
    if not bad:
        print("wrote " + shortened(path))
    if options.open:
        page.show(path)
    if not (bench or profiles or run or trace):
        fail("nothing to report: build/report has no bench.json, profile.json, run.json or trace.json; "
             "./ladder bench, profile or run makes one")
    if bad:
        fail(bad[0])
    return 0


def renew_docs(options):
    """The exit status."""
    found = blocks.all_renewed(blocks.Results(), options.trace, options.run)
    stale = [name for name, old, new in found if old != new]
    if not options.check:
        for name, _, new in found:
            files.write(os.path.join(ROOT, name), new)
        print(f"renewed from {blocks.FOLDER}: {len(stale)} of {len(found)} texts, a picture and the page")
        return 0
    for name in stale:
        print(f"ladder report: {name} disagrees with {blocks.FOLDER}; ./ladder report --docs renews it",
              file=sys.stderr)
    if not stale:
        print(f"up to date with {blocks.FOLDER}: {len(found)} texts, a picture and the page")
    return 1 if stale else 0


def main(arguments):
    options = parse(arguments)
    try:
        return renew_docs(options) if options.docs else make_page(options)
    except records.BadInput as error:
        fail(str(error))


if __name__ == "__main__":
    run_main(main)
