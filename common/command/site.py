"""The Markdown of this repository as a site that needs no server: build/site/index.html."""
import argparse
import html.parser
import os
import pathlib
import sys
import urllib.parse

from common.command import building, tools
from common.show import files, page
from common.show.files import ROOT
from common.show.support import fail, run_main

SITE = pathlib.Path(ROOT, "build", "site")


class Links(html.parser.HTMLParser):
    """What a page links to, and what it can be linked at."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.names = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src"):
                self.targets.add(value or "")
            elif name in ("id", "name"):
                self.names.add(value)


def wrong_links(site):
    """A message for each link of the site's pages that leads nowhere."""
    # The page for what is not there is shown at any depth: its links begin at the server's root.
    pages = {path: Links(path) for path in sorted(site.rglob("*.html")) if path.name != "404.html"}
    wrong = []
    for path, links in pages.items():
        for target in sorted(links.targets):
            parts = urllib.parse.urlsplit(target)
            if parts.scheme:
                continue
            to = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            names = pages[to].names if to in pages else set()
            if not to.is_file() or parts.fragment and to in pages and parts.fragment not in names | {"__top"}:
                wrong.append(f"{path.relative_to(site)}: {target} leads nowhere")
    return wrong


def make(lock):
    """Where mkdocs fails, a reader needs its warnings, or else its last line."""
    try:
        python = tools.python("site")
    except tools.Lacking as lacking:
        fail(f"{lacking}. The pages can be read as they are: docs/README.md")
    log = building.folder("site.log")
    if building.logged(lock, log, "making build/site", python, "-IB", "-m", "mkdocs", "build", "--strict",
                       "--quiet", "-f", os.path.join(ROOT, "common", "site", "mkdocs.yml"),
                       env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}):
        said = files.read(log, "replace").splitlines()
        print(*[line for line in said if line.startswith(("WARNING", "ERROR"))] or said[-1:], sep="\n",
              file=sys.stderr)
        fail(f"the site could not be made; all that mkdocs has said is in {log}")


def main(words):
    parser = argparse.ArgumentParser(prog="./ladder site", description=__doc__, allow_abbrev=False)
    parser.error = lambda message: fail(f"site: {message}; ./ladder site --help", 2)
    parser.add_argument("--open", action="store_true", help="shows it in a browser")
    options = parser.parse_args(words)
    with building.in_turn("site", "making") as lock:
        make(lock)
        wrong = wrong_links(SITE)
    print("\n".join(wrong) if wrong else f"{SITE / 'index.html'}: {len(list(SITE.rglob('*.html')))} pages, "
          "all links lead somewhere", flush=True)
    if options.open and not wrong:
        page.show(str(SITE / "index.html"))
    return 1 if wrong else 0


if __name__ == "__main__":
    run_main(main)
