"""Each fault applies, breaks its rule and no other rule's test alike; a reader's test is judged as it deserves."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import json
import linecache
import os
import re
from pathlib import Path

import pytest

import agentloop
from looplab import bug_clinic, catching, charts, clinic, sandbox
from looplab.clinic import all_cases, answer_of, hints_of, judge_test, options_of
from looplab.faults import FAULTS, LEVELS, broken_text, load, observations, our_text, run, split_text
from looplab.matrix import failing_each
from looplab.scenes import is_missing, lines_of, place_of, scene_of, scene_of_ours, sections_of, statement_lines

NOTEBOOK = Path(clinic.__file__).parents[1] / "18_bug_clinic.ipynb"
each_fault = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
cell_numbers = itertools.count(1)

# A test of the project that fails on the fault; `python -m looplab.matrix` lists all of them.
CAUGHT_BY = {name: f"tests/{file}::test_{test}" for file, tests in {
    "spec/test_stage_4_loop.py": {
        "text_ends_the_run": "the_happy_path_ends_with_the_answer_of_the_last_reply",
        "second_call_dropped": "two_calls_of_the_same_tool_are_told_apart_by_their_ids",
        "results_swapped": "two_calls_of_the_same_tool_are_told_apart_by_their_ids",
        "unknown_tool_raises": "an_unknown_tool_is_answered_and_the_run_goes_on",
    },
    "spec/test_stage_5_exits.py": {
        "budget_after_the_call": "half_the_full_cost_stops_early_with_no_more_than_half_spent",
        "steps_not_counted": "a_model_that_never_finishes_is_called_max_steps_times",
        "one_step_too_many": "one_step_too_few_stops_the_run",
        "budget_one_token_short": "a_budget_that_just_covers_the_next_prompt_lets_the_call_happen",
        "replies_not_counted": "tokens_are_the_prompt_and_the_reply_of_every_step",
        "stopped_run_has_an_answer": "a_stopped_run_has_no_answer",
    },
    "spec/test_stage_3_registry.py": {
        "tool_error_ends_the_run": "a_tool_that_raises_becomes_an_observation",
        "letters_escaped": "a_result_keeps_letters_that_are_not_ascii",
        "error_without_help": "what_a_tool_expects_is_all_of_its_properties",
    },
    "spec/test_stage_2_validator.py": {
        "unexpected_argument_passes": "an_argument_that_is_not_in_the_schema_is_refused",
        "bool_is_a_number": "a_bool_is_never_a_number",
    },
    "test_registry.py": {
        "ran_but_reported_failed": "a_result_that_is_not_json_says_that_the_tool_did_run",
    },
    "test_loop.py": {
        "model_edits_the_record": "the_list_is_appended_to_and_never_edited_by_what_is_shown",
        "ids_doubled": "ids_are_unique_text_and_results_keep_their_calls",
        "cut_off_call_runs": "a_reply_with_a_stop_reason_keeps_its_text_counts_its_usage_and_runs_no_call",
    },
    "test_exits.py": {
        "stop_leaves_calls_open":
            "a_stop_of_execute_ends_the_run_and_the_refused_call_says_why"
            "_and_the_rest_that_they_were_not_run",
        "ctrl_c_loses_the_run": "ctrl_c_inside_a_tool_is_no_observation",
        "resumed_run_repeats_a_call": "an_open_call_of_an_interrupted_run_is_answered_and_not_run",
        "limits_begin_again": "steps_and_tokens_go_on_counting",
    },
    "test_validator.py": {
        "rule_shown_but_not_checked": "a_keyword_of_an_argument_that_would_not_be_checked_is_refused",
    },
}.items() for name, test in tests.items()}


@pytest.fixture(scope="module", autouse=True)
def no_process_is_left():
    yield
    catching.SANDBOX.close()


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    """Keep what the tests do away from the reader's own file; return the path of the other one."""
    monkeypatch.setattr(charts, "FILE", tmp_path / "my_clinic.json")
    monkeypatch.setattr(charts, "unsaved", False)
    return charts.FILE


def cell(source):
    """Run a cell as a notebook does, after the helpers of the notebook, and return the function `test`."""
    file = f"<cell {next(cell_numbers)}>"
    source = f"{inspect.getsource(run)}\n\n{inspect.getsource(observations)}\n\n{source}"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    names = {"__name__": "__main__"}
    exec(compile(source, file, "exec", dont_inherit=True), names)
    return [value for value in names.values() if inspect.isfunction(value)][-1]


# --- The faults ----------------------------------------------------------------------------------------------


