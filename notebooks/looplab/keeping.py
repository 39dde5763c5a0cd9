"""Keeps what a reader has done in a file of theirs, whole or not at all."""

import json
import os
from contextlib import suppress
from pathlib import Path

from agentloop import Json


def keep_json(path: Path, data: Json) -> None:
    """Write a file beside `path` and rename it, so that a crash leaves the old one; raise OSError if that fails."""
    beside = path.with_suffix(".new")
    try:
        beside.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8", newline="\n")
        os.replace(beside, path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise


def put_aside(path: Path) -> str:
    """Give a file a name with a number that is free, and return that name."""
    number = 1
    while os.path.lexists(aside := path.with_stem(f"{path.stem}_{number}")):
        number += 1
    return path.rename(aside).name
