"""Evals: what is judged right and straight, how sure one can be, what an interruption leaves, what a report names."""

from __future__ import annotations

import itertools
import json
import math
import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest

import looplab
from agentloop import AgentResult, ToolRegistry, run_agent, weather_world
from looplab import eval_plots
from looplab.eval_models import Thoughts, ask, good, improved, mended, model_of, sloppy, stuck, wandering
from looplab.eval_progress import progress_html
from looplab.evals import (
    CALL_SECONDS, HEADER, REPLY_SECONDS, TASKS, WORLDS, Score, Task, evaluate, in_order, keep_score, open_scores,
    outcome_faults, path_faults, report, run_task, says, wilson,
)
from looplab.recordings import Clock
from patient import waits_for_another
from support import takes

EVIL = '<img src=x onerror="alert(1)"><b>hi</b>'
BY_NAME = {task.name: task for task in TASKS}
LOWER = Task("lower-case", "order desk", "What does order a123 cost in total with 18% GST?", ("5900",),
             ("get_order", "calculator"), 3)
GOOD, SLOPPY = evaluate(TASKS, good), evaluate(TASKS, sloppy)


def rights(scores: list[Score]) -> list[bool]:
    return [score.right for score in scores]


# --- The set and the agents -----------------------------------------------------------------------------------


def test_the_set_has_twelve_tasks_or_more_each_of_its_own_and_some_in_each_of_the_three_worlds() -> None:
    assert len(TASKS) >= 12 and len(BY_NAME) == len({task.prompt for task in TASKS}) == len(TASKS)
    worlds = Counter(task.world for task in TASKS)
    assert set(worlds) == set(WORLDS) == {"weather", "order desk", "checkout"} and min(worlds.values()) >= 4


def test_the_good_agent_is_right_and_straight_on_every_task() -> None:
    assert all(score.right and not score.detours for score in GOOD)
    assert [score.steps for score in GOOD] == [task.steps for task in TASKS]


@pytest.mark.parametrize("score", GOOD, ids=lambda score: score.task.name)
def test_each_part_of_a_task_can_fail_it(score: Score) -> None:
    task, result = score.task, AgentResult(score.status, score.answer, score.steps, score.tokens, score.messages)
    assert not [*outcome_faults(task, result), *path_faults(task, result)]
    assert [*outcome_faults(replace(task, answer=(*task.answer, "a unicorn")), result)] == [
        'the answer misses "a unicorn"']
    assert len([*outcome_faults(replace(task, refunds=(*task.refunds, ("A123", 1))), result)]) == 1
    assert "it never used ping" in [*path_faults(replace(task, path=(*task.path, "ping")), result)]
    assert [*path_faults(replace(task, path=task.path[1:]), result)][0].endswith("as well")
    assert [*path_faults(replace(task, steps=1), result)] == [f"it took {task.steps} steps, and 1 are enough"]
    assert len([*outcome_faults(task, replace(result, status="step_limit", answer=None))]) == 1


def test_the_sloppy_agent_is_done_each_time_and_often_wrong() -> None:
    assert {score.status for score in SLOPPY} == {"done"} and 0 < sum(rights(SLOPPY)) < len(TASKS)
    assert BY_NAME["refund"] in [score.task for score in SLOPPY if "it paid nothing" in " ".join(score.wrong)]
    assert next(s for s in SLOPPY if s.task.name == "cause").verdict == "right; it never used query_metrics"


def test_the_stuck_agent_ends_at_the_step_limit_wherever_it_meets_an_error() -> None:
    scores = evaluate(TASKS, stuck)
    assert {score.status for score in scores} == {"done", "step_limit"}
    for score in scores:
        calls = [(c["name"], json.dumps(c["args"])) for m in score.messages for c in m.get("tool_calls", [])]
        met = any(m["role"] == "tool" and m["content"].startswith("ERROR: ") for m in score.messages)
        assert met == (not score.right) and (not met or len(set(calls)) == 1)


def test_the_wandering_agent_is_right_each_time_and_never_straight() -> None:
    scores = evaluate(TASKS, wandering)
    assert all(score.right and score.detours for score in scores)
    assert all(far.tokens > near.tokens and far.seconds > near.seconds for far, near in zip(scores, GOOD))


@pytest.mark.parametrize("agent", [good, sloppy, stuck, wandering, improved, mended])
def test_an_agent_does_the_same_each_time(agent: Any) -> None:
    assert evaluate(TASKS, agent) == evaluate(TASKS, agent)


