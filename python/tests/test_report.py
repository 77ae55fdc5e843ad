"""The page about a model, in a real browser where there is one; and what a notebook shows."""

import json
import re
import shutil

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from svml import NCA, SVMLClassifier

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def hostile():
    """Names that would break a page which does not escape them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "</script><script>alert(1)</script>": rng.normal(size=120),
            "a \"quote\" & 'more'": rng.choice(["<b>", "x" * 200, "ü"], 120),
        }
    )
    y = np.where(frame.iloc[:, 0] + (frame.iloc[:, 1] == "ü") > 0.3, "<img src=x onerror=alert(2)>", "plain")
    return frame, y


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages of two classes, of three, and with hostile names."""
    folder = tmp_path_factory.mktemp("pages")
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    SVMLClassifier().fit(X[::2], y[::2]).report(X[1::2], y[1::2], folder / "cancer.html", title="Breast cancer")
    X, y = load_wine(return_X_y=True, as_frame=True)
    SVMLClassifier().fit(X[::2], y[::2]).report(X[1::2], y[1::2], folder / "wine.html")
    X, y = hostile()
    SVMLClassifier().fit(X[::2], y[::2]).report(X[1::2], y[1::2], folder / "hostile.html")
    return folder


def test_a_page_is_complete_and_small(pages):
    for name in ("cancer", "wine", "hostile"):
        text = (pages / f"{name}.html").read_text(encoding="utf-8")
        assert len(text.encode()) < 3_000_000
        assert text.startswith("<!DOCTYPE html>") and text.rstrip().endswith("</html>")
        # Nothing is loaded from anywhere: no address but the name of the SVG language.
        assert set(re.findall(r"https?://[^\"'\s<]+", text)) <= {"http://www.w3.org/2000/svg"}
        assert not re.search(r"<(img|link|iframe|object|embed)\b", text)
        ids = re.findall(r'\bid="([^"]+)"', text)
        assert len(ids) == len(set(ids)), sorted(name for name in ids if ids.count(name) > 1)
    assert "<script>alert" not in text


def test_training_rows_are_noticed():
    X, y = load_breast_cancer(return_X_y=True)
    model = SVMLClassifier().fit(X[::2], y[::2])
    assert "look like the rows that the model was trained on" in model.report(X[::2], y[::2])
    assert "look like the rows that the model was trained on" not in model.report(X[1::2], y[1::2])


def test_the_same_page_each_time():
    X, y = load_wine(return_X_y=True)
    model = SVMLClassifier().fit(X[::2], y[::2])
    assert model.report(X[1::2], y[1::2]) == model.report(X[1::2], y[1::2])


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if BROWSER is None:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield browser
        browser.close()


def opened(browser, path, **options):
    """A page and what went wrong on it."""
    page = browser.new_page(**options)
    troubles = []
    page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: (troubles.append("a dialog"), dialog.dismiss()))
    page.on("request", lambda request: troubles.append(request.url) if not request.url.startswith("file:") else None)
    page.goto(path.as_uri())
    return page, troubles


@pytest.mark.parametrize("name", ["cancer", "wine", "hostile"])
@pytest.mark.parametrize("width", [360, 820, 1400])
def test_a_browser_shows_it_without_complaint(browser, pages, name, width):
    page, troubles = opened(browser, pages / f"{name}.html", viewport={"width": width, "height": 900})
    assert not troubles
    # Nothing is wider than the screen; tables scroll by themselves.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_its_parts_respond(browser, pages):
    page, troubles = opened(browser, pages / "cancer.html")
    assert page.locator("#threshold-box").is_visible()
    page.locator("#threshold").focus()
    before = {name: page.locator(f"#t-{name}").text_content() for name in ("value", "hit", "alarm", "recall")}
    for _ in range(49):
        page.keyboard.press("ArrowLeft")
    assert page.locator("#t-value").text_content() == "0.01"
    assert int(page.locator("#t-hit").text_content()) >= int(before["hit"])
    assert int(page.locator("#t-alarm").text_content()) >= int(before["alarm"])
    # Columns are sorted by a click, the other way by another.
    head = page.locator("#columns ~ div table[data-sortable]").first.locator("th button").first
    table = head.locator("xpath=ancestor::table")
    head.click()
    names = table.locator("tbody th").all_text_contents()
    assert names == sorted(names)
    head.click()
    assert table.locator("tbody th").all_text_contents() == sorted(names, reverse=True)
    # Explained rows open by keyboard.
    summary = page.locator("details summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("details figure svg").first.is_visible()
    assert not troubles
    page.close()


def test_the_threshold_counts_the_rows(browser, pages):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    y = y.map({0: "malignant", 1: "benign"})
    model = SVMLClassifier().fit(X[::2], y[::2])
    p, is_positive = model.predict_proba(X[1::2])[:, 1], (y[1::2] == "malignant").to_numpy()
    page, _ = opened(browser, pages / "cancer.html")
    data = json.loads(page.locator("#threshold-data").text_content())
    for at in (0, 37, 50, 99):
        assert data["hits"][at] == int((p[is_positive] >= at / 100).sum())
        assert data["alarms"][at] == int((p[~is_positive] >= at / 100).sum())
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["cancer", "hostile"])
def test_it_is_accessible(browser, pages, name, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, _ = opened(browser, pages / f"{name}.html", color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    found = axe.run(page)
    assert found.violations_count == 0, found.generate_report()
    page.close()


def test_a_notebook_shows_what_was_learned():
    X, y = load_wine(return_X_y=True, as_frame=True)
    fresh = SVMLClassifier()
    assert "Expected error" not in fresh._repr_html_()
    model = fresh.fit(X, y)
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "Expected error" in html and "178 rows, 3 classes" in html
    assert "Most important" in NCA().fit(X, y)._repr_html_()
