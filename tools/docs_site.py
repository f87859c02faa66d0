"""Build the documentation site into site/ from the Markdown of the repository: `make docs`.

Links that leave the site point to the repository. Afterwards every link of every page is checked, and that no page
loads anything from another server.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from tools.repository import ROOT, repository_url

SITE: Final = ROOT / "site"
DOCS: Final = ROOT / "docs"
LINK: Final = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)#\s]+)(#[^)\s]+)?(?=\))")
CODE: Final = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
PROGRAM: Final = re.compile(r"^( *```\w+) (run|compiled|not-run)\b\S*$", re.MULTILINE)
BADGES: Final[Mapping[str, str]] = {
    "run": "Run by our tests",
    "compiled": "Compiled by our tests",
    "not-run": "Not run",
}
TITLE: Final = re.compile(r"^# (.+)$", re.MULTILINE)
PICTURES: Final = {".png", ".svg"}
SITE_PAGES: Final[Mapping[str, str]] = {  # pages outside docs/, with their names on the site
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "SECURITY.md": "security-policy.md",
}
SECTIONS: Final[Mapping[str, str]] = {
    "guides": "Guides",
    "operations": "Operations",
    "reference": "Reference",
    "decisions": "Decisions",
}
CONFIGURATION: Final = """\
[project]
site_name = "Gatehouse"
site_description = "Self-hosted single sign-on, game login and permissions."
repo_url = "{repository}"
docs_dir = "pages"
site_dir = "site"
nav = [
{nav}
]

[project.theme]
language = "en"
font = false
features = ["content.code.copy", "navigation.footer", "navigation.indexes", "navigation.top", "search.highlight"]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to light mode"

[project.markdown_extensions]
attr_list = {{}}
md_in_html = {{}}
tables = {{}}
toc.permalink = true
toc.slugify = {{ object = "pymdownx.slugs.slugify", kwds = {{ case = "lower" }} }}
pymdownx.highlight.pygments_lang_class = true
pymdownx.superfences = {{}}
"""


def site_path(source: Path) -> Path | None:
    """Return where a file of the repository is on the site, or None."""
    name = source.relative_to(ROOT).as_posix()
    if name in SITE_PAGES:
        return Path(SITE_PAGES[name])
    is_page = source.suffix == ".md" or source.suffix in PICTURES
    return source.relative_to(DOCS) if is_page and source.is_relative_to(DOCS) and source.is_file() else None


def site_sources() -> list[Path]:
    pages = [ROOT / name for name in SITE_PAGES]
    return [*pages, *(path for path in sorted(DOCS.rglob("*")) if site_path(path) is not None)]


def rewrite_links(text: str, source: Path) -> str:
    """Point links to pages at their place on the site, and all others at the repository."""
    here = site_path(source) or Path()

    def target(match: re.Match[str]) -> str:
        path = Path(os.path.normpath(source.parent / match[1]))
        place = site_path(path)
        if place is not None:
            return Path(os.path.relpath(place, here.parent)).as_posix() + (match[2] or "")
        kind = "tree" if path.is_dir() else "blob"
        return f"{repository_url()}/{kind}/main/{path.relative_to(ROOT).as_posix()}{match[2] or ''}"

    parts, at = [], 0
    for code in CODE.finditer(text):  # what looks like a link in code is none
        parts += [LINK.sub(target, text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, LINK.sub(target, text[at:])])


def rewrite_badges(text: str) -> str:
    """Turn what tests do with a program, after its language, into the title of the code block."""
    return PROGRAM.sub(lambda match: f'{match[1]} title="{BADGES[match[2]]}"', text)


def navigation() -> str:
    """List the pages: the general ones, then the sections, each by the title of its pages."""
    top = ["index.md", "architecture.md", "interface.md", "performance.md", "compare.md"]
    sections = {"Overview": top}
    for folder, title in SECTIONS.items():
        pages = sorted((DOCS / folder).glob("*.md"), key=page_title)
        sections[title] = [f"{folder}/{page.name}" for page in pages]
    sections["Project"] = list(SITE_PAGES.values())[1:]
    return "\n".join(f'  {{"{title}" = {pages!r}}},' for title, pages in sections.items())


def page_title(page: Path) -> str:
    found = TITLE.search(page.read_text(encoding="utf-8"))
    return found[1].lower() if found else page.name


def write_sources(workshop: Path) -> None:
    for source in site_sources():
        place = workshop / "pages" / (site_path(source) or "")
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text = rewrite_badges(source.read_text(encoding="utf-8"))
            place.write_text(rewrite_links(text, source), encoding="utf-8")
        else:
            shutil.copy(source, place)
    configuration = CONFIGURATION.format(repository=repository_url(), nav=navigation())
    (workshop / "zensical.toml").write_text(configuration, encoding="utf-8")


# -- what was built -------------------------------------------------------------------------------------


@dataclass(slots=True)
class PageContent:
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)  # what a browser fetches by itself
    anchors: set[str] = field(default_factory=set)


class PageReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.content = PageContent()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.content.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.content.links.append(values["href"])
        if tag == "link" and values.get("rel") not in {"canonical", "next", "prev", "alternate"}:
            self.content.loaded.append(values.get("href", ""))
        if "src" in values:
            self.content.loaded.append(values["src"])


@cache
def read_page(page: Path) -> PageContent:
    reader = PageReader()
    reader.feed(page.read_text(encoding="utf-8"))
    return reader.content


def broken_links(site: Path) -> Iterator[str]:
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":  # its links begin at the root of the published site
            continue
        content, name = read_page(page), page.relative_to(site)
        yield from (f"{name} loads {url}" for url in content.loaded if url.startswith(("http:", "https:", "//")))
        for link in (*content.links, *content.loaded):
            if not re.match(r"[a-z]+:|//", link) and (problem := link_problem(link, page)):  # noqa: TID251
                yield f"{name}: {problem}"


def link_problem(link: str, page: Path) -> str:
    path, _, anchor = link.partition("#")
    target = Path(os.path.normpath(page.parent / unquote(path.partition("?")[0]))) if path else page
    target = target / "index.html" if target.is_dir() else target
    if not target.is_file():
        return f"{link} does not exist"
    if anchor and target.suffix == ".html" and unquote(anchor) not in read_page(target).anchors:
        return f"{link}: no such anchor"
    return ""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="gatehouse-docs-") as folder:
        workshop = Path(folder)
        write_sources(workshop)
        command = [str(Path(sys.executable).parent / "zensical"), "build", "--clean"]
        subprocess.run(command, cwd=workshop, check=True)
        shutil.rmtree(SITE, ignore_errors=True)
        shutil.copytree(workshop / "site", SITE)
    problems = list(broken_links(SITE))
    for problem in problems:
        print(f"docs: {problem}", file=sys.stderr)
    pages = len(list(SITE.rglob("*.html")))
    print(f"docs: {pages} pages in {SITE}, {len(problems)} broken links")
    return 1 if problems or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