def test_there_are_24_faults_eight_in_each_of_three_levels():
    assert [fault.number for fault in FAULTS] == list(range(1, 25))
    assert [fault.level for fault in FAULTS] == [1] * 8 + [2] * 8 + [3] * 8 and list(LEVELS) == [1, 2, 3]
    assert len({fault.name for fault in FAULTS}) == len({fault.wrong for fault in FAULTS}) == 24


@each_fault
def test_its_old_text_stands_once_in_the_loop_and_the_rest_stays(fault):
    loop, rest = split_text(our_text())
    assert loop.count(fault.old) == 1 and loop + rest == our_text()
    before, after = loop.split(fault.old)
    assert broken_text(fault) == before + fault.new + after + rest != our_text()


def test_the_loop_is_the_first_five_sections():
    titles = [section.title for section in sections_of(our_text())]
    assert titles == ["1 · Messages", "2 · Validator", "3 · Registry", "4 · Loop", "5 · Exits"]
    assert "".join(line + "\n" for s in sections_of(our_text()) for line in s.lines) in split_text(our_text())[0]


def test_an_old_text_that_is_not_there_once_is_told():
    lost = dataclasses.replace(FAULTS[0], old="no such line")
    with pytest.raises(ValueError, match="stands in agentloop.py 0 times"):
        broken_text(lost)


@each_fault
def test_its_test_passes_on_our_loop_and_fails_on_the_broken_one(fault):
    fault.test(load(our_text()))
    with pytest.raises((AssertionError, KeyError)):
        fault.test(load(broken_text(fault)))


def test_no_two_faults_fail_the_same_tests():
    loops = [load(broken_text(fault)) for fault in FAULTS]
    failed = [frozenset(fault.name for fault in FAULTS if fails(fault.test, loop)) for loop in loops]
    assert len(set(failed)) == len(FAULTS)


def fails(test, loop):
    try:
        test(loop)
    except BaseException:
        return True
    return False


@pytest.fixture(scope="module")
def failed_in_the_suites():
    found = failing_each([(broken_text(fault), [CAUGHT_BY[fault.name]]) for fault in FAULTS])
    return {fault.name: failed for fault, failed in zip(FAULTS, found)}


@each_fault
def test_a_test_of_the_suites_fails_on_it(fault, failed_in_the_suites):
    assert failed_in_the_suites[fault.name]


def test_the_tests_that_catch_the_faults_pass_on_our_loop():
    assert failing_each([(our_text(), list(CAUGHT_BY.values()))]) == [set()]


@each_fault
def test_its_words_are_sentences_and_give_no_line_away(fault):
    for words in (fault.rule, fault.wrong, *fault.misses, *fault.misses.values(), fault.title):
        assert words[0].isupper() and words.endswith(".") and "\n" not in words, words
    assert fault.compare[-1] in ".?" and fault.where[-1] not in ".?" and fault.where[0].islower()
    assert "`" not in " ".join([fault.title, fault.given, fault.where, fault.compare, *options_of(fault)])
    assert not any(line.strip() in " ".join(hints_of(fault)) for line in fault.new.splitlines())


# --- The cases -----------------------------------------------------------------------------------------------


@each_fault
def test_there_is_something_to_see_in_its_run(fault):
    broken, ours = scene_of(fault), scene_of_ours(fault)
    assert broken.messages and broken.exit
    assert ours is None or (broken.messages, broken.facts, broken.called) != (ours.messages, ours.facts, ours.called)


@each_fault
def test_the_lines_to_be_found_are_those_that_were_changed(fault):
    lines = broken_text(fault).splitlines()
    changed = [line for line in fault.new.splitlines() if line not in fault.old.splitlines()]
    found = [lines[number - 1] for number in sorted(lines_of(fault))]
    assert len(found) == (len(changed) or 2) and all(new in line for new, line in zip(changed, found))
    assert is_missing(fault) == (not changed) and lines_of(fault) <= statement_lines(fault)
    function, section = place_of(fault)
    assert section in [s.title for s in sections_of(broken_text(fault))]
    assert any(getattr(node, "name", "") == function and node.lineno <= min(lines_of(fault)) <= node.end_lineno
               for node in ast.walk(ast.parse(split_text(broken_text(fault))[0])))


@each_fault
def test_four_diagnoses_are_offered_one_of_them_right_and_always_the_same(fault):
    options = options_of(fault)
    assert len(set(options)) == 4 and fault.wrong in options and options == options_of(fault)


