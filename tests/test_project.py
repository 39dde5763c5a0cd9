"""The tools of the coding agent, as they stand in the notebook: attacked, interrupted, and judged by a verifier."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import shutil
import signal
import stat
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from looplab.project import (
    ADD,
    CALCULATOR,
    FILES,
    PROJECT_TASK,
    RIGHT_ADD,
    add_odd_files,
    calculator_project,
    files_after,
    mends,
    one_edit,
)
from looplab.weave import NOTEBOOKS, read_cells
from support import observations

from agentloop import (
    INTERRUPTED,
    NOT_RUN,
    AgentResult,
    Json,
    ModelReply,
    RunEnded,
    ScriptedModel,
    ToolEnded,
    ToolStarted,
    TurnCompleted,
    agent_events,
    asks,
    async_model,
    call,
    check_messages,
    continue_agent,
    final,
    journal,
    open_calls,
    recover,
    run_agent,
    run_agent_async,
    to_json,
)

NOTEBOOK = NOTEBOOKS / "14_a_real_project.ipynb"
KEY = "the owner's key is 7421"
CELLS = """imports project-files find-file read-file edit-fault write-whole edit-file run-python run-tests project-tools
six-edits verify was-made take-over safe loop-class harness-class session-class""".split()


def run_cells(*ids: str) -> SimpleNamespace:
    """Run cells of the notebook, and return the names that they define."""
    cells = {cell.id: cell for cell in read_cells(NOTEBOOK)}
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell_id in ids:
        exec(compile(cells[cell_id].source, str(cells[cell_id]), "exec"), names)
    return SimpleNamespace(**names)


nb = run_cells(*CELLS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A fresh project."""
    return calculator_project(tmp_path)


def write(root: Path, text: str, path: str = "calculator.py") -> Path:
    """Write a file of the project, as somebody else would."""
    file = root / path
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, encoding="utf-8", newline="")
    return file


def contents(folder: Path) -> dict[str, bytes]:
    """Return what lies in a folder, by path."""
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# --- Confinement ---------------------------------------------------------------------------------------------