def test_an_agent_answers_from_what_it_is_told() -> None:
    registry = ToolRegistry()
    celsius = {"Pune": 1, "Delhi": 2}
    registry.register("get_weather", "Weather.", takes(city="string"), lambda city: {"celsius": celsius[city]})
    model = model_of(good)
    assert run_agent("How hot is Pune in Celsius?", model, registry).answer == "It is 1 C in Pune."
    assert run_agent("Which is warmer, Pune or Delhi?", model, registry).answer == "Delhi is warmer."


# --- Outcome and path -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "wanted", "holds"), [
    ("It is 86.0 F.", "86", True), ("It is 186 F.", "86", False), ("It is 86.5 F.", "86", False),
    ("5,900.00 rupees", "5900", True), ("5900 rupees", "5,900.0", True),
    ("A5900 is unknown.", "5900", False), ("86", "86", True), ("86.", "86", True),
    ("At 02:00.", "2", False), ("Since 02:00.", "02:00", True), ("Since 12:02:00", "02:00", True), ("-86", "86", False),
    ("There is no order.", "no", True), ("I know.", "no", False), ("NO.", "no", True), ("delhi is", "Delhi", True),
    ("pool size 50 -> 10)", "pool size 50 -> 10", True), ("pool size 50 -> 100", "pool size 50 -> 10", False),
    ("", "no", False), ("a+b", "a+b", True), ("1,2", "12", False),
])
def test_numbers_are_compared_as_numbers_and_texts_as_whole_words(answer: str, wanted: str, holds: bool) -> None:
    assert says(answer, wanted) is holds


@pytest.mark.parametrize(("wanted", "written"), [
    ("86", ["86F", "86 F", "86°F", "86 °F", "86.0F", "86.00 °F", "86ºF", "86℉", "86°", "86degF", "86degrees",
            "86Celsius", "86F.", "(86F)", "**86**F", "'86F'", "It is 86: hot", "Answer:86", "30C=86F", "30°C/86°F",
            "35,86"]),
    ("5900", ["5,900", "Rs5900", "Rs.5,900", "₹5900", "INR5900", "5900INR", "5900rs", "5900rupees", "5900/-",
              "$5,900.00"]),
    ("100000", ["1,00,000", "100,000", "Rs1,00,000"]),
    ("3", ["3lines", "3hits", "3h", "there are 3."]),
    ("-5", ["-5C", "−5 °C"]),
    ("0.5", ["0.5s", "0.50"]),
])
def test_a_number_is_found_however_it_is_written_and_whatever_unit_is_glued_to_it(
        wanted: str, written: list[str]) -> None:
    assert [text for text in written if not says(text, wanted)] == []


@pytest.mark.parametrize(("wanted", "written"), [
    ("86", ["186F", "186 F", "86.5", "86.5F", "86.5°F", "860F", "1.86F", ".86", "0.86", "-86F", "−86", "86,000",
            "1,86,000", "v86", "A86", "86A", "86a1b", "86_000", "86e3", "86k", "86th", "v1.86", "86.5.1", "86:10",
            "02:86", "2026-86-11", "80-86", "86-90"]),
    ("5900", ["15900", "59000rs", "Rs59000", "Rs5900.50", "A5900", "order-A5900", "59,000", "5,9000", "xrs5900"]),
    ("3", ["02:03:05", "2026-11-03", "3rd", "3k", "v3", "3.5lines", "p3", "3a"]),
    ("5", ["-5", "−5°C", "1.5", "5k", "5m"]),
])
def test_a_part_of_a_number_an_id_a_time_a_date_or_a_range_is_another_number(
        wanted: str, written: list[str]) -> None:
    assert [text for text in written if says(text, wanted)] == []


@pytest.mark.parametrize(("used", "path", "holds"), [
    ("a b", ("a", "b"), True), ("b a", ("a", "b"), False), ("a x b", ("a", "b"), True), ("a", ("a", "b"), False),
    ("b a b", ("a", "b"), True), ("a c b", ("a", "b c"), True), ("c a b", ("a", "b c"), False), ("", (), True),
    ("a b c", ("a", "b c"), True), ("a a", ("a", "a"), True), ("a", ("a", "a"), False),
])
def test_tools_are_in_order_with_others_between_and_those_of_one_text_in_any(
    used: str, path: tuple[str, ...], holds: bool
) -> None:
    assert in_order(used.split(), path) is holds