@each_fault
def test_the_others_are_near_misses_of_this_run_and_the_answer_of_no_case(fault):
    assert set(options_of(fault)) - {fault.wrong} == set(fault.misses)
    assert not set(fault.misses) & {other.wrong for other in FAULTS}


@each_fault
def test_what_speaks_against_a_wrong_diagnosis_leaves_the_hints_something_to_say(fault):
    for words in fault.misses.values():
        assert fault.wrong not in words and not any(part in words for part in (fault.rule, fault.where, fault.compare))
        assert set(re.findall(r"\d{3,}", words)) <= set(re.findall(r"\d{3,}", scene_of(fault).facts)), words
    assert len(set(fault.misses.values())) == 3


@each_fault
def test_what_speaks_against_a_wrong_diagnosis_is_true_of_its_run(fault):
    scene, said = scene_of(fault), " ".join(fault.misses.values())
    shown = " ".join([*(message["content"] for message in scene.messages), str(scene.messages), scene.facts])
    assert all(words in shown for words in re.findall("“(.+?)”", said))
    assert set(re.findall(r"exit is (?!not )(\w+)", said)) <= {scene.exit}
    assert scene.exit not in re.findall(r"(?:exit is not|, not) (\w+)", said)
    assert not (re.search("[Nn]o call reached", said) and scene.called)
    assert scene.called or not re.search("(?<!o )call reached|What reached", said)
    assert "no answer" not in said or scene.result.answer is None
    assert "not asked again" not in said or [m["role"] for m in scene.messages].count("assistant") == 1
    assert not (re.search("[Nn]o refusal", said) and any("ERROR" in m["content"] for m in scene.messages))


def test_no_near_miss_is_written_twice():
    assert len({miss for fault in FAULTS for miss in fault.misses}) == 72


@each_fault
def test_a_number_in_its_title_is_a_limit_of_its_run(fault):
    numbers = re.findall(r"\d+", fault.title)
    scene = scene_of(fault)
    assert {int(number) for number in numbers} <= {scene.max_steps, scene.token_budget, 2}


@each_fault
def test_its_hints_say_where_to_look_then_what_to_compare_and_last_the_rule_and_the_function(fault):
    where, compare, rule = hints_of(fault)
    assert where == f"Look at {fault.where}." and compare.startswith(fault.compare)
    assert rule.startswith(f"The rule it breaks: {fault.rule} The line is in {place_of(fault)[0]}, ")
    assert fault.rule not in where + compare and fault.wrong not in where + compare


def test_no_two_cases_have_the_same_second_hint():
    assert len({fault.compare for fault in FAULTS}) == 24


def test_the_second_hint_names_our_exit_or_what_differs_where_both_end_alike():
    second = {fault.name: hints_of(fault)[1] for fault in FAULTS}
    assert second["one_step_too_many"].endswith("On the same run ours ends with step_limit.")
    assert second["replies_not_counted"].endswith("ours ends with done too. What differs: the tokens.")
    assert second["stopped_run_has_an_answer"].endswith("ours ends with step_limit too. What differs: the answer.")
    assert second["rule_shown_but_not_checked"].endswith("Ours refuses this before the run.")
    for fault in FAULTS:
        ours = scene_of_ours(fault)
        assert ("What differs: the " in second[fault.name]) == bool(ours and ours.exit == scene_of(fault).exit)


def test_the_right_diagnosis_stands_in_every_place():
    assert {options_of(fault).index(fault.wrong) for fault in FAULTS} == {0, 1, 2, 3}


def test_a_run_that_took_its_messages_along_is_shown_as_it_was_told():
    lost = next(fault for fault in FAULTS if fault.name == "ctrl_c_loses_the_run")
    assert scene_of(lost).reached == "Calls that reached a tool's function: get_weather(city=\"Pune\")."
    assert scene_of(lost).facts == "The report: there is none. KeyboardInterrupt came out of the loop."
    assert (scene_of(lost).result, scene_of(lost).exit) == (None, "KeyboardInterrupt")
    assert [message["role"] for message in scene_of(lost).messages] == ["system", "user", "assistant"]
    assert [f.name for f in FAULTS if "What was told before the run was lost" in clinic.run_html(f)] == [lost.name]


def test_a_call_that_python_refuses_has_not_reached_the_function():
    refused = next(fault for fault in FAULTS if fault.name == "unexpected_argument_passes")
    assert scene_of(refused).reached == "Calls that reached a tool's function: none."
    assert "'unit'" in scene_of(refused).messages[3]["content"]


