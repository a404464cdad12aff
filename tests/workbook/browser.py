"""A real browser for pages: headless Chromium through its driver, at a given width, light or dark."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
)
WIDTHS = (1280, 390)


@contextmanager
def open_browser(width: int = 1280, dark: bool = False, height: int = 900) -> Iterator:
    """A driver whose pages are ``width`` pixels wide; the test is skipped where there is no Chromium."""
    if not (CHROMIUM and DRIVER):
        pytest.skip("no chromium and chromedriver on the path")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
        try:
            resize(driver, width, height, dark)
            yield driver
        finally:
            driver.quit()


def resize(driver, width: int, height: int = 900, dark: bool = False) -> None:
    """Another width or colour scheme; a headless window has a least width, so it is emulated."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def errors(driver) -> list[str]:
    """What the console said since it was last asked, warnings and errors."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def overflow(driver) -> int:
    """By how many pixels the page is wider than the window."""
    return driver.execute_script("return document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.fixture(scope="module")
def browser():
    """One browser for the tests of a module, light and 1280 pixels wide until a test resizes it."""
    with open_browser() as driver:
        yield driver
