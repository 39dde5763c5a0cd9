"""The stages in tests/spec accept every honest solution, place each fault in its stage, and outlive any file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from judged_files import OPTIONS, Judge, Row, judge_files

ROOT = Path(__file__).parent.parent
AGENTLOOP = (ROOT / "agentloop.py").read_text(encoding="utf-8")
CORE, REST = re.split(r"(?=\n# --- 6 )", AGENTLOOP, maxsplit=1)
PLAIN = (ROOT / "tests/fixtures/plain.py").read_text(encoding="utf-8")

HONEST = {
    "agentloop": AGENTLOOP,
    "plain": PLAIN,
    "careful": (ROOT / "tests/fixtures/careful.py").read_text(encoding="utf-8"),
    "terse": (ROOT / "tests/fixtures/terse.py").read_text(encoding="utf-8"),
    "objects": (ROOT / "tests/fixtures/objects.py").read_text(encoding="utf-8"),
    "a thread that fails": PLAIN + "\nfrom threading import Thread\nThread(target=[].pop).start()\n",
    "one with a warning": 'import warnings\nwarnings.warn("old")\nPATTERN = "\\d"\n' + PLAIN,
}


class Sabotage(NamedTuple):
    stage: int
    old: str
    new: str


SABOTAGES = {
    "the script's end is told in other words": Sabotage(1, "script ran out", "no reply left"),
    "seen grows with the run": Sabotage(1, "[copies[:length] for", "[copies for"),
    "asks keeps one call only": Sabotage(1, "ModelReply(text, list(calls))", "ModelReply(text, list(calls)[:1])"),
    "a bool is a number": Sabotage(
        2, "type(value) in JSON_TYPES[json_type]", "isinstance(value, JSON_TYPES[json_type])"
    ),
    "unknown arguments are let through": Sabotage(2, 'return f"unexpected argument {name!r}"', "continue"),
    "a missing argument is not quoted": Sabotage(
        2, "required argument {missing[0]!r}", "required argument {missing[0]}"
    ),
    "tools are listed as registered": Sabotage(3, "{sorted(self._tools)}", "{list(self._tools)}"),
    "schemas are not checked": Sabotage(3, "            check_schema(parameters)\n", ""),
    "arguments are not checked": Sabotage(3, "problem = validate_args(args, parameters)", "problem = None"),
    "an exception loses its type": Sabotage(3, "{name} failed: {describe(error)}", "{name} failed: {error}"),
    "text beside a call is the answer": Sabotage(
        4, 'if not run.messages[-1]["tool_calls"]:', 'if reply.content or not run.messages[-1]["tool_calls"]:'
    ),
    "the first call of a reply is run alone": Sabotage(
        4, "for call in open_calls(run.messages):", "for call in open_calls(run.messages)[:1]:"
    ),
    "a result carries the name for the id": Sabotage(4, '"tool_call_id": call.id', '"tool_call_id": call.name'),
    "the model is shown the last messages only": Sabotage(4, "model(list(run.copies)", "model(run.copies[-3:]"),
    "one step too many": Sabotage(5, "if run.steps >= max_steps", "if run.steps > max_steps"),
    "the budget is checked after the call": Sabotage(
        5, "if run.spent + prompt > token_budget", "if run.spent > token_budget"
    ),
    "exactly the full cost is too little": Sabotage(
        5, "if run.spent + prompt > token_budget", "if run.spent + prompt + 99 > token_budget"
    ),
    "the reply costs nothing": Sabotage(5, "else prompt + tokens", "else prompt"),
    "a stopped run gives its last message": Sabotage(
        5, '["content"] if status == "done" else None', '["content"]'
    ),
    "six characters make a token": Sabotage(5, "len(encode(obj)) // 4", "len(encode(obj)) // 6"),
    "the step limit has a name of its own": Sabotage(5, 'run.end("step_limit")', 'run.end("max_steps")'),
}

ENDLESS = "    while True:\n        pass\n"
CATCHES_ALL = "    while True:\n        try:\n            print('x' * 99)\n        except:\n            print('y')\n"
CATCHES_MODEL = "try:\n            reply = model(messages, specs)\n        except:\n            continue"
UNREADABLE = 'messages = [type("Unreadable", (dict,), {"get": None})({"role": "assistant"}), {'
RUN_AGENT = PLAIN + "\n\ndef run_agent(task, model, registry, **limits):\n"
BROKEN = {
    "syntax error": "def validate_args(args, schema)\n    return None\n",
    "raises at import": "import json\njson.load_all\n",
    "sys.exit at import": "import sys\nsys.exit('bye')\n",
    "empty": "",
    "no registry": PLAIN + "\ndel ToolRegistry\n",
    "placeholder": PLAIN + "\nvalidate_args = ...\n",
    "sys.exit in run_agent": RUN_AGENT + "    raise SystemExit\n",
    "asks for input": PLAIN + "\ndef final(text):\n    return ModelReply(input())\n",
    "ignores max_steps": PLAIN.replace("range(1, max_steps + 1)", "range(1, 10**9)"),
    "no result": RUN_AGENT + "    return None\n",
    "run_agent is async": PLAIN.replace("def run_agent", "async def run_agent"),
    "execute is async": PLAIN.replace("def execute", "async def execute"),
    "raises without a word": RUN_AGENT + "    raise KeyboardInterrupt\n",
    "messages cannot be read": PLAIN.replace("messages = [{", UNREADABLE),
    "messages are text": RUN_AGENT + "    return AgentResult('done', 'It is 86.0 F in Pune.', 1, 1, ['text'])\n",
}
NEVER_ENDS = {
    "endless at import": "if True:\n" + ENDLESS,
    "endless loop": RUN_AGENT + "    while True:\n        time.sleep(0.01)\n\n\nimport time\n",
    "endless printing": PLAIN + "\ndef final(text):\n" + CATCHES_ALL,
    "sleeps": PLAIN + "\nimport time\ndef call(*id_and_name, **args):\n    time.sleep(3600)\n",
    "catches all": PLAIN.replace("reply = model(messages, specs)", CATCHES_MODEL).replace("max_steps + 1", "10**9"),
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """What the suite reports on a file by its name: a row for each requirement."""
    files: dict[str, tuple[str | None, int]] = {"not there": (None, 5)}
    files |= {name: (text, 5) for name, text in {**BROKEN, **HONEST}.items()}
    files |= {name: (CORE.replace(old, new) + REST, stage) for name, (stage, old, new) in SABOTAGES.items()}
    return judge_files(tmp_path_factory.mktemp("judged"), files, processes=2)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """What the suite reports on a file that never ends, with little time for it."""
    files = {name: (text, 5) for name, text in NEVER_ENDS.items()}
    return judge_files(tmp_path_factory.mktemp("stopped"), files, 3, "--seconds=0.5")


def stages(rows: list[Row], outcome: str) -> dict[int, int]:
    """Return how many requirements of each stage had this outcome; stages without any are left out."""
    found = [row["stage"] for row in rows if row["outcome"] == outcome]
    return {stage: found.count(stage) for stage in sorted(set(found))}


def failures(rows: list[Row], stage: int) -> list[str]:
    """Return the messages of a stage's failures."""
    return [row["message"] for row in rows if (row["stage"], row["outcome"]) == (stage, "failed")]