def test_a_model_speaks_of_what_it_was_told():
    resumed = next(fault for fault in FAULTS if fault.name == "resumed_run_repeats_a_call")
    assert scene_of(resumed).result.answer == "You have a seat."
    assert scene_of_ours(resumed).result.answer == "Please look whether you have a seat."
    assert scene_of(resumed).reached.endswith("book(), 2 times.")


# --- Judging a test ------------------------------------------------------------------------------------------


@each_fault
def test_our_test_written_in_a_cell_catches_it(fault):
    judgement = judge_test(fault.number, cell(answer_of(fault)))
    assert judgement.caught, judgement.text
    said = f"Case {fault.number}: caught. The test passes on our loop; on the broken one it raised "
    assert judgement.text.startswith(said) and judgement.source.startswith(f"def {fault.name}(agentloop):")


BODIES = {
    "assert True": "the test passes on both loops, so the broken one gets away with it.",
    "assert run(agentloop, agentloop.weather_script()).status == 'done'": "the test passes on both loops",
    "assert False, 'no'": "the test fails on our loop, so it does not tell the two apart: it raised AssertionError: no",
    "agentloop.nothing": "the test fails on our loop",
    "import os; os._exit(1)": "on our loop the test ended the process, or used up its memory.",
    "RUNS.append(1); assert len(RUNS) < 2": "the test passes on both loops, so the broken one gets away with it.",
    "yield": "calling this test runs none of its lines",
    "assert ...": "not yet. Write the test in the place of the three dots",
    "print('x' * 99999)": "the test fails on our loop, so it does not tell the two apart: it printed more than",
}


@pytest.mark.parametrize("body", BODIES)
def test_a_test_that_does_not_tell_the_loops_apart_is_told_why(body):
    judgement = judge_test(1, cell(f"RUNS = []\n\n\ndef test(agentloop):\n    {body}"))
    assert not judgement.caught and BODIES[body] in judgement.text
    assert not judgement.text.endswith("?.")


def test_a_test_that_never_ends_is_stopped_and_told_so(monkeypatch):
    monkeypatch.setattr(sandbox, "SECONDS", 0.5)
    text = judge_test(1, cell("def test(agentloop):\n    while True: pass")).text
    assert "on our loop the test was still running after 0.5 seconds and was stopped; does its script end?" in text


def test_a_test_may_use_open_which_a_notebook_wraps():
    wrapped = ("import functools, io, os\n"
               "open = functools.wraps(io.open)(lambda *given, **named: io.open(*given, **named))")
    reads = "    with open(os.devnull, encoding='utf-8') as file:\n        assert file.read() == ''"
    head, *rest = answer_of(FAULTS[0]).split("\n")
    assert judge_test(1, cell("\n".join([wrapped, head, reads, *rest]))).caught


@pytest.mark.parametrize("test", [None, 3, "test", run(agentloop, agentloop.weather_script()), ...])
def test_what_is_no_function_is_not_tried(test):
    assert judge_test(1, test).text.startswith("Case 1: not yet. Write a function test(agentloop)")


def test_a_test_cannot_change_how_the_next_one_is_judged():
    lines = ["agentloop.run_agent = None", "import looplab.faults", "looplab.faults.FAULTS.clear()"]
    judge_test(1, cell("def test(agentloop):\n    " + "\n    ".join(lines)))
    assert judge_test(1, cell(answer_of(FAULTS[0]))).caught


def test_a_test_that_ends_on_ours_and_never_on_the_broken_loop_has_caught_it(monkeypatch):
    monkeypatch.setattr(sandbox, "SECONDS", 1.0)
    body = """def test(agentloop):
    def never(messages, specs):
        return agentloop.asks(agentloop.call("", "get_weather", city="Pune"))

    assert run(agentloop, never, max_steps=5, token_budget=10**12).status == "step_limit\""""
    judgement = judge_test(5, cell(body))
    assert judgement.caught and "on the broken one it never ended, and was stopped after 1 seconds." in judgement.text


ELSEWHERE = "It runs the agentloop that is installed. Take all that it uses from its argument, the loop under test."
PASS_ON_BOTH = {
    "import agentloop\n    assert run(agentloop, agentloop.weather_script()).steps == 3": ELSEWHERE,
    "assert run_agent(WEATHER_TASK, ScriptedModel(weather_script()), weather_world()[0]).steps == 3":
        "It never uses its argument, which is the loop under test.",
    "return run(agentloop, agentloop.weather_script()).steps == 99":
        "It returned False; a test fails by raising, as assert does.",
    "try:\n        agentloop.ToolRegistry().register('look', 'Look.', {'type': 'array'}, print)\n"
    "    except agentloop.SchemaError:\n        return":
        "First of all, a registration was refused: SchemaError: tool 'look'",
    "registry = agentloop.ToolRegistry()\n"
    "    registry.register('look', 'Look.', {'type': 'object'}, lambda: seen)\n"
    "    registry.execute('look', {})": "First of all, the function of look raised an exception: NameError",
}


