"""What the repository's host reads: workflows, owners, templates, and what a release must agree on."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tools.debian import missing_packages
from tools.docs_site import CONFIGURATION, link_problem, navigation, rewrite_links, site_sources
from tools.release_tag import changelog_section, problems_of
from tools.repository import read_project, repository_url

from tests.support.capabilities import ACTIONLINT, require_program
from tests.support.find_programs import ROOT

HOST: Final = ROOT / ".github"
WORKFLOWS: Final = sorted((HOST / "workflows").glob("*.yml"))
PINNED_ACTION: Final = re.compile(r"actions/[a-z-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
CHANGELOG: Final = (
    "# Changelog\n\n## [Unreleased]\n\n- later\n\n## [0.1.0] - 2026-01-02\n\n- first\n\n## [0.0.1] - 2025-01-01\n"
)
PROJECT: Final[dict[str, Any]] = {"version": "0.1.0", "urls": {"Repository": "https://host.example/a/gatehouse"}}


def jobs_of(workflow: Path) -> dict[str, Any]:
    jobs: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return jobs


def test_every_workflow_passes_actionlint() -> None:
    command: list[str | Path] = [require_program(ACTIONLINT), "-no-color", *WORKFLOWS]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == ""
    assert ended.returncode == 0


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_op_10_a_workflow_runs_pinned_actions_with_the_least_rights(workflow: Path) -> None:
    text = workflow.read_text()
    used = [line.partition("uses: ")[2] for line in text.splitlines() if "uses: " in line]
    assert [action for action in used if not PINNED_ACTION.fullmatch(action)] == []
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    assert "secrets." not in text
    assert all(job["timeout-minutes"] for job in jobs_of(workflow).values())


def test_the_suite_runs_on_every_supported_python_and_postgresql() -> None:
    matrix = jobs_of(HOST / "workflows" / "tests.yml")["suite"]["strategy"]["matrix"]
    named = {text.rpartition(" ")[2] for text in read_project()["classifiers"] if re.search(r":: 3\.\d+$", text)}
    assert set(matrix["python"]) == named
    servers = {*matrix["postgresql"], *(row["postgresql"] for row in matrix["include"])}
    assert servers == {"15", "16", "17", "18"}


def test_every_make_target_that_a_workflow_runs_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    run = {name for path in WORKFLOWS for name in re.findall(r"\bmake ([a-z-]+)", path.read_text())}
    long_ones = jobs_of(HOST / "workflows" / "scheduled.yml")["long"]["strategy"]["matrix"]["target"]
    assert run | {name.partition(" ")[0] for name in long_ones} <= targets


def test_one_line_names_the_repository() -> None:
    owner = repository_url().split("/")[-2]
    owners = (HOST / "CODEOWNERS").read_text()
    assert re.findall(r"@([^/\s]+)/", owners) == [owner]
    named = [path for path in site_sources() if path.suffix == ".md" and repository_url() in path.read_text()]
    assert named == []


@pytest.mark.parametrize(
    ("tag", "repository", "changelog", "problem"),
    [
        ("v0.1.1", "https://host.example/a/gatehouse", CHANGELOG, "the tag is v0.1.1"),
        ("v0.1.0", "https://host.example/b/gatehouse", CHANGELOG, "this is https://host.example/b/gatehouse"),
        ("v0.1.0", "https://host.example/a/gatehouse", "## [Unreleased]\n", "no dated section [0.1.0]"),
    ],
)
def test_a_release_needs_its_tag_its_repository_and_its_changes(
    tag: str, repository: str, changelog: str, problem: str
) -> None:
    assert problems_of("v0.1.0", "https://host.example/a/gatehouse", PROJECT, CHANGELOG) == []
    (found,) = problems_of(tag, repository, PROJECT, changelog)
    assert problem in found


def test_release_notes_are_the_section_of_the_version() -> None:
    assert changelog_section("0.1.0", CHANGELOG) == "- first"
    assert changelog_section("0.1", CHANGELOG) == ""


def test_site_links_lead_to_pages_or_to_the_repository() -> None:
    page = ROOT / "docs" / "guides" / "apply.md"
    text = "[a](../interface.md#r7) [b](../../README.md) [c](../../src) `[d](e)` [f](https://x.example)"
    assert rewrite_links(text, page) == (
        f"[a](../interface.md#r7) [b](../index.md) [c]({repository_url()}/tree/main/src) `[d](e)` [f](https://x.example)"
    )


def test_site_has_every_page_in_its_navigation() -> None:
    configuration = tomllib.loads(CONFIGURATION.format(repository=repository_url(), nav=navigation()))
    listed = {page for entry in configuration["project"]["nav"] for pages in entry.values() for page in pages}
    docs = ROOT / "docs"
    assert {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")} <= listed


def test_a_link_without_a_target_is_found(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text('<h1 id="top">A</h1>')
    (tmp_path / "b").mkdir()
    assert link_problem("#top", page) == ""
    assert "no such anchor" in link_problem("#other", page)
    assert "does not exist" in link_problem("b/", page)


def test_packages_that_a_root_of_debian_lacks_are_found(tmp_path: Path) -> None:
    (tmp_path / "var/lib/dpkg").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(
        "Package: curl\nStatus: install ok installed\nVersion: 8\n\n"
        "Package: git\nStatus: deinstall ok config-files\nVersion: 2\n\n"
    )
    assert missing_packages(tmp_path, "ca-certificates,curl,git") == ["ca-certificates", "git"]
