"""Look at the reader's Python and packages, and say in one line that all is well, or what to do."""

import importlib.util
import pathlib
import sys

NEEDED = ("jupyterlab", "ipywidgets", "matplotlib", "nbval", "pytest")
ROOT = pathlib.Path(__file__).resolve().parents[2]


def problems(version: tuple[int, ...] = sys.version_info[:2], find=importlib.util.find_spec) -> list[str]:
    """Return one sentence for each thing that is missing, with what to do about it."""
    found = []
    if version < (3, 11):
        found.append(f"Python is {version[0]}.{version[1]}, and 3.11 or newer is needed: set up again with that.")
    if missing := [name for name in NEEDED if find(name) is None]:
        found.append(f"Missing: {', '.join(missing)}. Run %pip install -r requirements.txt in the project's folder.")
    spec = find("agentloop")
    if spec is None:
        found.append("agentloop.py is not found. Run %pip install -e . in the project's folder.")
    elif pathlib.Path(spec.origin).resolve() != ROOT / "agentloop.py":
        found.append(f"Another agentloop is imported, from {spec.origin}. Delete .venv here and set up again.")
    return found


def check_setup() -> None:
    """Print that all is well, or what is wrong and how to mend it."""
    found = problems()
    all_is_well = "[OK] Python, packages and agentloop.py: all is well."
    print("\n".join(f"[FAIL] {sentence}" for sentence in found) or all_is_well)