@pytest.mark.parametrize("body", PASS_ON_BOTH)
def test_a_test_that_passes_on_both_loops_is_told_what_may_be_amiss(body):
    text = judge_test(1, cell(f"def test(agentloop):\n    {body}")).text
    assert f"gets away with it. {PASS_ON_BOTH[body]}" in text


def test_what_fails_first_is_told_once():
    body = "agentloop.ToolRegistry().register('look', 'Look.', {'type': 'array'}, print)"
    assert judge_test(1, cell(f"def test(agentloop):\n    {body}")).text.count("SchemaError: tool 'look'") == 1


def test_a_test_that_fails_on_ours_for_a_missing_name_in_a_tool_is_told_the_name_first():
    body = """def test(agentloop):
    registry = agentloop.ToolRegistry()
    registry.register("look", "Look.", {"type": "object"}, lambda: seen)
    assert registry.execute("look", {}) == "1\""""
    assert "First of all, the function of look raised an exception: NameError" in judge_test(1, cell(body)).text


@pytest.mark.parametrize("line", ["class Lost(Exception): ...", "def nothing(): ..."])
def test_the_dots_of_an_empty_class_are_no_place_to_fill_in(line):
    head, *rest = answer_of(FAULTS[0]).split("\n")
    assert judge_test(1, cell("\n".join([head, f"    {line}", *rest]))).caught
    assert "not yet. Write the test" in judge_test(1, cell(f"def test(agentloop):\n    {line}\n    ...")).text


def test_what_a_test_prints_is_shown_for_each_loop_and_cut():
    body = """def test(agentloop):
    answer = run(agentloop, agentloop.weather_script()).answer
    print(answer, *range(20), sep="\\n")
    assert answer == "It is 86.0 F in Pune.\""""
    printed = judge_test(1, cell(body)).printed
    ours, broken = "\n".join(map(str, range(7))), "… and 13 more lines"
    assert printed == (f"It printed on our loop:\nIt is 86.0 F in Pune.\n{ours}\n{broken}\n"
                       f"It printed on the broken one:\nI will look up Pune first.\n{ours}\n{broken}")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_what_a_test_starts_ends_with_it(tmp_path):
    forked = judge_test(1, cell("import os\n\n\ndef test(agentloop):\n    os.fork()"))
    assert "the test passes on both loops" in forked.text
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    body = f"""import os, time


def test(agentloop):
    if not os.fork():
        with open({str(pipe)!r}, "w", encoding="utf-8") as file:
            time.sleep(20)
            file.write("still here")"""
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8") as file:
        judge_test(1, cell(body))
        os.set_blocking(file.fileno(), True)
        assert file.read() == ""  # which comes when nobody holds the other end any more


# --- The bench -----------------------------------------------------------------------------------------------


def test_every_case_can_be_shown_and_opens_at_the_same_section():
    bench = bug_clinic(1)
    for fault in FAULTS:
        bench.show(fault.number)
        shown = bench.error_box.value, bench.fault, bench.level.value, bench.case.value
        assert shown == ("", fault, fault.level, fault.number)
        assert fault.title in bench._areas["say"].value and bench.options.value is None
        assert 'alt="' in bench._areas["plot"].value
        assert bench.section.value == "5 · Exits" and "ll-at" not in bench._areas["listing"].value
    assert bench.done == {"diagnosed": set(), "located": set(), "caught": set()}


def test_picking_a_level_shows_its_first_case_and_picking_a_case_shows_it():
    bench = bug_clinic(2)
    bench.level.value = 3
    assert bench.fault.number == 17 and bench.case.options == tuple(range(17, 25))
    bench.case.value = 20
    assert bench.fault.number == 20


def wrong_one(fault):
    """Return a diagnosis that is not it."""
    return next(iter(fault.misses))


def choose(bench, diagnosis):
    """Choose a diagnosis, and say that it is this one."""
    bench.options.value = diagnosis
    bench.buttons["diagnose"].click()


def test_a_diagnosis_counts_when_it_is_named_and_not_when_the_arrow_keys_pass_it():
    bench = bug_clinic(4)
    bench.buttons["diagnose"].click()
    assert "Choose one of the four first." in bench._areas["diagnosis"].value
    bench.options.value = wrong_one(bench.fault)
    bench.options.value = bench.fault.wrong
    assert not bench.done["diagnosed"] and bench.chart.wrong == 0
    bench.buttons["diagnose"].click()
    assert bench.chart.diagnosed == "at once"


