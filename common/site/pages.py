"""What MkDocs makes the site of: the repository's Markdown where it lies, and the files that it links to."""
import os
import pathlib
import re
import sys

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from common.show import files as kept  # noqa: E402  (of the repository, whose place stands above)
from common.site import links  # noqa: E402

OWN = ("site.css", "iframe-worker.js")
PAGE, PAGE_AT = "docs/results/index.html", "docs/results/page.html"  # README.md is that folder's index
SLIDES = "docs/slides.md"  # made here
HIDDEN = "---\nsearch:\n  exclude: true\n"  # from the search
REPOSITORY = os.environ.get("GITHUB_REPOSITORY")  # owner/name, where a workflow makes the site
AS_CODE, AS_FILE = 200_000, (".md", ".svg", ".png", ".html", ".ipynb")  # bytes; what is longer stays a file
LANGUAGES = {".cu": "cuda", ".h": "cpp", ".cpp": "cpp", ".py": "python", ".js": "javascript", ".css": "css",
             ".json": "json", ".sh": "bash", ".cmake": "cmake", "": "bash"}


def slug(title, _):
    """GitHub's name for a heading."""
    return links.anchor(title)


def title_of(page):
    return re.search(r"^# (.*)$", kept.read(ROOT / page), re.M)[1].replace("`", "")


def linked(page):
    """{a link's target as it is written: the path from the root}, of files of the repository."""
    found = {}
    for target, _ in links.LINK.findall(kept.read(ROOT / page)):
        name = target.partition("#")[0]
        path = os.path.normpath(os.path.join(os.path.dirname(page), name))
        if name and ":" not in name and (ROOT / path).is_file():
            found[target] = path
    return found


def navigation():
    """The lessons with their exercises; then the texts, in the order of docs/README.md."""
    lessons = []
    for stage in kept.lessons():
        own = [str(path.relative_to(ROOT)) for pattern in ("details.md", "exercises/*/README.md")
               for path in sorted((ROOT / stage).glob(pattern))]
        lessons.append({title_of(f"{stage}/README.md").partition(":")[0]:
                        [f"{stage}/README.md", *({title_of(page): page} for page in own)]})
    texts = [path for path in linked("docs/README.md").values()
             if path.endswith(".md") and path != "README.md"]
    return [{"ConvLadder": "README.md"}, {"Lessons": lessons},
            {"Texts": ["docs/README.md", *dict.fromkeys(texts)]},
            {"Every warp's addresses": PAGE}, {"Slides": SLIDES}]


def on_config(config):
    config.nav = navigation()
    config.mdx_configs["toc"]["slugify"] = slug
    if REPOSITORY:
        config.repo_url, config.repo_name = f"https://github.com/{REPOSITORY}", REPOSITORY
    return config


def code_page(path, config):
    """A page of its own for a source file, with numbers that a link to a line finds."""
    text, suffix = kept.read(ROOT / path), pathlib.Path(path).suffix
    fence = "`" * 8
    return File.generated(config, path + ".md", content=(
        f"{HIDDEN}hide: [toc]\n---\n# {os.path.basename(path)}\n\n`{path}`\n\n"
        f"{fence}{LANGUAGES.get(suffix, 'text')} linenums=\"1\"\n{text}\n{fence}\n"))


def slides(config):
    """Of each lesson what can be shown at a wall, its idea and pictures; printed, a sheet of paper each."""
    sections = [HIDDEN + "hide: [navigation, toc]\n---\n# Slides"]
    for stage in kept.lessons():
        text = kept.read(ROOT / stage / "README.md")
        idea = re.search(r"^## The idea\n\n(.+?)\n\n", text, re.M | re.S)[1]
        pictures = re.findall(r"^!\[.*\]\(.*\)$", text, re.M)
        sections += ['<section class="slide" markdown>', f"## {title_of(stage + '/README.md')}", idea,
                     *pictures, "</section>"]
    return File.generated(config, SLIDES, content="\n\n".join(sections))


def on_files(files, config):
    """The theme's own, all pages but hints, and what they link to."""
    found = Files([file for file in files if file.src_dir != config.docs_dir])
    pages = [str(page.relative_to(ROOT)) for page in links.pages(ROOT) if page.name != "hints.md"]
    paths = {path for page in pages for path in linked(page).values()}
    for path in sorted({*pages, PAGE, *paths}):
        if path.endswith(AS_FILE) or (ROOT / path).stat().st_size > AS_CODE:
            at = PAGE_AT if path == PAGE else None
            found.append(File(path, str(ROOT), config.site_dir, False, dest_uri=at))
        else:
            found.append(code_page(path, config))
    found.append(slides(config))
    for name in OWN:
        found.append(File(name, os.path.dirname(__file__), config.site_dir, False))
    return found


def on_page_markdown(markdown, page, config, files):
    """GitHub's Markdown for Python's: a fence has one word, <details> holds Markdown; sources are pages."""
    markdown = re.sub(r"^( *```\w+) [a-z ]+$", r"\1", markdown, flags=re.M)
    markdown = markdown.replace("<details>", "<details markdown>")
    if not (ROOT / page.file.src_uri).exists():  # made here
        return markdown
    paths = linked(page.file.src_uri)
    if REPOSITORY and page.file.src_uri == "README.md":
        actions = f"https://github.com/{REPOSITORY}/actions/workflows"
        markdown = markdown.replace("\n", f"\n\n[![ci]({actions}/ci.yml/badge.svg)]({actions}/ci.yml)\n", 1)

    def better(link):
        target, path = link[1], paths.get(link[1])
        if path and path.endswith(".ipynb") and REPOSITORY:
            return f"](https://colab.research.google.com/github/{REPOSITORY}/blob/main/{path})"
        if not path or files.get_file_from_path(path):
            return link[0]
        name, _, line = target.partition("#L")
        return f"]({name}.md" + (f"#__codelineno-0-{line}" if line else "") + ")"

    return links.LINK.sub(better, markdown)