def pays(*amounts: float) -> Any:
    def agent(task: str) -> Thoughts:
        for amount in amounts:
            yield [ask("issue_refund", order_id="A123", amount=amount)]
        return "5000 rupees were paid back."

    return agent


@pytest.mark.parametrize(("amounts", "fault"), [
    ([5000], ""), ([5000.0], ""), ([6000, 5000], ""),
    ([], "it paid nothing, and should have paid 5000 for A123"),
    ([5000, 5000], "it paid 5000 for A123, 5000 for A123, and should have paid 5000 for A123"),
    ([2500], "it paid 2500 for A123, and should have paid 5000 for A123"),
    ([6000], "it paid nothing, and should have paid 5000 for A123"),
])
def test_what_was_really_paid_decides_and_not_what_the_agent_says(amounts: list[float], fault: str) -> None:
    assert run_task(BY_NAME["refund"], pays(*amounts)).wrong == [fault] * bool(fault)


def test_a_refund_that_nobody_asked_for_is_wrong() -> None:
    assert run_task(BY_NAME["quote"], pays(1)).wrong == ["it paid 1 for A123, and should have paid nothing"]


def test_a_task_of_an_unknown_world_or_with_a_text_for_several_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no world 'moon'; there are weather, order desk, checkout"):
        Task("t", "moon", "?", ("1",), (), 1)
    with pytest.raises(ValueError, match="hold texts"):
        Task("t", "weather", "?", (86,), (), 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a refund is an order and a number"):
        Task("t", "weather", "?", (), (), 1, (("A123", "5000"),))  # type: ignore[arg-type]
    for wrong in ({"answer": "86"}, {"path": ["a"]}, {"refunds": (["A123", 1],)}):
        with pytest.raises(ValueError, match="are tuples"):
            Task(**{"name": "t", "world": "weather", "prompt": "?", "answer": ("1",), "path": (), "steps": 1} | wrong)


# --- Running --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", GOOD + evaluate(TASKS, wandering), ids=lambda s: f"{s.agent} {s.task.name}")
def test_a_score_counts_tokens_as_the_loop_does_and_seconds_as_the_clock_does(score: Score) -> None:
    registry, _ = WORLDS[score.task.world]()
    agent = {"good": good, "wandering": wandering}[score.agent]
    result = run_agent(score.task.prompt, model_of(agent), registry, max_steps=8, token_budget=20_000)
    calls = sum(message["role"] == "tool" for message in result.messages)
    assert (score.tokens, score.steps, score.messages) == (result.tokens, result.steps, result.messages)
    assert math.isclose(score.seconds, REPLY_SECONDS * result.steps + CALL_SECONDS * calls)


def test_the_clock_is_handed_in() -> None:
    clock = Clock()
    first, second = (run_task(TASKS[0], good, clock) for _ in range(2))
    assert first == second and math.isclose(clock(), 2 * first.seconds)


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), json.JSONDecodeError("x", "y", 0)])
def test_an_agent_that_raises_fails_its_task_and_the_others_go_on(error: BaseException) -> None:
    def agent(task: str) -> Thoughts:
        if task == TASKS[1].prompt:
            yield [ask("get_weather", city="Delhi")]
            raise error
        return (yield from good(task))

    scores = evaluate(TASKS[:4], agent)
    assert rights(scores) == [True, False, True, True]
    assert scores[1].wrong[0].startswith(f"the agent raised {type(error).__name__}")
    assert scores[1].status == "interrupted" and scores[1].messages[-1]["role"] == "tool"


def test_an_agent_without_a_name_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="an agent goes by its name, and this one has none"):
        evaluate(TASKS[:1], partial(good))


def test_the_file_of_scores_may_be_named_by_a_text(tmp_path: Path) -> None:
    evaluate(TASKS[:1], good, path=str(tmp_path / "scores"))
    assert open_scores(tmp_path / "scores") == GOOD[:1]


def test_each_run_has_a_world_of_its_own() -> None:
    assert rights(evaluate([BY_NAME["refund"]] * 2, good)) == [True, True]
    assert run_task(BY_NAME["refund"], good) == run_task(BY_NAME["refund"], good)


def test_tasks_in_two_processes_give_the_same_scores_as_in_one(tmp_path: Path) -> None:
    told: list[Score] = []
    assert evaluate(TASKS, good, path=tmp_path / "scores", watch=told.append, workers=2) == GOOD
    kept = open_scores(tmp_path / "scores")
    assert kept == told and sorted(kept, key=lambda score: TASKS.index(score.task)) == GOOD