def test_a_diagnosis_is_right_or_is_looked_at_again():
    bench = bug_clinic(4)
    choose(bench, "The budget is not checked at all, and the step limit stops the run.")
    said = "That is not what happened here. The exit is token_budget, after 2 steps of 8."
    assert said in bench._areas["diagnosis"].value and not bench.done["diagnosed"]
    choose(bench, bench.fault.wrong)
    said = "Right. The rule it breaks: The budget is checked before the call"
    assert said in bench._areas["diagnosis"].value and bench.done["diagnosed"] == {4}
    choose(bench, wrong_one(bench.fault))
    assert "what you found before still counts" in bench._areas["diagnosis"].value and bench.done["diagnosed"] == {4}
    assert bench.chart.diagnosed == "after 1 wrong try"


def test_own_words_are_compared_with_ours():
    bench = bug_clinic(4)
    bench.buttons["compare"].click()
    assert "Write a sentence first." in bench._areas["diagnosis"].value
    bench.words.value = "It checks too late."
    bench.buttons["compare"].click()
    assert "the next prompt is left out" in bench._areas["diagnosis"].value and not bench.done["diagnosed"]
    bench.buttons["same"].click()
    assert bench.done["diagnosed"] == {4} and bench.chart.diagnosed == "by your own judgement"
    assert bench.buttons["same"].disabled and bench.buttons["other"].disabled


def test_own_words_that_say_something_else_do_not_count_and_ours_was_shown():
    bench = bug_clinic(4)
    assert bench.buttons["same"].disabled and bench.buttons["other"].disabled
    bench.words.value = "bananas"
    bench.buttons["compare"].click()
    bench.buttons["other"].click()
    assert "Then it does not count." in bench._areas["diagnosis"].value and not bench.done["diagnosed"]
    choose(bench, bench.fault.wrong)
    assert bench.chart.diagnosed == "after ours was shown, after 1 wrong try"


def test_what_was_done_at_a_case_is_there_again_in_a_new_bench_and_in_another_kernel(kept):
    bench = bug_clinic(4)
    bench.buttons["hint"].click()
    choose(bench, wrong_one(bench.fault))
    choose(bench, bench.fault.wrong)
    bench.line.value = min(lines_of(bench.fault))
    bench.buttons["locate"].click()
    bench.judge(cell(answer_of(bench.fault)))
    bench.words.value = "It looks at the budget"
    bench.show(5)
    assert bench.options.value is None and bench.words.value == "" and "ll-now" not in bench._areas["listing"].value
    bench.buttons["hint"].click()
    charts.CHARTS.clear()
    again = bug_clinic(4)
    assert again.done == bench.done == {step: {4} for step in charts.STEPS}
    assert (again.options.value, again.words.value) == (again.fault.wrong, "It looks at the budget")
    assert again.line.value == min(lines_of(again.fault)) and again._areas["listing"].value.count("ll-now") == 1
    assert "Hint 1 of 3." in again._areas["hints"].value and "caught." in again._areas["verdict"].value
    assert "Your test</p>" in again._areas["verdict"].value and "Our test</p>" not in again._areas["verdict"].value
    again.buttons["answer"].click()
    assert "Your test</p>" in again._areas["verdict"].value and "Our test</p>" in again._areas["verdict"].value
    kept.unlink()
    assert bug_clinic(4).done == {step: set() for step in charts.STEPS}


def test_of_other_cases_what_another_kernel_has_kept_is_not_written_over(kept):
    bench = bug_clinic(4)
    bench.buttons["hint"].click()
    cases = {"2": {"hints": 2}, "4": {"hints": 3}}
    kept.write_text(json.dumps({"version": 1, "cases": cases}), encoding="utf-8")
    bench.buttons["hint"].click()
    assert {number: chart["hints"] for number, chart in json.loads(kept.read_text(encoding="utf-8"))["cases"].items()
            if number in cases} == {"2": 2, "4": 2}
    bench.show(2)
    assert "Hint 2 of 3." in bench._areas["hints"].value


def test_what_is_chosen_and_half_written_is_there_again_before_any_button_is_pressed():
    bench = bug_clinic(4)
    bench.options.value, bench.words.value, bench.line.value = wrong_one(bench.fault), "It looks", 480
    again = bug_clinic(4)
    assert (again.options.value, again.words.value, again.line.value) == (wrong_one(bench.fault), "It looks", 480)
    assert again.done == {step: set() for step in charts.STEPS}


