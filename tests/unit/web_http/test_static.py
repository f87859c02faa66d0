import hashlib
import re
from pathlib import Path

import pytest

from gatehouse.kernel.graphics import Color
from gatehouse.web.pages.assets import STATIC_DIRECTORY, Assets
from gatehouse.web.pages.branding import DARK_BACKGROUNDS, DEFAULT_ACCENT, LIGHT_BACKGROUNDS
from tests.support.sample_asgi_app import SampleAsgiApp, call_app

VENDOR = STATIC_DIRECTORY / "vendor"


@pytest.fixture
def assets(tmp_path: Path) -> Assets:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "site.css").write_text("body { color: black }")
    (tmp_path / "LICENSE.md").write_text("not served")
    (tmp_path.parent / "outside.css").write_text("secret")
    return Assets(tmp_path)


async def test_a_file_is_kept_for_ever_under_the_digest_of_its_content(assets: Assets) -> None:
    app = SampleAsgiApp(endpoints=[assets.endpoint()]).app()
    digest = hashlib.sha256(b"body { color: black }").hexdigest()[:16]
    assert assets.address("inner/site.css") == f"/static/{digest}/inner/site.css"
    response = await call_app(app, "GET", assets.address("inner/site.css"))
    assert (response.status, response.body) == (200, b"body { color: black }")
    assert response.headers["content-type"] == "text/css; charset=utf-8"
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_under_an_old_digest_the_present_file_is_served_but_not_kept(assets: Assets) -> None:
    app = SampleAsgiApp(endpoints=[assets.endpoint()]).app()
    response = await call_app(app, "GET", "/static/0000000000000000/inner/site.css")
    assert (response.status, response.headers["cache-control"]) == (200, "no-cache")


async def test_matching_etag_returns_304(assets: Assets) -> None:
    app = SampleAsgiApp(endpoints=[assets.endpoint()]).app()
    tag = (await call_app(app, "GET", assets.address("inner/site.css"))).headers["etag"]
    again = await call_app(app, "GET", assets.address("inner/site.css"), headers=[("If-None-Match", f'"x", {tag}')])
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "name",
    [
        "LICENSE.md",
        "missing.css",
        "../outside.css",
        "..%2foutside.css",
        "inner/../../outside.css",
        "inner",
        "inner/",
        "",
        "inner/site.css%00",
        "inner/site.css%0a",
        "//etc/passwd",
    ],
)
async def test_no_other_static_path_is_served(assets: Assets, name: str) -> None:
    app = SampleAsgiApp(endpoints=[assets.endpoint()]).app()
    assert (await call_app(app, "GET", f"/static/0/{name}")).status == 404


def test_an_unknown_asset_is_found_out_when_the_page_is_made(assets: Assets) -> None:
    with pytest.raises(KeyError):
        assets.address("inner/sight.css")


def test_vendored_files_are_unchanged_and_licensed() -> None:
    lines = (VENDOR / "CHECKSUMS.sha256").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ") for line in lines)}
    ours = {"CHECKSUMS.sha256", "VERSIONS.txt"}
    there = {path.relative_to(VENDOR).as_posix() for path in VENDOR.rglob("*") if path.is_file()} - ours
    assert set(listed) == there
    for name, digest in listed.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
    for folder in VENDOR.iterdir():
        if folder.is_dir():
            assert any(folder.glob("LICENSE*")), folder


def test_icons_are_symbols_of_one_file_and_an_unknown_one_fails(tmp_path: Path) -> None:
    (tmp_path / "vendor/lucide").mkdir(parents=True)
    drawn = '<!-- a license -->\n<svg class="x" viewBox="0 0 24 24">\n  <path d="M1 1" />\n</svg>\n'
    (tmp_path / "vendor/lucide/key.svg").write_text(drawn)
    assets = Assets(tmp_path)
    assert f'<use href="{assets.address("icons.svg")}#key"/>' in assets.icon("key")
    assert 'role="img" aria-label="&lt;b&gt;"' in assets.icon("key", title="<b>")
    with pytest.raises(KeyError):
        assets.icon("keys")
    with pytest.raises(KeyError):
        assets.address("vendor/lucide/key.svg")


async def test_a_style_sheet_contains_what_it_imports_and_names_files_by_their_digests(tmp_path: Path) -> None:
    (tmp_path / "tick.svg").write_text("<svg/>")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner/b.css").write_text('i { background: url("tick.svg") }')
    (tmp_path / "a.css").write_text('@import "inner/b.css";')
    assets = Assets(tmp_path)
    app = SampleAsgiApp(endpoints=[assets.endpoint()]).app()
    served = await call_app(app, "GET", assets.address("a.css"))
    assert served.body.decode() == f'i {{ background: url("{assets.address("tick.svg")}") }}'


def test_the_accent_is_checked_on_the_backgrounds_of_the_style_sheet() -> None:
    tokens = (STATIC_DIRECTORY / "tokens.css").read_text()
    names = ("raised", "surface", "fill", "success-fill", "danger-fill", "warning-fill")
    pairs = [re.search(rf"--{name}: light-dark\((#\w+), (#\w+)\)", tokens) for name in names]
    both = [pair.groups() for pair in pairs if pair]
    light, dark = ([Color.parse(one.replace("#fff", "#ffffff")) for one in side] for side in zip(*both, strict=True))
    assert (tuple(light), tuple(dark)) == (LIGHT_BACKGROUNDS, DARK_BACKGROUNDS)
    assert f"--accent: light-dark({DEFAULT_ACCENT}," in tokens


async def test_style_sheets_of_pages_load_no_data_images() -> None:
    """The policy of pages blocks them."""
    packaged = Assets()
    app = SampleAsgiApp(endpoints=[packaged.endpoint()]).app()
    names = [path.relative_to(STATIC_DIRECTORY).as_posix() for path in STATIC_DIRECTORY.rglob("*.css")]
    for name in names:
        body = (await call_app(app, "GET", packaged.address(name))).body
        assert b'("data:' not in body, name