def test_an_agent_that_no_other_process_can_import_is_refused_in_a_sentence() -> None:
    def mine(task: str) -> Thoughts:
        return (yield from good(task))

    mine.__module__ = "__main__"
    with pytest.raises(ValueError, match="another process cannot import mine: put it into a module"):
        evaluate(TASKS, mine, workers=2)


def test_a_run_that_another_process_finishes_is_kept_while_the_first_still_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scores"
    monkeypatch.setenv("SCORES", str(path))

    def press(score: Score) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(TASKS[:2], waits_for_another, path=path, watch=press, workers=2)
    assert [score.task for score in open_scores(path)] == [TASKS[1]]


def test_another_process_imports_no_widget_and_no_plot() -> None:
    code = "import looplab.evals, sys; print({'ipywidgets', 'matplotlib', 'IPython'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8").stdout == "set()\n"


# --- Interrupted, and resumed ---------------------------------------------------------------------------------


def pressed_during(task: Task) -> Any:
    """Return the good agent, during whose work on a task Ctrl-C is pressed."""

    @wraps(good)
    def agent(prompt: str) -> Thoughts:
        thoughts = good(prompt)
        asked = next(thoughts)
        while True:
            told = yield asked
            if prompt == task.prompt:
                signal.raise_signal(signal.SIGINT)
            try:
                asked = thoughts.send(told)
            except StopIteration as end:
                return str(end.value)

    return agent


@pytest.mark.parametrize("number", [0, 1, 9, len(TASKS) - 1])
def test_ctrl_c_loses_no_finished_run_and_none_of_them_runs_again(number: int, tmp_path: Path) -> None:
    path, ran = tmp_path / "scores.jsonl", list[str]()
    with pytest.raises(KeyboardInterrupt):
        evaluate(TASKS, pressed_during(TASKS[number]), path=path)
    assert open_scores(path) == GOOD[:number]

    @wraps(good)
    def noting(task: str) -> Thoughts:
        ran.append(task)
        return good(task)

    assert evaluate(TASKS, noting, path=path) == GOOD
    assert ran == [task.prompt for task in TASKS[number:]]
    assert evaluate(TASKS, noting, path=path) == GOOD and len(ran) == len(TASKS) - number


def test_a_file_that_was_cut_anywhere_loses_only_the_line_that_was_cut(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    evaluate(TASKS[:3], good, path=whole)
    text = whole.read_bytes()
    for length in [*range(0, len(text), 61), *range(len(text) - 3, len(text) + 1)]:
        path = tmp_path / "cut"
        path.write_bytes(text[:length])
        kept = max(0, text[:length].count(b"\n") - 1)
        assert open_scores(path) == GOOD[:kept]
        assert evaluate(TASKS[:3], good, path=path) == GOOD[:3]
        assert path.read_bytes() == text


def test_watch_is_told_what_is_known_first_and_then_each_new_score(tmp_path: Path) -> None:
    told: list[Score] = []
    evaluate(TASKS[:2], good, path=tmp_path / "scores")
    evaluate(TASKS[:4], good, path=tmp_path / "scores", watch=told.append)
    assert told == GOOD[:4]


def test_scores_of_another_agent_or_of_a_changed_task_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    evaluate(TASKS, good, path=path)
    assert evaluate(TASKS, sloppy, path=path) == SLOPPY
    changed = replace(TASKS[0], steps=2)
    assert evaluate([changed], good, path=path)[0].detours == ["it took 3 steps, and 2 are enough"]
    assert len(open_scores(path)) == 2 * len(TASKS) + 1


@pytest.mark.parametrize("line", [b"{", b"[]", b"7", b"{}", b'{"task": {}}', b'{"task": 7}', b"\xff"])
def test_a_broken_line_in_the_middle_is_named_and_nothing_is_lost(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "scores"
    evaluate(TASKS[:2], good, path=path)
    text = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*text[:2], line + b"\n", *text[2:]]))
    before = path.read_bytes()
    with pytest.raises(ValueError, match="scores, line 3, holds no score"):
        evaluate(TASKS, good, path=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("name", "value"), [
    ("wrong", None), ("wrong", "abc"), ("steps", "3"), ("prompt", None), ("messages", 5), ("agent", 5), ("answer", 7),
])
def test_a_score_with_a_part_of_another_kind_is_no_score(name: str, value: Any, tmp_path: Path) -> None:
    path = tmp_path / "scores"
    evaluate(TASKS[:1], good, path=path)
    header, line = path.read_text(encoding="utf-8").splitlines()
    path.write_text(f"{header}\n{json.dumps(json.loads(line) | {name: value})}\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 2, holds no score"):
        evaluate(TASKS, good, path=path)