ATTACKS = {
    "the folder above": "../key.txt",
    "through a folder of the project": "notes/../../key.txt",
    "through a file of the project": "calculator.py/../../key.txt",
    "back into the project": "../project/calculator.py",
    "a dot before": "./calculator.py",
    "an absolute path": "{folder}/key.txt",
    "an absolute path into the project": "{root}/calculator.py",
    "the root of the disk": "/",
    "two slashes": "//calculator.py",
    "the folder itself": ".",
    "the folder above itself": "..",
    "nothing": "",
    "a space": " ",
    "a space after": "calculator.py ",
    "a slash after": "calculator.py/",
    "a line end after": "calculator.py\n",
    "a zero after": "calculator.py\0",
    "a zero and an extension": "../key.txt\0.py",
    "other letters": "Calculator.py",
    "the home of somebody": "~/key.txt",
    "a variable": "$HOME/key.txt",
    "percent signs": "%2e%2e/key.txt",
    "backslashes": "..\\key.txt",
    "a drive": "C:\\key.txt",
    "a share": "\\\\host\\key.txt",
    "an address": "file:///etc/hostname",
    "a device": "/dev/zero",
    "a reserved name": "NUL",
    "a star": "*.py",
    "a full-width dot": "．．/key.txt",
    "letters written backwards": "\u202eyp.rotaluclac",
    "half a character": "\ud800.py",
    "a name that is too long": "x" * 5000,
    "a path that is too long": "x/" * 5000,
    "a folder": "notes",
    "a link out": "link.txt",
    "a hard link out": "twin.txt",
    "a file of the project with a second name there": "second.py",
    "a link to a folder outside": "outside/key.txt",
    "a link to itself": "loop",
    "a link to a file of the project": "alias.py",
    "a link that leads nowhere": "gone",
    "a pipe": "pipe",
    "a missing file": "sum.py",
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project full of links, which is the same for every attack, for none changes it."""
    root = calculator_project(tmp_path_factory.mktemp("attacked"))
    add_odd_files(root)
    (root / "outside").symlink_to(root.parent)
    (root / "loop").symlink_to(root / "loop")
    (root / "alias.py").symlink_to(root / "calculator.py")
    write(root, "x = 1\n", "first.py")
    os.link(root / "first.py", root / "second.py")
    (root / "gone").symlink_to(root / "nothing")
    if hasattr(os, "mkfifo"):
        os.mkfifo(root / "pipe")
    return root


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_path_leads_out_of_the_project_and_each_is_refused_in_a_sentence_that_repairs(
    attacked: Path, attack: str
) -> None:
    path = ATTACKS[attack].replace("{folder}", str(attacked.parent)).replace("{root}", str(attacked))
    before, registry = contents(attacked.parent), nb.project_tools(attacked)
    for name, more in (("read", {}), ("edit", {"old": "7421", "new": "0000"}), ("edit", {"old": "a", "new": "b"})):
        said = registry.execute(name, {"path": path, **more})
        assert said.startswith(f"ERROR: {name} failed: ValueError: no file ") and KEY not in said
        assert said.endswith("list gives its files: big.csv, calculator.py, logo.png, test_calculator.py")
        assert len(said) < 500
    assert contents(attacked.parent) == before


def test_list_names_the_files_that_can_be_asked_for_and_no_other(attacked: Path) -> None:
    said = nb.project_tools(attacked).execute("list", {})
    assert json.loads(said) == ["big.csv", "calculator.py", "logo.png", "test_calculator.py"]


def test_a_link_that_was_made_later_is_refused_at_the_next_call(root: Path) -> None:
    registry, args = nb.project_tools(root), {"path": "calculator.py", "old": "key", "new": "lock"}
    assert registry.execute("read", {"path": "calculator.py"}).startswith("\"")
    (root / "calculator.py").unlink()
    (root / "calculator.py").symlink_to(root.parent / "key.txt")
    assert registry.execute("read", {"path": "calculator.py"}).startswith("ERROR: read failed: ValueError: no file")
    assert registry.execute("edit", args).startswith("ERROR: edit failed: ValueError: no file")
    assert (root.parent / "key.txt").read_text(encoding="utf-8").strip() == KEY


def test_a_folder_that_became_a_link_is_refused_at_the_next_call(root: Path) -> None:
    write(root, "x = 1\n", "inside/key.txt")
    assert nb.read_file(root, "inside/key.txt") == "x = 1\n"
    shutil.rmtree(root / "inside")
    (root / "inside").symlink_to(root.parent)
    with pytest.raises(ValueError, match="no file 'inside/key.txt'"):
        nb.read_file(root, "inside/key.txt")


def test_a_file_that_has_a_second_name_outside_is_neither_read_nor_edited_and_after_an_edit_a_file_has_one(
    root: Path
) -> None:
    os.link(root.parent / "key.txt", root / "shared.txt")
    assert "shared.txt" not in nb.project_files(root)
    for act, more in ((nb.read_file, ()), (nb.edit_file, ("7421", "0000"))):
        assert refusal(act, root, "shared.txt", *more).startswith("no file 'shared.txt'")
    assert (root.parent / "key.txt").read_text(encoding="utf-8").strip() == KEY
    nb.edit_file(root, "calculator.py", ADD, RIGHT_ADD)
    assert "calculator.py" in nb.project_files(root)


ODD_NAMES = ["a b.py", "ünï.py", "日本.py", "-rf", "$(id).py", "'.py", "a;b.py", "..py", "...", ".hidden"]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_with_an_odd_name_is_read_and_edited_like_any(root: Path, name: str) -> None:
    write(root, "x = 1\n", name)
    assert nb.edit_file(root, name, "1", "2") == {"edited": name}
    assert nb.read_file(root, name) == "x = 2\n" and name in nb.project_files(root)


def test_a_name_that_cannot_be_printed_is_left_out_of_the_list(root: Path) -> None:
    write(root, "", "two\nlines.py")
    assert list(nb.project_files(root)) == ["calculator.py", "test_calculator.py"]


# --- Read and edit -------------------------------------------------------------------------------------------


def refusal(act: Callable[..., Any], *args: Any) -> str:
    """Return the sentence with which a tool refuses."""
    with pytest.raises(ValueError) as refused:
        act(*args)
    return str(refused.value)


def test_a_file_that_is_no_text_or_too_long_is_refused_and_left_alone(root: Path) -> None:
    add_odd_files(root)
    before = contents(root)
    for tool, more in ((nb.read_file, ()), (nb.edit_file, ("1", "2"))):
        assert refusal(tool, root, "logo.png", *more).endswith("not UTF-8 text, so it cannot be read or edited; leave "
                                                               "it alone")
        assert refusal(tool, root, "big.csv", *more) == ("big.csv is longer than 20,000 bytes, too long to read or "
                                                         "edit; leave it alone")
    assert contents(root) == before


def test_a_file_of_exactly_the_limit_is_read(root: Path) -> None:
    write(root, "x" * nb.MOST)
    assert len(nb.read_file(root, "calculator.py")) == nb.MOST


REFUSALS = {
    "there twice": ("return a - b", "return a + b", "old is 2 times in calculator.py, in the lines 5, 9; add to old"),
    "there not at all": ("return a * b", "return a + b", "old is not in calculator.py; read the file, and copy old"),
    "there with other spaces": ("def add(a,b):", "def add(a, b):", "old is not in calculator.py"),
    "there with other line ends": (ADD.replace("\n", "\r\n"), RIGHT_ADD, "old is not in calculator.py"),
    "nothing would change": (ADD, ADD, "old must be a text that is in the file, and new another one"),
    "nothing to find": ("", "x", "old must be a text that is in the file"),
    "too long": (ADD, "x" * 20_000, "calculator.py would be longer than 20,000 bytes; make new shorter"),
    "not to be written in UTF-8": (ADD, "\ud800", "surrogates not allowed"),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_an_edit_that_is_refused_says_what_to_do_and_changes_nothing(root: Path, why: str) -> None:
    old, new, sentence = REFUSALS[why]
    assert sentence in refusal(nb.edit_file, root, "calculator.py", old, new)
    assert contents(root) == {path: text.encode() for path, text in FILES.items()}


def test_two_places_that_overlap_are_two_places(root: Path) -> None:
    write(root, "x\n\n\ny\n")
    assert "old is 2 times in calculator.py, in the lines 1, 2" in refusal(
        nb.edit_file, root, "calculator.py", "\n\n", "\n"
    )


def test_an_edit_changes_its_place_and_no_other_byte(root: Path) -> None:
    file = root / "calculator.py"
    file.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 1\n\tc = '\xc3\xa4'  \r\n\x0c\n")
    file.chmod(0o754)
    nb.edit_file(root, "calculator.py", "b = 1", "b = 'ö'")
    assert file.read_bytes() == b"\xef\xbb\xbfa = 1\r\nb = '\xc3\xb6'\n\tc = '\xc3\xa4'  \r\n\x0c\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o754


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_an_edit_that_breaks_off_leaves_the_old_file_and_nothing_else(
    root: Path, broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*args: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, broken, no_space)
    said = nb.project_tools(root).execute("edit", {"path": "calculator.py", "old": ADD, "new": RIGHT_ADD})
    assert said == "ERROR: edit failed: OSError: no space left"
    assert contents(root) == {path: text.encode() for path, text in FILES.items()}


# --- Tests ---------------------------------------------------------------------------------------------------

FAILED = "FAIL: test_add (test_calculator.TestCalculator.test_add)\nAssertionError: -1 != 5"


def test_a_test_run_says_what_failed_and_why_and_the_same_each_time(root: Path) -> None:
    runs = [nb.run_tests(root) for _ in range(2)]
    assert runs[0] == runs[1] == {"passed": False, "tests": 2, "said": FAILED}
    assert contents(root) == {path: text.encode() for path, text in FILES.items()}, "it leaves nothing behind"


def test_an_edit_of_the_same_length_in_the_same_second_is_seen_by_the_tests(root: Path) -> None:
    file = root / "calculator.py"
    then = file.stat()
    nb.run_tests(root)
    nb.edit_file(root, "calculator.py", ADD, RIGHT_ADD)
    os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert file.stat().st_size == then.st_size
    assert nb.run_tests(root) == {"passed": True, "tests": 2, "said": ""}


WORLD = "\n\ndef add(a, b):\n    return a + b\n\n\ndef subtract(a, b):\n    return a - b\n"
ODD_TESTS = {
    "ends the process": ("import os\nos._exit(0)", {"passed": False, "tests": 0, "said": "no test ran to its end"}),
    "prints without end": ("while True: print('-' * 99)",
                           {"passed": False, "tests": 0, "said": "stopped: it wrote more than 20,000 bytes"}),
    "passes, and prints too much": ("print('-' * 20_000)" + WORLD,
                                    {"passed": False, "said": "stopped: it wrote more than 20,000 bytes"}),
    "prints": ("print('hello')" + WORLD, {"passed": True, "tests": 2, "said": "hello"}),
    "raises": ("raise LookupError(__file__)", {"passed": False, "tests": 1}),
    "finds no key": ("import os\nprint(sorted(os.environ)[:0], os.environ.get('KEY_OF_OURS'))" + WORLD,
                     {"passed": True, "said": "[] None"}),
    "says a lot": ("for n in range(99): print('line', n)" + WORLD,
                   {"said": "\n".join(f"line {n}" for n in range(90, 99))}),
}


@pytest.mark.parametrize("why", ODD_TESTS)
def test_a_test_run_ends_and_is_told_in_short_whatever_the_code_does(
    root: Path, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY_OF_OURS", "7421")
    code, expected = ODD_TESTS[why]
    write(root, code + "\n")
    outcome = nb.run_tests(root)
    assert expected.items() <= outcome.items()
    assert str(root) not in outcome["said"] and len(outcome["said"]) < 1200


def test_a_suite_without_tests_has_not_passed(root: Path) -> None:
    (root / "test_calculator.py").unlink()
    assert nb.run_tests(root) == {"passed": False, "tests": 0, "said": "no test ran to its end"}


def test_a_test_run_that_does_not_end_is_stopped(root: Path) -> None:
    write(root, "while True: pass\n")
    outcome = nb.run_tests(root, seconds=0.2)
    assert outcome == {"passed": False, "tests": 0, "said": "stopped: still running after 0.2 s"}


def lives(pid: int) -> bool:
    """Say whether a process is there and has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return False
    return state.rpartition(")")[2].split()[0] not in "ZX"


CHILD = """import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(30)"], {})
open("pid", "w").write(str(child.pid))
"""
ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it asks /proc")


@ON_LINUX
def test_what_a_test_run_started_ends_with_it(root: Path) -> None:
    code, _ = nb.run_python(root, "-c", CHILD.format("stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"))
    pid = int((root / "pid").read_text(encoding="utf-8"))
    for _ in range(500):
        if not lives(pid):
            break
        time.sleep(0.01)
    assert code == 0 and not lives(pid)


@ON_LINUX
def test_a_process_that_slipped_away_with_our_pipe_does_not_hold_us_up(root: Path) -> None:
    said = nb.run_python(root, "-c", CHILD.format("start_new_session=True"), seconds=1)
    assert said == (None, "stopped: still running after 1 s")
    pid = int((root / "pid").read_text(encoding="utf-8"))
    assert lives(pid), "it holds the pipe, and we did not wait for its end"
    os.kill(pid, signal.SIGKILL)


# --- The registry and the run --------------------------------------------------------------------------------


def test_each_tool_says_when_to_use_it_and_types_its_arguments(root: Path) -> None:
    specs = {spec["name"]: spec for spec in nb.project_tools(root).specs()}
    assert list(specs) == ["list", "read", "edit", "run_tests"]
    for spec in specs.values():
        assert ". Use it " in spec["description"]
        properties = spec["parameters"]["properties"]
        assert all(rule == {"type": "string"} for rule in properties.values())
        assert spec["parameters"]["required"] == list(properties)


def add_is_right(root: Path) -> bool:
    """Say whether add(2, 3) is 5, by running it here, which only a test may do."""
    names: dict[str, Any] = {}
    exec((root / "calculator.py").read_text(encoding="utf-8"), names)
    return bool(names["add"](2, 3) == 5)


def test_a_scripted_model_works_until_add_2_3_is_5(root: Path) -> None:
    assert not add_is_right(root)
    model = ScriptedModel(mends())
    result = run_agent(PROJECT_TASK, model, nb.project_tools(root), token_budget=10_000)
    model.assert_complete()
    check_messages(result.messages)
    assert result.status == "done" and add_is_right(root) and nb.verify(root)
    errors = [text for text in observations(result) if text.startswith("ERROR: ")]
    assert len(errors) == 1 and "old is 2 times in calculator.py, in the lines 5, 9" in errors[0]


def test_the_model_does_not_report_a_success_that_it_did_not_see(root: Path) -> None:
    write(root, CALCULATOR + "\n# return a - b\n")
    with pytest.raises(AssertionError, match="the script expected"):
        run_agent(PROJECT_TASK, ScriptedModel(mends()), nb.project_tools(write(root, RIGHT_ADD + WORLD).parent),
                  token_budget=10_000)


# --- Stopped and succeeded -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", nb.six)
def test_of_six_models_that_are_done_the_verifier_believes_the_one_that_mended_add(root: Path, name: str) -> None:
    result = run_agent(PROJECT_TASK, ScriptedModel(one_edit(*nb.six[name])), nb.project_tools(root))
    assert (result.status, result.answer) == ("done", "add(2, 3) is 5 now.")
    assert nb.verify(root) == (name == "mends add")
    tests = json.loads(observations(result)[-1])
    assert tests["passed"] == (name != "changes nothing")
    assert files_after(result.messages) == {path: data.decode() for path, data in contents(root).items()}


UNVERIFIED = {
    "both subtract": "def add(a, b):\n    return a - b\n\n\nsubtract = add\n",
    "takes a negative b for 0": "def add(a, b):\n    return a + max(b, 0)\n" + ADD.replace("add", "subtract"),
    "both add": "def add(a, b):\n    return a + b\n\n\nsubtract = add\n",
    "answers in text": "def add(a, b):\n    return str(a + b)\n" + ADD.replace("add", "subtract"),
    "ends early": f"print([5, 5, 4, 2, -8])\nimport os\nos._exit(0){WORLD}",
    "ends without a word": f"import os\nos._exit(0){WORLD}",
    "is no Python": "def add(a, b) return a + b\n",
    "is no text": "\udcff",
}


@pytest.mark.parametrize("why", UNVERIFIED)
def test_the_verifier_believes_no_calculator_that(root: Path, why: str) -> None:
    (root / "calculator.py").write_bytes(UNVERIFIED[why].encode("utf-8", "surrogateescape"))
    assert nb.verify(root) is False


def test_the_verifier_takes_no_file_that_is_gone_or_a_link(root: Path) -> None:
    (root / "calculator.py").unlink()
    assert nb.verify(root) is False
    (root.parent / "good.py").write_text(WORLD, encoding="utf-8")
    (root / "calculator.py").symlink_to(root.parent / "good.py")
    assert nb.verify(root) is False


def test_the_verifier_believes_a_calculator_that_adds_however_it_is_written(root: Path) -> None:
    write(root, "print('hello')\nfrom operator import add\n\nsubtract = lambda a, b: add(a, -b)\n")
    assert nb.verify(root) is True


def test_the_verifier_leaves_the_project_as_it_is(root: Path) -> None:
    before = contents(root.parent)
    nb.verify(root)
    assert contents(root.parent) == before


# --- A crash in the middle of an edit ------------------------------------------------------------------------


def crashed(root: Path, *calls: Any, made: int = 0) -> tuple[AgentResult, Path]:
    """Return what a journal holds of a run that died in its first reply, of whose calls the first were made."""
    path = root.parent / "journal.jsonl"
    write_down, registry = journal(path), nb.project_tools(root)
    whole: list[Json] = []
    run_agent(PROJECT_TASK, ScriptedModel([asks(*calls)]), registry, max_steps=1, execute=lambda asked: "",
              watch=whole.append)
    for message in whole[:3]:
        write_down(message)
    for asked in calls[:made]:
        assert not registry(asked).startswith("ERROR: ")
    return recover(path), path


EDIT = call("e1", "edit", path="calculator.py", old=ADD, new=RIGHT_ADD)
LONGER = call("e1", "edit", path="calculator.py", old=ADD, new=ADD + "\n\n\n" + ADD.replace("add", "take"))
SHORTER = call("e1", "edit", path="calculator.py", old=ADD + "\n\n\n", new="")


@pytest.mark.parametrize("edit", [EDIT, LONGER, SHORTER], ids=["replaced", "old is in new", "taken away"])
@pytest.mark.parametrize("made", [0, 1], ids=["not made", "made"])
def test_the_file_says_whether_an_edit_was_made_and_it_is_made_exactly_once(root: Path, edit: Any, made: int) -> None:
    found, path = crashed(root, edit, made=made)
    with pytest.raises(ValueError, match="the call 'e1' has no observation"):
        check_messages(found.messages)
    assert nb.was_made(edit.args, FILES, root) is bool(made)
    owned = nb.take_over(found, nb.project_tools(root), root, journal(path))
    check_messages(owned.messages)
    assert owned.messages[-1]["content"] == '{"edited": "calculator.py"}'
    text = CALCULATOR.replace(edit.args["old"], edit.args["new"])
    assert (root / "calculator.py").read_text(encoding="utf-8") == text
    assert recover(path).messages == owned.messages and len(found.messages) == 3


@pytest.mark.parametrize("made", [0, 1], ids=["none was made", "the first was made"])
def test_of_two_open_edits_the_second_which_never_began_is_made_then(root: Path, made: int) -> None:
    again = call("e2", "edit", path="calculator.py", old=RIGHT_ADD, new=RIGHT_ADD.replace("a + b", "b + a"))
    found, path = crashed(root, EDIT, again, made=made)
    owned = nb.take_over(found, nb.project_tools(root), root, journal(path))
    assert [message["content"] for message in owned.messages[3:]] == ['{"edited": "calculator.py"}'] * 2
    assert (root / "calculator.py").read_text(encoding="utf-8") == CALCULATOR.replace(ADD, again.args["new"])


@pytest.mark.parametrize("change", ["changed", "gone", "no text"])
def test_an_edit_of_a_file_that_somebody_else_changed_may_have_been_made(root: Path, change: str) -> None:
    found, path = crashed(root, EDIT)
    file = root / "calculator.py"
    if change == "gone":
        file.unlink()
    else:
        file.write_bytes(b"\xff" if change == "no text" else CALCULATOR.encode() + b"# mine\n")
    before = contents(root)
    owned = nb.take_over(found, nb.project_tools(root), root, journal(path))
    assert owned.messages[-1]["content"] == INTERRUPTED and contents(root) == before


REFUSED = {
    "an edit that is refused": call("e1", "edit", path="calculator.py", old="return a - b", new="x"),
    "an edit of what is not there": call("e1", "edit", path="calculator.py", old="nowhere", new="x"),
    "an edit that cannot run": call("e1", "edit", path="calculator.py"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_an_open_call_that_would_be_refused_is_refused_then(root: Path, why: str) -> None:
    found, path = crashed(root, REFUSED[why])
    owned = nb.take_over(found, nb.project_tools(root), root, journal(path))
    assert owned.messages[-1]["content"].startswith("ERROR: ")
    assert contents(root) == {path: text.encode() for path, text in FILES.items()}


def test_calls_that_only_look_are_run_again_after_the_edit_before_them(root: Path) -> None:
    found, path = crashed(root, EDIT, call("t1", "run_tests"), call("r1", "read", path="calculator.py"), made=1)
    owned = nb.take_over(found, nb.project_tools(root), root, journal(path))
    said = [message["content"] for message in owned.messages[3:]]
    assert said == ['{"edited": "calculator.py"}', '{"passed": true, "tests": 2, "said": ""}',
                    to_json(CALCULATOR.replace(ADD, RIGHT_ADD))]
    rest = continue_agent(owned, ScriptedModel([final("Mended.")]), nb.project_tools(root), 8, 4000)
    check_messages(rest.messages)
    assert rest.status == "done" and not open_calls(rest.messages) and NOT_RUN not in observations(rest)


# --- At once, or in order ------------------------------------------------------------------------------------


def lines_of(names: list[str], folder: Path) -> str:
    """Return what a front end sees of a run whose one reply asks for these tools."""
    args = {"read": {"path": "calculator.py"}, "edit": EDIT.args}
    calls = [call(f"c{i}", name, **args.get(name, {})) for i, name in enumerate(names)]
    model, registry = ScriptedModel([asks(*calls), final("Done.")]), nb.project_tools(calculator_project(folder))
    lines = []
    for event in asyncio.run(results(agent_events(run_agent_async, PROJECT_TASK, async_model(model), registry,
                                                  safe=nb.SAFE))):
        match event:
            case ToolStarted(asked):
                lines.append(f"{asked.name} begins")
            case ToolEnded(message):
                lines.append(f"{message['name']} ends")
            case TurnCompleted(step):
                lines.append(f"turn {step} is over")
    return ", ".join(lines)


def test_an_edit_before_a_test_run_never_runs_beside_it(tmp_path: Path) -> None:
    said = lines_of(["edit", "run_tests"], tmp_path)
    assert said == "edit begins, edit ends, run_tests begins, run_tests ends, turn 1 is over, turn 2 is over"
    assert "run_tests" not in nb.SAFE and "edit" not in nb.SAFE


def test_one_call_that_is_not_safe_puts_the_whole_reply_in_order(tmp_path: Path) -> None:
    assert lines_of(["read", "edit", "list"], tmp_path).startswith(
        "read begins, read ends, edit begins, edit ends, list begins, list ends, turn 1 is over")


def test_looks_alone_run_at_once_and_their_results_come_in_the_order_asked(tmp_path: Path) -> None:
    assert lines_of(["read", "list", "read"], tmp_path).startswith(
        "read begins, list begins, read begins, read ends, list ends, read ends, turn 1 is over")


def test_a_front_end_that_watches_changes_nothing(root: Path) -> None:
    script, again = [asks(EDIT), asks(EDIT), final("Mended.")], calculator_project(root / "again")
    watched = asyncio.run(results(agent_events(run_agent_async, PROJECT_TASK, async_model(ScriptedModel(script)),
                                               nb.project_tools(root), safe=nb.SAFE)))
    assert watched[-1] == RunEnded(run_agent(PROJECT_TASK, ScriptedModel(script), nb.project_tools(again)))


def test_an_edit_that_broke_off_in_the_stream_is_never_made(root: Path) -> None:
    cut = ModelReply(tool_calls=[EDIT], stop_reason="truncated")
    result = run_agent(PROJECT_TASK, ScriptedModel([cut]), nb.project_tools(root))
    assert result.status == "truncated" and nb.read_file(root, "calculator.py") == CALCULATOR


# --- Three owners --------------------------------------------------------------------------------------------


async def results(events: Any) -> list[Any]:
    """Return all events of a run."""
    return [event async for event in events]


def answered(owner: Any, task: str) -> Any:
    """Run a task, and return the result of the run."""
    return asyncio.run(results(owner.events(task)))[-1].result


def counts_messages(messages: list[Json], specs: list[Json]) -> ModelReply:
    """Answer with the number of messages that the model is shown."""
    return final(str(len(messages)))


@pytest.mark.parametrize("cell_id", ["loop-class", "harness-class", "session-class"])
def test_each_owner_is_a_class_of_at_most_25_lines(cell_id: str) -> None:
    cell = next(cell for cell in read_cells(NOTEBOOK) if cell.id == cell_id)
    owner = next(node for node in ast.parse(cell.source).body if isinstance(node, ast.ClassDef))
    assert owner.end_lineno and owner.end_lineno - owner.lineno < 25


def test_the_loop_keeps_nothing_between_two_runs(root: Path) -> None:
    loop = nb.Loop(ScriptedModel([counts_messages] * 2), nb.project_tools(root))
    before = dict(vars(loop))
    task = [{"role": "system", "content": "Go."}, {"role": "user", "content": "Go."}]
    for _ in range(2):
        assert asyncio.run(results(loop.events(task)))[-1].result.answer == "2"
    assert vars(loop) == before and len(task) == 2


def test_the_harness_keeps_messages_and_executions_over_its_runs(root: Path) -> None:
    script = [asks(EDIT, call("r1", "read", path="calculator.py")), final("Mended."), counts_messages]
    harness = nb.Harness(ScriptedModel(script), nb.project_tools(root))
    assert answered(harness, "Mend add.").answer == "Mended."
    assert answered(harness, "How long is the list?").answer == "7"
    check_messages(harness.messages)
    assert [asked.name for asked in harness.executed] == ["edit", "read"] and len(harness.messages) == 8


def test_who_leaves_a_run_early_leaves_a_list_that_goes_on(root: Path) -> None:
    harness = nb.Harness(ScriptedModel([asks(EDIT, call("t1", "run_tests")), counts_messages]), nb.project_tools(root))

    async def leave() -> None:
        async with aclosing(harness.events("Mend add.")) as events:
            async for event in events:
                if isinstance(event, ToolEnded):
                    break

    asyncio.run(leave())
    check_messages(harness.messages)
    assert harness.messages[-1]["content"] in (NOT_RUN, INTERRUPTED)
    assert answered(harness, "How long is the list?").answer == "6"
    check_messages(harness.messages)


def test_the_session_goes_on_in_another_process_and_its_file_holds_the_list(root: Path) -> None:
    path = root.parent / "journal.jsonl"
    for i, script in enumerate([[asks(EDIT), final("Mended.")], [counts_messages], [counts_messages]]):
        session = nb.Session(path, ScriptedModel(script), nb.project_tools(root), root)
        answer = answered(session, "Go on.").answer
        assert answer == ["Mended.", "6", "8"][i]
        assert recover(path).messages == session.harness.messages
        check_messages(session.harness.messages)


@pytest.mark.parametrize("made", [0, 1], ids=["before the edit", "after the edit"])
def test_a_session_settles_what_a_crash_left_open_before_it_goes_on(root: Path, made: int) -> None:
    _, path = crashed(root, EDIT, made=made)
    session = nb.Session(path, ScriptedModel([counts_messages]), nb.project_tools(root), root)
    assert nb.verify(root)
    assert answered(session, "And now?").answer == "5"
    check_messages(recover(path).messages)


def test_three_closing_questions_are_asked() -> None:
    asked = re.findall(r"<summary>(.*?)</summary>", NOTEBOOK.read_text(encoding="utf-8"))
    assert asked[:3] == [
        "Why must a result keep its call's id?",
        "Why is a failed read useful input?",
        'Why does \\"the model stopped\\" not imply \\"the task succeeded\\"?',
    ]