def run_pytest(folder: Path, *arguments: str, optimised: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the suite as a person does, from some folder."""
    python = [sys.executable, "-O"] if optimised else [sys.executable]
    command = [*python, "-m", "pytest", "-W", "ignore::pytest.PytestConfigWarning", *OPTIONS, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=120, check=False)


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_solution_passes_all_stages(name: str, judged: Judge) -> None:
    rows = judged(name)
    assert [row for row in rows if row["outcome"] != "passed"] == []
    assert list(stages(rows, "passed")) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_sabotage_applies_exactly_once(name: str) -> None:
    assert CORE.count(SABOTAGES[name].old) == 1


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_sabotage_fails_in_its_stage_and_in_none_before(name: str, judged: Judge) -> None:
    stage, rows = SABOTAGES[name].stage, judged(name)
    assert list(stages(rows, "failed")) == [stage]
    assert list(stages(rows, "passed")) == list(range(1, stage + 1))
    assert not stages(rows, "skipped")


@pytest.mark.parametrize(
    "name, sentence",
    {
        "syntax error": "importing syntax error.py: it raised SyntaxError: ",
        "raises at import": "importing raises at import.py: it raised AttributeError: ",
        "sys.exit at import": "importing sys.exit at import.py: it called sys.exit (line 2)",
        "empty": "empty.py has no class or function named ",
        "not there": "there is no file ",
    }.items(),
)
def test_a_file_that_cannot_be_used_gives_one_sentence_a_stage(name: str, sentence: str, judged: Judge) -> None:
    assert_not_loaded(judged(name), sentence)


def test_nor_can_a_file_that_never_ends_when_it_is_imported(stopped: Judge) -> None:
    sentence = "importing endless at import.py: it was still running after 0.5 seconds and was stopped"
    assert_not_loaded(stopped("endless at import"), sentence)


def assert_not_loaded(rows: list[Row], sentence: str) -> None:
    """Assert that one sentence is all that is said of each stage."""
    assert stages(rows, "failed") == dict.fromkeys([1, 2, 3, 4, 5], 1)
    assert not stages(rows, "passed")
    for stage in (1, 2, 3, 4, 5):
        assert failures(rows, stage)[0].startswith(sentence)
        assert "\n" not in failures(rows, stage)[0]


@pytest.mark.parametrize(
    "name, missing, untouched", [("no registry", "ToolRegistry", [1, 2]), ("placeholder", "validate_args", [1])]
)
def test_a_missing_name_gives_one_sentence_and_the_rest_goes_on(
    name: str, missing: str, untouched: list[int], judged: Judge
) -> None:
    rows, honest = judged(name), stages(judged("plain"), "passed")
    stage = untouched[-1] + 1
    assert failures(rows, stage) == [f"{name}.py has no class or function named {missing}"]
    assert {s: stages(rows, "passed").get(s) for s in untouched} == {s: honest[s] for s in untouched}
    skipped = {row["message"] for row in rows if row["outcome"] == "skipped"}
    assert skipped <= {f"not tried: {name}.py has no {missing}"}


def test_a_name_that_is_missing_keeps_no_test_from_running_that_can_do_without(judged: Judge) -> None:
    assert stages(judged("placeholder"), "passed")[1] == stages(judged("plain"), "passed")[1]


@pytest.mark.parametrize(
    "name, tried, stuck",
    [
        ("endless printing", "final('It is warm.')", [1]),
        ("sleeps", "call('c1', 'get_weather', city='Pune', days=2)", [1]),
        ("endless loop", "run_agent(`How hot is Pune in Fahrenheit?`, model, registry), where ", [4, 5]),
    ],
)
def test_code_that_never_ends_is_stopped_once_a_stage_and_the_rest_goes_on(
    name: str, tried: str, stuck: list[int], stopped: Judge
) -> None:
    rows = stopped(name)
    assert stages(rows, "failed") == dict.fromkeys(stuck, 1)
    for stage in stuck:
        message = failures(rows, stage)[0]
        assert message.startswith(f"tried:     {tried}")
        assert message.endswith("came back: it was still running after 0.5 seconds and was stopped")
    skipped = [row for row in rows if row["outcome"] == "skipped"]
    assert all(row["message"].startswith(f"not tried, because this did not end: {tried}") for row in skipped)
    assert {row["stage"] for row in skipped} <= set(stuck)


@pytest.mark.parametrize(
    "name, stage, came_back",
    [
        ("sys.exit in run_agent", 4, "it called sys.exit (line "),
        ("asks for input", 1, "it raised EOFError: "),
        ("ignores max_steps", 5, "the model was asked again after 15 replies"),
        ("no result", 4, "None, without the field status"),
        ("run_agent is async", 4, "a coroutine: `async def` does no work until it is awaited; write `def`"),
        ("execute is async", 3, "a coroutine: `async def` does no work until it is awaited; write `def`"),
        ("raises without a word", 4, "it raised KeyboardInterrupt (line "),
        ("messages cannot be read", 4, "one that raises TypeError: "),
        ("messages are text", 4, "['text']"),
    ],
)
def test_whatever_comes_back_is_told_in_three_lines(name: str, stage: int, came_back: str, judged: Judge) -> None:
    rows = judged(name)
    assert min(stages(rows, "failed")) == stage
    messages = failures(rows, stage)
    assert any(f"\ncame back: {came_back}" in message for message in messages)
    for message in messages:
        labels = [line.split(":")[0] for line in message.splitlines()]
        assert labels == ["tried", "expected", "came back"]


def test_a_requirement_has_one_row_whatever_a_file_leaves_behind(judged: Judge) -> None:
    sentences = [(row["stage"], row["sentence"]) for row in judged("plain")]
    for name in ("run_agent is async", "execute is async", "a thread that fails"):
        assert [(row["stage"], row["sentence"]) for row in judged(name)] == sentences


def test_a_loop_that_catches_all_exceptions_is_stopped_all_the_same(stopped: Judge) -> None:
    rows = stopped("catches all")
    assert failures(rows, 5)[-1].endswith("it was still running after 0.5 seconds and was stopped")
    assert list(stages(rows, "failed")) == list(stages(rows, "skipped")) == [5]


def test_a_failure_says_what_was_tried_what_was_expected_and_what_came_back(judged: Judge) -> None:
    schema = {"type": "object", "properties": {"value": {"type": "number"}}, "required": ["value"]}
    row = next(row for row in judged("a bool is a number") if row["outcome"] == "failed")
    assert row == {
        "stage": 2,
        "sentence": "A bool is never a number",
        "outcome": "failed",
        "message": f"tried:     validate_args({{'value': True}}, {schema})\n"
        "expected:  `argument 'value' must be of type number`\n"
        "came back: None",
    }


def test_a_person_sees_sentences_and_no_code(tmp_path: Path) -> None:
    text = PLAIN.replace('isinstance(value, bool) != (kind == "boolean")', 'print("my own words")')
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    run = run_pytest(tmp_path, "--impl", "mine.py", "--stage", "2")
    assert run.returncode == 1
    assert "came back: None" in run.stdout and "my own words" in run.stdout
    assert "requirements that mine.py meets" in run.stdout
    assert "stage 1 messages   16 of 16" in run.stdout
    assert "stage 2 validator  16 of 17" in run.stdout
    assert not any(words in run.stdout for words in ("Traceback", "def test_", "pytest.fail", "stage 3"))


def test_python_without_asserts_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(HONEST["terse"], encoding="utf-8")
    assert "assert prop" in HONEST["terse"]
    run = run_pytest(tmp_path, "--impl", "mine.py", "--stage", "3", optimised=True)
    assert run.returncode == 0, run.stdout


def test_a_stage_that_does_not_exist_is_refused_in_a_sentence(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, "--stage", "9")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "argument --stage: invalid choice: 9" in run.stderr