@pytest.mark.parametrize("text", [b"hello\n", HEADER.replace(b"1", b"2") + b"\n", b"\n", b"a thesis in one line"])
def test_a_file_of_another_kind_or_version_is_refused_and_left_as_it_is(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_bytes(text)
    with pytest.raises(ValueError, match="is not a file of scores of version 1"):
        evaluate(TASKS, good, path=path)
    assert path.read_bytes() == text


def test_a_score_comes_back_from_its_file_as_it_was_whatever_it_holds(tmp_path: Path) -> None:
    odd = replace(GOOD[0], answer=f"{EVIL} \ud83d \u2028 日本\n", wrong=["\x00"], status="step_limit")
    open_scores(tmp_path / "scores")
    for score in (odd, SLOPPY[9], odd):
        keep_score(tmp_path / "scores", score)
    assert open_scores(tmp_path / "scores") == [odd, SLOPPY[9], odd]


# --- How sure -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("right", "runs", "low", "high"), [  # Newcombe (1998), Table I, method 3
    (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718),
])
def test_the_interval_is_the_published_one(right: int, runs: int, low: float, high: float) -> None:
    assert [round(edge, 4) for edge in wilson(right, runs)] == [low, high]


def test_the_interval_stays_within_0_and_1_holds_the_rate_and_is_never_a_point() -> None:
    for runs in range(1, 60):
        for right in range(runs + 1):
            low, high = wilson(right, runs)
            assert 0 <= low <= right / runs <= high <= 1 and high - low > 0.01
            assert math.isclose(low, 1 - wilson(runs - right, runs)[1], abs_tol=1e-12)


def test_the_interval_narrows_with_more_runs_and_widens_with_more_confidence() -> None:
    widths = [high - low for low, high in (wilson(9 * n, 10 * n) for n in (1, 2, 4, 8, 16))]
    assert widths == sorted(widths, reverse=True)
    narrow, wide = wilson(9, 10, 0.8), wilson(9, 10, 0.99)
    assert wide[0] < narrow[0] and narrow[1] < wide[1]


@pytest.mark.parametrize("runs", [10, 16, 50])
def test_over_all_true_rates_the_interval_holds_the_truth_in_95_of_100_cases(runs: int) -> None:
    held = 0.0
    for true in (k / 200 for k in range(1, 200)):
        for right in range(runs + 1):
            low, high = wilson(right, runs)
            held += math.comb(runs, right) * true**right * (1 - true) ** (runs - right) * (low <= true <= high)
    assert 0.94 < held / 199 < 0.96


@pytest.mark.parametrize("wrong", [(1, 0), (-1, 5), (6, 5), (0, 0), (1, 2, 0), (1, 2, 1)])
def test_an_interval_of_no_runs_or_of_more_than_all_is_refused(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match="wilson takes"):
        wilson(*wrong)


# --- Two agents -----------------------------------------------------------------------------------------------


def test_a_report_names_the_first_task_on_which_two_agents_differ_and_why() -> None:
    assert report(GOOD, SLOPPY).splitlines() == [
        "good is right on 16 of 16 tasks", "sloppy is right on 7 of 16 tasks",
        "  only good: pune-f, delhi-f, atlantis, gst, no-order, refund, refund-one, since, billing",
        "They differ first on pune-f: How hot is Pune in Fahrenheit?",
        "  good is right", "    its answer: It is 86.0 F in Pune.",
        '  sloppy is wrong: the answer misses "86"', "    its answer: It is 90 F in Pune.",
        '  message 4 (assistant) differs in content: "" in the first, "It is 90 F in Pune." in the second',
    ]


def test_where_outcomes_agree_a_report_names_the_first_path_that_differs() -> None:
    said = report(GOOD, evaluate(TASKS, wandering))
    assert "only" not in said and "They differ first on pune-f" in said
    assert "wandering is right; it took 7 steps, and 3 are enough" in said
    assert 'message 2 (assistant) differs in tool_calls.args.city: "Pune" in the first, "Mumbai" in the second' in said


