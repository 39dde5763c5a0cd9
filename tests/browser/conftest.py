"""A real JupyterLab on a loopback port, driven by a real Chromium.

The fixture `notebook` opens and runs a notebook. Nothing may be asked of another machine, and no error may reach the
browser's console; both are asserted when a test ends.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nbformat
import pytest

try:
    from playwright.sync_api import sync_playwright
except ImportError:
    sync_playwright = None

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "playwright" if sync_playwright is None else "Chromium" if CHROMIUM is None else ""
FLAGS = ("--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --disable-dev-shm-usage").split()
FLAGS += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]  # no name leads to another machine
WAIT = 60_000  # milliseconds


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(reason=f"{MISSING} is missing")
    for item in items:
        if MISSING and item.path.parent == HERE:
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if MISSING and any(HERE.name in r.nodeid for r in terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(f"The tests in tests/browser were skipped, because {MISSING} is missing.")


@contextmanager
def jupyterlab(home: Path) -> Iterator[tuple[str, str, Path]]:
    """Run JupyterLab over an empty folder in `home`; give its address, its token and the folder."""
    folder = home / "notebooks"
    folder.mkdir()
    env = os.environ | {f"JUPYTER_{name}_DIR": str(home / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")} | {
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"), "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "notebooks")])}
    write_json(home / "settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings", {"windowingMode": "none"})
    write_json(home / "config/labconfig/page_config.json",
               {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token, address = secrets.token_hex(16), f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
               "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}",
               "--LabApp.expose_app_in_browser=True", "--LabApp.news_url="]
    with (home / "log").open("w", encoding="utf-8") as log:
        server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_for_server(server, f"{address}/api?token={token}", home / "log")
            yield address, token, folder
        finally:
            server.terminate()
            server.wait(timeout=30)


def write_json(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data), encoding="utf-8")


def wait_for_server(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    """Return once the server answers; fail with its log if it does not start."""
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-2000:]}")


@contextmanager
def browser() -> Iterator[Any]:
    """Run Chromium without a window; give a context, whose pages share a cache, so that JupyterLab is fetched once."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium.new_context()
        chromium.close()


class Desk:
    """Opens notebooks in a browser, and notes each request to another machine and each error in the console.

    A page in which JupyterLab has started is used again, for that takes longer than most tests; `free` holds those
    that no desk has.
    """

    def __init__(self, lab: tuple[str, str, Path], context: Any, free: list[Any]) -> None:
        self.address, self.token, self.folder = lab
        self.context, self.free = context, free
        self.pages: list[Any] = []
        self.strangers: list[str] = []
        self.complaints: list[str] = []
        context.on("request", self._note_stranger)

    def open(self, *cells: str | Path, dark: bool = False, width: int = 1280, height: int = 1000) -> Any:
        """Open and run a notebook, from the source of its code cells or a path in the lab's folder; return its page."""
        path = self.folder / f"test-{secrets.token_hex(4)}.ipynb"
        if isinstance(cells[0], Path):
            path = cells[0]
        else:
            nbformat.write(new_notebook(cells), path)
        name = path.relative_to(self.folder).as_posix()
        page = self._take_page(name)
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(IDLE)
        page.evaluate("theme => { jupyterapp.commands.execute('apputils:change-theme', {theme}); }",
                      "JupyterLab Dark" if dark else "JupyterLab Light")
        page.wait_for_function("dark => document.body.dataset.jpThemeLight === String(!dark)", arg=dark)
        page.evaluate("() => { jupyterapp.commands.execute('notebook:run-all-cells'); }")
        page.wait_for_function(ALL_RUN)
        page.wait_for_function(IDLE)
        return page

    def close(self) -> None:
        """Close every notebook, and end its kernel, which would go on without it."""
        for page in self.pages:
            page.remove_listener("console", self._note_console)
            page.remove_listener("pageerror", self._note_error)
            page.evaluate(CLOSE)
        self.context.remove_listener("request", self._note_stranger)
        self.free += self.pages

    def _take_page(self, name: str) -> Any:
        """Return a page that opens a notebook."""
        page = self.free.pop() if self.free else self.context.new_page()
        self.pages.append(page)
        page.set_default_timeout(WAIT)
        page.on("console", self._note_console)
        page.on("pageerror", self._note_error)
        if page.url == "about:blank":
            page.goto(f"{self.address}/doc/tree/{name}?token={self.token}")
        else:
            page.evaluate("path => { jupyterapp.commands.execute('docmanager:open', {path}); }", name)
        return page

    def _note_console(self, said: Any) -> None:
        if said.type == "error" and "Canceled future for debug_request" not in said.text:  # overtaken by a restart
            self.complaints.append(said.text)

    def _note_error(self, error: Any) -> None:
        self.complaints.append(str(error))

    def _note_stranger(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.strangers.append(request.url)


CLOSE = """async () => {
    for (const notebook of [...jupyterapp.shell.widgets('main')]) {
        const session = notebook.sessionContext?.session?.id;
        if (notebook.context) notebook.context.model.dirty = false; /* so that nothing is asked */
        notebook.close();
        if (session) await jupyterapp.serviceManager.sessions.shutdown(session);
    }
}"""
IDLE = "window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
ALL_RUN = ("jupyterapp.shell.currentWidget.content.widgets.every("
           "cell => cell.model.type !== 'code' || cell.model.executionCount !== null)")


def new_notebook(sources: tuple[Any, ...]) -> Any:
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources], metadata=kernel)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    with jupyterlab(tmp_path_factory.mktemp("jupyter")) as running:
        yield running


@pytest.fixture(scope="session")
def context() -> Iterator[Any]:
    with browser() as running:
        yield running


@pytest.fixture(scope="session")
def desk(lab: tuple[str, str, Path], context: Any) -> Callable[[], Any]:
    """Give a function that returns a context manager: it gives a Desk, and at its end asserts that all went well."""
    free: list[Any] = []

    @contextmanager
    def at_desk() -> Iterator[Desk]:
        made = Desk(lab, context, free)
        yield made
        made.close()
        assert made.strangers == [], "requests to another machine"
        assert made.complaints == [], "errors in the browser's console"

    return at_desk


@pytest.fixture
def notebook(desk: Callable[[], Any]) -> Iterator[Callable[..., Any]]:
    """Give a function that opens and runs a notebook, see Desk.open; afterwards, assert that nothing was amiss."""
    with desk() as made:
        yield made.open


@pytest.fixture
def faults() -> Callable[[Any, str], list[str]]:
    """Give a function that names the serious faults which axe-core finds in a part of a page.

    The environment variable AXE_CORE holds the path of axe.min.js, from the npm package axe-core.
    """
    if not os.environ.get("AXE_CORE"):
        pytest.skip("AXE_CORE does not name the file axe.min.js")
    script = Path(os.environ["AXE_CORE"]).read_text(encoding="utf-8")

    def find(page: Any, selector: str) -> list[str]:
        page.evaluate(script)
        found = page.evaluate("include => axe.run({include})", selector)["violations"]
        return [f"{fault['id']}: {node['html'][:200]}" for fault in found if fault["impact"] in ("serious", "critical")
                for node in fault["nodes"]]

    return find
