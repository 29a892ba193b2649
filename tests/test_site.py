"""The site has every page in its navigation and every public name in its reference, and needs no network."""

import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import pytest

import costa
from costa import settings
from costa.methods import get_method

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
REFERENCE = "".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
CHOOSING = (DOCS / "choosing-settings.md").read_text("utf-8")


def test_the_navigation_lists_every_page_once():
    navigation = re.search(r"^nav:\n((?: .*\n)+)", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)[1]
    listed = re.findall(r"(\S+\.md)$", navigation, re.MULTILINE)
    assert sorted(listed) == sorted(PAGES)


@pytest.mark.parametrize("name", costa.__all__)
def test_the_reference_has_every_public_name(name):
    assert re.search(rf"^::: costa\.{name}$", REFERENCE, re.MULTILINE)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)", (DOCS / page).read_text("utf-8")):
            assert (DOCS / page).parent.joinpath(target).exists(), (page, target)


def defaults(method):
    return {key: _shown(value) for key, value in settings.flatten(get_method(method).Settings()).items()}


def _shown(value):
    return (
        ",".join(map(str, value))
        if isinstance(value, tuple)
        else str(value).replace("True", "true").replace("False", "false")
    )


def test_the_table_of_settings_has_them_all_with_their_defaults():
    rows = re.findall(r"^\| `(\w+\.\w+)` \| .+ \| (\S+) \| (\S+) \|$", CHOOSING, re.MULTILINE)
    assert {key: one for key, one, _ in rows} == defaults("costa-sv")
    assert {key: two for key, _, two in rows} == defaults("costa-mv")


def test_settings_that_the_page_names_exist():
    groups = {group.name for group in fields(get_method("costa-mv").Settings)}
    named = {key for key in re.findall(r"`(\w+\.\w+)(?:=[^`]*)?`", CHOOSING) if key.split(".")[0] in groups}
    assert named
    assert named <= set(defaults("costa-mv"))


def test_the_file_of_settings_is_read(tmp_path):
    from costa.settings.presets import load_config

    (tmp_path / "mine.toml").write_text(re.search(r"```toml\n(.*?)```", CHOOSING, re.DOTALL)[1], encoding="utf-8")
    merged, _ = settings.merge(get_method("costa-mv").Settings, [("mine.toml", load_config(tmp_path / "mine.toml"))])
    assert merged.augment.edge_rate == (0.2, 0.4)
    assert merged.train.epochs == 500


def test_the_code_on_choosing_settings_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scope = {}
    for block in re.findall(r"```python\n(.*?)```", CHOOSING, re.DOTALL):
        exec(compile(block, "choosing-settings.md", "exec"), scope)
    out = capsys.readouterr().out
    assert "effective_rank" in out
    assert "features.scaling = none: every feature lies within 0 and 1" in out


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed (pip install 'costa-gcl[docs]')")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_reference_is_filled(site):
    pages = "".join(page.read_text("utf-8") for page in (site / "reference").glob("*.html"))
    for name in costa.__all__:
        assert f'id="costa.{name}"' in pages
    assert 'id="costa.COSTA.transform"' in pages
    # what docstrings.py is for
    assert not re.search(r":(class|func|meth|mod|data):", pages)
    assert "<blockquote>" not in pages


def test_pages_name_no_address_to_load_from(site):
    for page in site.rglob("*.html"):
        loads = re.findall(
            r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=\"?([^\" >]+)", page.read_text("utf-8")
        )
        assert loads
        assert not [address for address in loads if re.match(r"(?:https?:)?//", address)], page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text("utf-8")), sheet


@pytest.fixture(scope="module")
def visit(site):
    """Open pages from the disk in one browser; ``requested`` holds the addresses that they load."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        requested, errors = [], []

        def open_page(name, width=1000):
            page = browser.new_page(viewport={"width": width, "height": 800})
            page.on("request", lambda request: requested.append(request.url))
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto((site / name).as_uri())
            return page

        yield SimpleNamespace(page=open_page, requested=requested, errors=errors)
        browser.close()


@pytest.mark.parametrize("name", ["how-it-works.html", "choosing-settings.html", "reference/augment.html"])
def test_a_page_fits_a_phone_and_loads_only_files(visit, name):
    page = visit.page(name, width=390)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    assert not [address for address in visit.requested if not address.startswith(("file:", "data:", "blob:"))]
    assert visit.errors == []


def test_the_search_works_from_the_disk(visit):
    page = visit.page("reference/augment.html")
    page.click("input.md-search__input")
    page.keyboard.type("effective rank")
    page.wait_for_selector(".md-search-result__link")
    assert "reference/evaluate.html" in page.eval_on_selector_all(
        ".md-search-result__link", "links => links.map(link => link.href).join(' ')"
    )