@pytest.mark.parametrize("agents", [*itertools.combinations([good, sloppy, stuck, wandering, improved], 2)])
def test_before_the_task_that_a_report_names_two_agents_are_judged_alike(agents: Any) -> None:
    old, new = (evaluate(TASKS, agent) for agent in agents)
    found = re.search(r"They differ first on ([\w-]+):", report(old, new))
    assert found
    place = [task.name for task in TASKS].index(found[1])
    alike = [(a.right == b.right) and (a.wrong or bool(a.detours) == bool(b.detours)) for a, b in zip(old, new)]
    assert all(alike[:place]) and not alike[place]


def test_an_agent_differs_from_itself_on_no_task() -> None:
    assert report(GOOD, GOOD).endswith("They differ on no task.")


def test_agents_that_ran_on_other_tasks_are_not_compared() -> None:
    for other in (GOOD[1:], GOOD[::-1], []):
        with pytest.raises(ValueError, match="on the same tasks, in the same order"):
            report(GOOD, other)
    with pytest.raises(ValueError, match="on the same tasks"):
        report([], [])


def test_a_repair_that_breaks_another_task_is_caught_though_the_rate_is_the_same() -> None:
    tasks = [*TASKS, LOWER]
    assert not run_task(LOWER, good).right, "a task that cannot fail proves nothing"
    before, after, last = (evaluate(tasks, agent) for agent in (good, improved, mended))
    assert sum(rights(before)) == sum(rights(after)) == len(tasks) - 1 and all(rights(last))
    said = report(before, after)
    assert "only good: note\n" in said and "only improved: lower-case\n" in said
    assert "They differ first on note: What did deploy v841 of checkout change?" in said
    assert "only good" not in report(before, last)


# --- Shown ----------------------------------------------------------------------------------------------------


def test_the_bar_follows_the_scores_and_says_what_the_last_one_was() -> None:
    bar = looplab.progress_bar(16)
    evaluate(TASKS[:3], sloppy, watch=bar)
    text = bar._repr_mimebundle_()["text/plain"]
    assert text.startswith('3 of 16 tasks have run, 1 right. The last, delhi-c, is right.\n△△■□□□')
    html = bar._view.value
    assert html.count('<i class="ll-on">') == 1 and html.count("<i></i>") == 13 and html.count("ll-error") == 2
    assert bar.error_box.value == ""


def test_the_bar_has_a_plain_twin_and_escapes_what_a_task_says() -> None:
    bundle = looplab.progress_bar(16)._repr_mimebundle_()
    assert not re.search("class=|style=|<svg", bundle["text/html"])
    shown = progress_html(1, [replace(SLOPPY[0], task=replace(TASKS[0], name=EVIL), wrong=[EVIL])])
    assert "<img" not in shown and "<b>hi" not in shown and "&lt;img" in shown
    with pytest.raises(ValueError, match="one task or more"):
        looplab.progress_bar(0)


def test_the_small_pictures_say_what_each_agent_spends_and_where_it_is_wrong() -> None:
    plot = eval_plots.small_multiples({"good": GOOD, "sloppy": SLOPPY})
    much, little = (sum(score.tokens for score in scores) for scores in (GOOD, SLOPPY))
    assert plot.sentence == (f"Of 16 tasks good is right on 16 and spends {much:,}; sloppy is right on 7 and spends "
                             f"{little:,} tokens.")
    assert plot.png and plot.rows[1] == ["pune-f", f"{GOOD[0].tokens}", f"{SLOPPY[0].tokens} wrong"]


def test_small_pictures_of_other_tasks_or_of_one_agent_are_refused() -> None:
    for results in ({"good": GOOD}, {"a": [], "b": []}, {"a": GOOD, "b": GOOD[1:]}, dict.fromkeys("abcde", GOOD)):
        with pytest.raises(ValueError, match="two to four agents"):
            eval_plots.small_multiples(results)


def test_observations_reach_an_agent_in_the_order_of_its_calls() -> None:
    told: list[list[str]] = []

    def agent(task: str) -> Thoughts:
        told.append((yield [ask("get_weather", city="Delhi"), ask("get_weather", city="Pune")]))
        told.append((yield [ask("c_to_f", celsius=1)]))
        return "Done."

    run_agent("Go.", model_of(agent), weather_world()[0])
    assert [json.loads(text)["city"] for text in told[0]] == ["Delhi", "Pune"] and told[1] == ["33.8"]