def test_the_table_of_a_level_says_how_each_case_was_done():
    bench = bug_clinic(4)
    bench.buttons["hint"].click()
    choose(bench, bench.fault.wrong)
    bench.line.value = min(lines_of(bench.fault)) + 5
    bench.buttons["locate"].click()
    bench.line.value = min(lines_of(bench.fault))
    bench.buttons["locate"].click()
    rows = {row[0]: row[2:] for row in clinic.level_rows(1, charts.CHARTS)}
    assert list(rows) == ["case", *"12345678"]
    assert rows["4"] == ["with 1 hint", "after 1 wrong try, with 1 hint", "–"] and rows["5"] == ["–"] * 3
    assert "<td>after 1 wrong try, with 1 hint</td>" in bench._areas["table"].value


def test_a_test_that_catches_it_after_ours_was_shown_says_so():
    bench = bug_clinic(1)
    bench.judge(cell("def test(agentloop):\n    assert True"))
    bench.buttons["answer"].click()
    bench.judge(cell(answer_of(bench.fault)))
    assert bench.chart.caught == "after ours was shown, after 1 wrong try"


@pytest.mark.parametrize("text", ["", "[]", '{"cases": 3}', '{"cases": {"4": {"hints": "many"}}}', "[" * 99999])
def test_a_file_that_cannot_be_read_counts_as_none(text, kept):
    kept.write_text(text, encoding="utf-8")
    bench = bug_clinic(4)
    assert bench.chart == charts.Chart() and bench.words.value == ""


def test_where_the_file_cannot_be_written_the_kernel_keeps_it(monkeypatch, tmp_path):
    monkeypatch.setattr(charts, "FILE", tmp_path / "no such folder" / "my_clinic.json")
    bench = bug_clinic(4)
    choose(bench, bench.fault.wrong)
    assert "lasts as long as the kernel" in bench._areas["table"].value
    assert bug_clinic(4).done["diagnosed"] == {4}


def test_what_was_done_is_no_part_of_what_the_notebook_stores():
    before = bug_clinic(4)._repr_mimebundle_()["text/plain"]
    bench = bug_clinic(4)
    choose(bench, bench.fault.wrong)
    assert bench._repr_mimebundle_()["text/plain"] == before


def test_what_the_test_may_need_is_shown_once_the_fault_is_known():
    bench = bug_clinic(23)
    assert not bench._areas["needs"].value and "truncated" not in bench._areas["say"].value
    choose(bench, bench.fault.wrong)
    assert "stop_reason=&quot;truncated&quot;" in bench._areas["needs"].value
    bench.show(21)
    assert "continue_agent goes on with it" in bench._areas["given"].value


def test_a_line_is_as_it_should_be_or_the_one():
    bench = bug_clinic(4)
    bench.line.value = min(lines_of(bench.fault)) + 3
    bench.buttons["locate"].click()
    assert "is as it should be" in bench._areas["found"].value and "ll-now" not in bench._areas["listing"].value
    bench.line.value = min(lines_of(bench.fault))
    bench.buttons["locate"].click()
    assert "That is it" in bench._areas["found"].value and bench._areas["listing"].value.count("ll-now") == 1
    assert bench.done["located"] == {4}


@pytest.mark.parametrize("number", [-5, 0, 99999])
def test_a_line_that_the_file_has_not_is_told(number):
    bench = bug_clinic(4)
    bench.line.value = number
    before = bench._areas["listing"].value
    bench.buttons["locate"].click()
    assert "The file has no such line; its lines are 1 to " in bench._areas["found"].value
    assert bench._areas["listing"].value == before and not bench.done["located"]


def test_a_line_without_code_is_no_try():
    bench = bug_clinic(19)
    for line in (bench.line.value, bench.line.value + 1):
        bench.line.value = line
        bench.buttons["locate"].click()
        assert f"Line {line} holds no code: take one that does." in bench._areas["found"].value
    bench.line.value = min(lines_of(bench.fault))
    bench.buttons["locate"].click()
    assert bench.chart.located == "at once"


def test_a_line_of_another_section_is_shown_there_and_one_outside_of_the_loop_is_told():
    bench = bug_clinic(9)
    line = bench.line.value = min(lines_of(bench.fault))
    bench.buttons["locate"].click()
    assert bench.section.value == "2 · Validator" and bench._areas["listing"].value.count("ll-at") == 1
    assert f'<li class="ll-now ll-at" aria-current="true"><span>{line}</span>' in bench._areas["listing"].value
    bench.line.value = broken_text(bench.fault).count("\n")
    bench.buttons["locate"].click()
    assert "is as it should be. The fault is in one of the five sections" in bench._areas["found"].value


