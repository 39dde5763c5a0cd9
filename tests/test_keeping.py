"""A reader's file holds all that was done, or what it held before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from looplab.keeping import keep_json, put_aside


def test_what_is_kept_takes_the_place_of_the_file_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "my_file.json"
    for data in ({"version": 1}, {"version": 2, "town": "Zürich"}):
        keep_json(file, data)
        assert json.loads(file.read_text(encoding="utf-8")) == data
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "my_file.json"
    keep_json(file, {"version": 1})
    with pytest.raises(TypeError):
        keep_json(file, {"version": {2}})
    assert json.loads(file.read_text(encoding="utf-8")) == {"version": 1} and list(tmp_path.iterdir()) == [file]


def test_a_folder_in_the_place_of_the_file_stays_and_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "my_file.json"
    folder.mkdir()
    with pytest.raises(OSError):
        keep_json(folder, {"version": 1})
    assert folder.is_dir() and list(tmp_path.iterdir()) == [folder]


def test_a_file_is_put_aside_under_a_number_that_is_free(tmp_path: Path) -> None:
    for number, text in ((1, "a"), (2, "b")):
        (tmp_path / "my_file.json").write_text(text, encoding="utf-8")
        assert put_aside(tmp_path / "my_file.json") == f"my_file_{number}.json"
        assert (tmp_path / f"my_file_{number}.json").read_text(encoding="utf-8") == text