@pytest.mark.parametrize("number, line", [(6, "if not isinstance(name, str)"), (13, 'return run.end("step_limit")')])
def test_each_line_of_the_statement_with_the_fault_is_taken(number, line):
    bench = bug_clinic(number)
    bench.line.value = next(n for n in statement_lines(bench.fault)
                            if line in broken_text(bench.fault).split("\n")[n - 1])
    bench.buttons["locate"].click()
    assert "That is it" in bench._areas["found"].value and bench.done["located"] == {number}


@pytest.mark.parametrize("number", [19, 21])
def test_where_lines_are_missing_this_is_told_before_and_after(number):
    bench = bug_clinic(number)
    assert "may be a line that is missing" in bench._areas["found"].value
    bench.line.value = max(lines_of(bench.fault))
    bench.buttons["locate"].click()
    assert "That is it: lines are missing between " in bench._areas["found"].value


@pytest.mark.parametrize("number", [10, 17])
def test_a_sound_line_that_could_do_it_by_the_run_is_told_so(number):
    bench = bug_clinic(number)
    text = broken_text(bench.fault)
    bench.line.value = text[: text.index(bench.fault.alike[0])].count("\n") + 1
    bench.buttons["locate"].click()
    assert "could do it, by what the run shows; but it is as it should be." in bench._areas["found"].value
    assert not bench.done["located"]


@each_fault
def test_the_lines_that_could_do_it_stand_in_the_loop(fault):
    lines = [line.strip() for line in split_text(broken_text(fault))[0].split("\n")]
    assert all(any(line.startswith(start) for line in lines) for start in fault.alike)


def test_the_line_beside_the_fault_is_close():
    bench = bug_clinic(6)
    bench.line.value = max(statement_lines(bench.fault)) + 1
    bench.buttons["locate"].click()
    assert "is as it should be. You are close." in bench._areas["found"].value and not bench.done["located"]


def test_there_are_three_hints_and_our_test_is_shown_after_the_first_try(capsys):
    bench = bug_clinic(1)
    for number in (1, 2, 3):
        assert not bench.buttons["hint"].disabled
        bench.buttons["hint"].click()
        assert bench._areas["hints"].value.count("Hint ") == number
    assert bench.buttons["hint"].disabled and bench.buttons["answer"].disabled
    bench.judge(cell("def test(agentloop):\n    assert ..."))
    assert bench.buttons["answer"].disabled
    bench.judge(cell("def test(agentloop):\n    assert True"))
    bench.buttons["answer"].click()
    assert "def text_ends_the_run(agentloop):" in bench._areas["verdict"].value and not bench.done["caught"]
    bench.judge(cell(answer_of(bench.fault)))
    assert bench.done["caught"] == {1} and capsys.readouterr().out.count("Case 1: ") == 3


def test_without_a_browser_the_bench_says_the_same_in_words():
    text = bug_clinic(2)._repr_mimebundle_()["text/plain"]
    for part in ("Case 2 of 24", "tool [Pune]", "423 of 4,000 tokens", "Exit: done.", *options_of(FAULTS[1])):
        assert part in text
    assert 'read_thermometer: Read it. {"type": "object"' in bug_clinic(24)._repr_mimebundle_()["text/plain"]


@pytest.mark.parametrize("number", [0, 25, None, "one", 2.0, True])
def test_a_case_that_there_is_not_is_one_sentence(number):
    with pytest.raises(ValueError, match=f"the cases are 1 to 24, and this is {number!r}$"):
        bug_clinic(number)
    said = f"No test was tried: the cases are 1 to 24, and this is {number!r}."
    assert judge_test(number, lambda agentloop: None).text == said


def test_all_cases_of_a_level_can_be_read_with_their_answers_folded():
    for level in LEVELS:
        shown = all_cases(level)
        assert shown.html.count("<details>") == 8
        assert all(f"The rule it breaks: {fault.rule}" in shown.text for fault in FAULTS if fault.level == level)
    with pytest.raises(ValueError, match="the levels are 1, 2, 3"):
        all_cases(4)


def test_the_notebook_gives_the_helpers_that_our_tests_use():
    cells = {c["id"]: "".join(c["source"]) for c in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]}
    assert cells["helpers"] == f"{inspect.getsource(run)}\n\n{inspect.getsource(observations)}".rstrip()
