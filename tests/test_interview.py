"""A mock interview: the clock, the parts, what is said to a file, the changes with our answers, and the result page."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from looplab import all_questions, interview, interviewer_sheet, mock_interview
from looplab.follow_ups import FOLLOW_UPS
from looplab.interview import (Clock, Interview, Requirement, opening, practice, remarks, report, result_blocks,
                               save_page, try_change)
from looplab.interview_brief import ALOUD_MINUTES, LENGTHS, MARKS, PARTS, RUBRIC
from looplab.interview_questions import QUESTIONS
from looplab.judging import Verdict
from looplab.view import twin_text

ROOT = Path(__file__).parent.parent
PLAIN = (ROOT / "tests/fixtures/plain.py").read_text(encoding="utf-8")
CELLS = json.loads((ROOT / "notebooks/17_mock_interview.ipynb").read_text(encoding="utf-8"))["cells"]


@pytest.fixture(scope="module", autouse=True)
def no_process_is_left():
    yield
    interview.SANDBOX.close()


def begin(folder, minutes=45, seed=1, released=0):
    return Interview(minutes, seed, folder, released)


# --- The clock -----------------------------------------------------------------------------------------------


class Watch:
    """A clock on the wall that a test sets."""

    seconds = 1000.0

    def __call__(self):
        return self.seconds


def test_the_clock_counts_down_while_it_runs_and_not_while_it_is_paused():
    now = Watch()
    clock = Clock(45, now)
    texts = [clock.text]
    for step in (clock.start, clock.start, clock.pause, clock.pause, clock.start):
        step()
        now.seconds += 61
        texts.append(clock.text)
    assert texts == ["45:00", "43:59", "42:58", "42:58", "42:58", "41:57"]


def test_the_clock_stops_at_nothing_left_and_still_knows_what_was_used():
    now = Watch()
    clock = Clock(25, now)
    clock.start()
    now.seconds += 60 * 26
    assert (clock.text, clock.used) == ("00:00", 60 * 26)


# --- The parts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minutes", LENGTHS)
def test_the_minutes_of_the_parts_make_the_length(minutes):
    place = LENGTHS.index(minutes)
    assert sum(part.minutes[place] for part in PARTS) + ALOUD_MINUTES[place] == minutes
    assert [part.stage for part in begin(None, minutes).parts][:5] == [1, 2, 3, 4, 5]


def test_only_the_short_interview_asks_for_no_change():
    assert [len(begin(None, minutes).parts) for minutes in LENGTHS] == [5, 6, 6]


@pytest.mark.parametrize("minutes", [0, 30, None, "45"])
def test_another_length_is_a_value_error(minutes):
    with pytest.raises(ValueError, match="an interview takes 25, 45 or 60 minutes"):
        mock_interview(minutes)


@pytest.mark.parametrize("part", [part for part in PARTS if part.stage], ids=lambda part: part.name)
def test_a_part_names_all_that_its_stage_requires(part):
    stage = next((ROOT / "tests/spec").glob(f"test_stage_{part.stage}_*.py")).read_text(encoding="utf-8")
    names = re.findall(r'"(\w+)"', re.search(r"mine\.require\((.*?)\)", stage)[1])
    asked = " ".join(twin_text(p.asks) for p in PARTS[: part.stage])
    assert names and [name for name in names if name not in asked] == []


def test_the_parts_tell_the_exact_texts_that_the_stages_compare():
    asked = " ".join(twin_text(part.asks) for part in PARTS)
    for text in ("arguments must be a JSON object", "missing required argument 'city'", "unexpected argument 'unit'",
                 "argument 'celsius' must be of type number", "unsupported type 'array'", "script ran out",
                 "ERROR: unknown tool 'get_forecast'. Available tools: ['c_to_f', 'get_weather']",
                 "ERROR: get_weather failed: KeyError: 'Atlantis'", "Use the tools to answer the user.",
                 "max(1, len(json.dumps(obj, ensure_ascii=False)) // 4)", "done", "step_limit", "token_budget"):
        assert text in asked


def test_the_seed_draws_the_change_and_the_order_of_the_questions():
    assert {begin(None, seed=seed).follow_up.name for seed in range(40)} == set(FOLLOW_UPS)
    first, again, other = (begin(None, seed=seed).questions for seed in (1, 1, 2))
    assert first == again != other and sorted(first) == list(range(len(QUESTIONS)))


# --- The file ------------------------------------------------------------------------------------------------


def test_the_blank_file_is_made_once_and_never_over_another(tmp_path):
    state = begin(tmp_path)
    assert state.make_file() and state.file.read_text(encoding="utf-8") == ""
    state.file.write_text("x = 1", encoding="utf-8")
    assert not state.make_file() and state.file.read_text(encoding="utf-8") == "x = 1"


def test_without_a_file_the_interviewer_says_so(tmp_path):
    state = begin(tmp_path, released=1)
    assert opening(state) == "I have not seen your file yet."
    state.run_checks()
    assert report(state) == ["There is no file my_interview.py yet: press Make my_interview.py."]
    state.make_file()
    assert opening(state) == "I have not seen your file yet."


def test_a_blank_file_is_told_where_to_begin(tmp_path):
    state = begin(tmp_path, released=2)
    state.make_file()
    state.run_checks()
    assert opening(state).startswith("Let us begin together")
    assert [remark.words.partition(".")[0] for remark in remarks(state)] == ["I see nothing of this yet"] * 2
    assert "has no class or function named ToolCall" in twin_text(report(state))


@pytest.mark.parametrize(("text", "why"), [
    ("x = 1\nx = (\n", "SyntaxError, line 2"), ("\n\nimport no_such_module", "ModuleNotFoundError, line 3"),
    ("import sys\nsys.exit()", "it called sys.exit, line 2"),
])
def test_a_file_that_does_not_load_is_told_that_alone_and_no_notebook_is_named(tmp_path, text, why):
    state = begin(tmp_path, released=6)
    state.file.write_text(text, encoding="utf-8")
    state.ticks["Loop"] = "weak"
    state.run_checks()
    assert report(state) == [f"Your file does not load: {why}."] and state.change == []
    assert practice(state) == [] and result_blocks(state)[-1] == "Mend the file, and run the checks again."


def test_a_file_that_ends_the_suite_is_to_be_mended_too(tmp_path):
    state = begin(tmp_path, released=6)
    state.file.write_text("import os\nos._exit(0)", encoding="utf-8")
    state.run_checks()
    assert report(state) == ["my_interview.py could not be judged: it ended the process of the suite."]
    assert result_blocks(state)[-1] == "Mend the file, and run the checks again."


def test_what_the_interviewer_says_depends_on_what_does_not_hold(tmp_path):
    state = begin(tmp_path, released=5)
    for old, new, heard in (
            ("count_tokens(messages[-1])", "1", "Add up one step aloud: its prompt, then its reply message."),
            ("max_steps + 1)", "max_steps + 2)", "Count the model calls aloud, up to the one that is not made.")):
        assert PLAIN.count(old) == 1
        state.file.write_text(PLAIN.replace(old, new), encoding="utf-8")
        state.run_checks()
        assert remarks(state)[-1].words.endswith(heard)


def requirements_of(part):
    """Return the sentences that a part is judged by."""
    stage = next((ROOT / "tests/spec").glob(f"test_stage_{part.stage}_*.py")).read_text(encoding="utf-8")
    return [name.replace("_", " ") for name in re.findall(r"^def test_(\w+)", stage, re.MULTILINE)]


def test_each_of_the_interviewers_words_is_for_a_requirement_that_there_is():
    for part in PARTS[:5]:
        assert [key for key in part.words if not any(key in one for one in requirements_of(part))] == []
    for drawn in FOLLOW_UPS.values():
        sentences = [str(check.__doc__).lower() for check in drawn.checks]
        assert drawn.words and [key for key in drawn.words if not any(key in one for one in sentences)] == []


@pytest.mark.parametrize("name", FOLLOW_UPS)
def test_a_change_is_asked_for_with_every_error_and_status_that_its_checks_compare(name):
    asked = f"{FOLLOW_UPS[name].asks} {FOLLOW_UPS[name].code}"
    checked = " ".join(str(check.__doc__) for check in FOLLOW_UPS[name].checks)
    exact = re.findall(r"\b(?:[A-Z]\w+Error|ERROR|[a-z]+_[a-z_]+)\b", checked)
    assert [word for word in exact if word not in asked] == []


def test_a_part_that_holds_is_met_with_a_question_and_one_that_does_not_with_its_first_failure(tmp_path):
    state = begin(tmp_path, released=5)
    late = PLAIN.replace("if spent + prompt > token_budget", "if spent > token_budget")
    state.file.write_text(late, encoding="utf-8")
    state.run_checks()
    said = {remark.part.name: remark for remark in remarks(state)}
    assert said["loop"].held == said["loop"].of and "A reply has three calls" in said["loop"].words
    assert 0 < said["exits"].held < said["exits"].of
    assert said["exits"].words.startswith("This one does not hold yet: “")
    assert opening(state) == "You are on the way. Let me say what I see, part by part."
    assert "expected:" in twin_text(report(state))


def test_only_the_released_parts_are_judged_and_all_before_the_first_is_released(tmp_path):
    state = begin(tmp_path, 25)
    state.file.write_text(PLAIN, encoding="utf-8")
    for released, parts in ((0, 5), (2, 2)):
        state.released = released
        state.run_checks()
        assert [remark.held == remark.of > 0 for remark in remarks(state)] == [True] * parts
        assert opening(state) == "That is what I asked for. Let us talk about it."


# --- The changes ---------------------------------------------------------------------------------------------


def apply(diff, text):
    """Apply a diff without line numbers: each of its pieces stands in the text once."""
    for piece in diff.split("\n@@\n"):
        lines = piece.split("\n")
        old = "\n".join(line[1:] for line in lines if not line.startswith("+"))
        assert text.count(old) == 1, old
        text = text.replace(old, "\n".join(line[1:] for line in lines if not line.startswith("-")))
    return text


def answers():
    """Return the diffs of the notebook by the name of the change."""
    found = {}
    for cell in CELLS:
        if match := re.search(r"<summary>(.+?):.*?```diff\n(.*?)\n```", "".join(cell["source"]), re.DOTALL):
            found[match[1].lower()] = match[2]
    return found


def test_the_notebook_answers_every_change():
    assert sorted(answers()) == sorted(FOLLOW_UPS)


def change(tmp_path, name, text):
    file = tmp_path / "my_interview.py"
    file.write_text(text, encoding="utf-8")
    return try_change(file, FOLLOW_UPS[name])


@pytest.mark.parametrize("name", FOLLOW_UPS)
def test_our_answer_makes_the_change_and_everything_else_still_holds(tmp_path, name):
    text = apply(answers()[name], PLAIN)
    assert [r.sentence for r in change(tmp_path, name, text) if not r.holds] == []
    state = begin(tmp_path, 25, released=5)
    state.run_checks()
    assert state.verdict.holds


@pytest.mark.parametrize("name", FOLLOW_UPS)
def test_a_file_without_the_change_is_told_so(tmp_path, name):
    assert not all(requirement.holds for requirement in change(tmp_path, name, PLAIN))


WRONG = {
    "approval: the risky call is run, then the run stops": (
        "approval", "            if call.name in risky:",
        "            content = registry.execute(call.name, call.args)\n            if call.name in risky:",
        "the refund ran"),
    "approval: calls before it are lost": (
        "approval", "if call.name in risky:", "if any(c.name in risky for c in reply.tool_calls):",
        "observations of []"),
    "timeout: the function is waited for": (
        "timeout", "thread.join(seconds)", "thread.join()", "still running after 3 seconds"),
    "timeout: a text in place of an exception": (
        "timeout", "raise TimeoutError(", "return str(", "no TimeoutError came"),
    "timeout: an exception is swallowed": (
        "timeout", "            raise error\n", "            return None\n", "did not pass through"),
    "repeats: the last call is run": ("repeated calls", "if not stopped:", "if True:", "repeated_call, ran 3 times"),
    "repeats: results are not compared": (
        "repeated calls", "made.append((asked, content))", 'made.append((asked, ""))', "it ended with repeated_call"),
    "repeats: anywhere and not in a row": (
        "repeated calls", "last = made[1 - most:]\n    return all(one == last[0] and one[0] == asked for one in last)",
        "return sum(one[0] == asked for one in made) >= most - 1", "it ended with repeated_call"),
    "repeats: on from the start": ("repeated calls", "max_repeats=None", "max_repeats=3", "repeated_call, ran 2 times"),
    "parallel: one after the other": (
        "parallel calls", "pool.map(", "map(", "the first was over before the second began"),
    "resume: counters begin again": ("resume", "result.tokens\n", "0\n", "steps and tokens are"),
    "resume: the old result is edited": (
        "resume", "copy.deepcopy(result.messages)", "result.messages", "resume changed the result"),
    "resume: a run that is done goes on": ("resume", 'if result.status == "done":', "if False:", "no ValueError came"),
    "cutting: what is said comes on top": ("cutting results", "text[:most - len(note)]", "text[:most]", "it has 2"),
    "cutting: nothing is said": ("cutting results", "+ note", "", "it ends with"),
    "cutting: always": ("cutting results", "max_result_chars=None", "max_result_chars=200", "became 200"),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_answer_is_told_what_came_back(tmp_path, why):
    name, old, new, told = WRONG[why]
    text = apply(answers()[name], PLAIN)
    assert text.count(old) == 1
    broken = [r for r in change(tmp_path, name, text.replace(old, new)) if not r.holds]
    assert broken and told in " ".join(requirement.came_back for requirement in broken)


@pytest.mark.parametrize(("text", "told"), [
    ("", "the file has no "), ("x = (", "it raised SyntaxError"), ("while True: pass", "still running after 3 seconds"),
    ("import os; os._exit(0)", "the process ended"), ("import sys; sys.exit()", "it raised SystemExit"),
])
def test_whatever_is_in_the_file_the_change_is_judged(tmp_path, text, told):
    found = change(tmp_path, "resume", text)
    assert len(found) == 4 and not any(requirement.holds for requirement in found) and told in found[0].came_back


def test_the_change_is_part_of_the_report(tmp_path):
    state = begin(tmp_path, seed=next(seed for seed in range(40) if begin(None, seed=seed).follow_up.name == "timeout"))
    state.released = 6
    state.file.write_text(PLAIN, encoding="utf-8")
    state.run_checks()
    text = twin_text(report(state))
    assert re.search(r"A change +0 of 4 +I see nothing of this yet", text) and "the file has no with_timeout" in text


# --- The result ----------------------------------------------------------------------------------------------


def judged(tmp_path, *failing):
    """Return an interview of five parts, in which one requirement of each stage given does not hold."""
    state = begin(tmp_path, 25, released=5)
    outcomes = {stage: "does not hold" if stage in failing else "holds" for stage in range(1, 6)}
    rows = [[f"{stage} x", outcome, f"Sentence {stage}"] for stage, outcome in outcomes.items()]
    state.verdict = Verdict("said", rows, ["Sentence", "why"] if failing else [])
    return state


@pytest.mark.parametrize(("failing", "notebooks"), [
    ((1,), ["01_messages.ipynb"]), ((2, 5), ["02_validator.ipynb", "05_exits.ipynb"]), ((3,), ["03_registry.ipynb"]),
    ((4,), ["04_loop.ipynb"]), ((), []),
])
def test_what_failed_says_which_notebook_to_practise_with(tmp_path, failing, notebooks):
    assert [name for name, _ in practice(judged(tmp_path, *failing))] == notebooks


def test_nothing_was_weak_is_said_only_when_all_marks_are_ticked(tmp_path):
    state = judged(tmp_path)
    for criterion in RUBRIC:
        open_marks = [c.name for c in RUBRIC if c.name not in state.ticks and c.name != "A change"]
        if open_marks:
            assert practice(state) == []
            assert result_blocks(state)[-1] == f"Still open: {len(open_marks)} of 6 marks of the rubric."
        state.ticks[criterion.name] = "fine"
    assert practice(state) == [("18_bug_clinic.ipynb", "nothing was weak: find the bugs of others")]
    assert "Still open" not in twin_text(result_blocks(state))


def test_the_questions_are_open_where_there_is_time_for_them(tmp_path):
    state = judged(tmp_path)
    state.ticks = {criterion.name: "strong" for criterion in RUBRIC}
    longer = Interview(45, 1, tmp_path, 6, Verdict("said", state.verdict.rows), [Requirement("One.", True, "")])
    longer.ticks = state.ticks
    assert practice(longer) == [] and result_blocks(longer)[-1] == "Still open: the questions aloud."
    longer.aloud[QUESTIONS[0].question] = "strong"
    assert [name for name, _ in practice(longer)] == ["18_bug_clinic.ipynb"]
    assert "7 of 7 marks of the rubric and the questions aloud" in result_blocks(
        Interview(45, 1, tmp_path, 6, longer.verdict, longer.change))[-1]


def test_what_was_ticked_weak_or_not_reached_is_practised_too(tmp_path):
    state = judged(tmp_path)
    state.ticks["Loop"] = "weak"
    state.ticks["Exits"] = "strong"
    state.aloud = {q.question: "weak" for q in QUESTIONS if q.notebook == 3}
    state.released = 4
    found = dict(practice(state))
    assert found["05_exits.ipynb"] == "Exits: not reached" and found["04_loop.ipynb"] == "Loop: you ticked weak"
    weak = [q.question for q in QUESTIONS if q.notebook == 3]
    assert found["03_registry.ipynb"] == "; ".join(f"you ticked weak: “{question}”" for question in weak)
    assert len(found) == 3


def test_a_change_that_fails_names_the_notebook_of_that_change_and_asks_about_it(tmp_path):
    for seed in range(20):
        state = Interview(45, seed, tmp_path, released=6)
        state.verdict = Verdict("said", [[f"{stage} x", "holds", "Sentence"] for stage in range(1, 6)])
        state.change = [Requirement("One.", True, ""), Requirement("Two.", False, "why")]
        asked = state.follow_up
        assert remarks(state)[-1].words == f"This one does not hold yet: “Two.” {asked.some_holds}"
        key, words = next(iter(asked.words.items()))
        state.change[1] = Requirement(f"So {key.upper()} it is.", False, "why")
        assert remarks(state)[-1].words.endswith(f"it is.” {words}")
        wanted = [name] if (name := interview.notebook_named(asked.notebook)) else []
        assert [name for name, _ in practice(state)] == wanted


def test_a_file_that_was_judged_before_anything_was_released_is_not_called_not_reached(tmp_path):
    state = judged(tmp_path, 2)
    state.released = 0
    assert [why for _, why in practice(state)] == ["Validator: 0 of 1 hold"]


def test_a_file_that_was_not_judged_is_the_first_thing_to_do(tmp_path):
    assert practice(begin(tmp_path))[0][0] == "17_mock_interview.ipynb"


def test_only_notebooks_that_exist_are_named():
    numbers = {17, 18} | {named.notebook for named in (*PARTS, *RUBRIC, *QUESTIONS)}
    assert [number for number in numbers if not interview.notebook_named(number)] == []
    assert interview.notebook_named(99) == ""


def test_the_page_is_saved_whole_and_over_the_last_one(tmp_path):
    state = judged(tmp_path, 2)
    state.verdict.first[1] = "<script>alert(1)</script>"
    for tick in MARKS:
        state.ticks["Loop"] = tick
        path = save_page(state)
    text = path.read_text(encoding="utf-8")
    assert [file.name for file in tmp_path.iterdir()] == ["my_interview_result.html"]
    assert "<script>" not in text and "&lt;script&gt;" in text and text.endswith("</html>\n")
    assert html.escape(RUBRIC[3].strong) in text and html.escape(RUBRIC[3].weak) not in text
    assert "02_validator.ipynb" in text


def test_a_page_that_cannot_be_made_leaves_the_last_one(tmp_path):
    state = judged(tmp_path)
    before = save_page(state).read_text(encoding="utf-8")
    state.verdict = None
    state.clock = None  # so that the page cannot be made
    with pytest.raises(AttributeError):
        save_page(state)
    left = {file.name: file.read_text(encoding="utf-8") for file in tmp_path.iterdir()}
    assert left == {"my_interview_result.html": before}


# --- Words ---------------------------------------------------------------------------------------------------


def test_there_are_at_least_40_questions_each_with_an_answer_and_a_next_one():
    assert len(QUESTIONS) >= 40 and len({q.question for q in QUESTIONS}) == len(QUESTIONS)
    for q in QUESTIONS:
        assert q.question[-1] in "?." and q.then[-1] in "?." and q.answer.endswith(".") and q.reply.endswith(".")
        assert 3 < len(q.answer.split()) < 60


@pytest.mark.parametrize("word", [
    "What does a model return", "Who runs the tool", "text and a call", "need an id", "good error message", "exits",
    "before or after the call", "complexity", "without a model", "not build an agent", "resume", "passwords",
    "input tokens"])
def test_the_questions_that_every_interview_asks_are_among_them(word):
    assert any(word in q.question for q in QUESTIONS)
    assert any("keep room" in q.reply for q in QUESTIONS)


def test_all_questions_of_a_topic_are_shown_folded():
    topics = dict.fromkeys(q.topic for q in QUESTIONS)
    assert sum(all_questions(topic).html.count("<details>") for topic in topics) == len(QUESTIONS)
    with pytest.raises(ValueError, match="the topics are messages, "):
        all_questions("weather")


def test_the_rubric_has_an_example_of_each_mark_for_each_part():
    assert [c.name for c in RUBRIC] == [part.title for part in PARTS] + ["Aloud"]
    assert all(getattr(c, mark).strip() for c in RUBRIC for mark in MARKS)


def test_the_interviewers_sheet_holds_the_brief_every_part_and_every_change():
    text = interviewer_sheet().text
    assert all(twin_text(part.asks) in text for part in PARTS if part.asks)
    assert all(follow_up.asks in text for follow_up in FOLLOW_UPS.values())


# --- The widgets ---------------------------------------------------------------------------------------------


@pytest.fixture
def room(tmp_path):
    room = mock_interview(45, 1)
    room.interview.folder = tmp_path
    return room


def test_nothing_is_written_before_a_button_is_pressed(room, tmp_path):
    benches = [room, room.rubric(), room.ask_aloud(), room.result()]
    room.buttons["start"].click()
    room.buttons["next"].click()
    room.buttons["checks"].click()
    assert [bench._repr_mimebundle_() and bench.error_box.value for bench in benches] == [""] * 4
    assert list(tmp_path.iterdir()) == []


def test_the_parts_are_released_in_order_one_at_a_time(room):
    shown = []
    for _ in range(7):
        room.buttons["next"].click()
        shown.append(room._asked.value.count("<summary>") - 1)
    assert shown == [1, 2, 3, 4, 5, 6, 6] and room.buttons["next"].disabled
    assert room.interview.follow_up.asks.split(".")[0] in room._asked.value


def test_the_clock_is_started_and_paused_by_one_button(room):
    words = []
    for _ in range(3):
        room.buttons["start"].click()
        words.append((room.interview.clock.runs, room.buttons["start"].description))
    assert [runs for runs, _ in words] == [True, False, True]
    assert {text for _, text in words} <= {"Pause the clock", "Go on"}


def test_another_length_or_seed_begins_a_new_interview_as_long_as_none_has_begun(room):
    room.length.value = 25
    assert (room.interview.minutes, room.interview.released, len(room.interview.parts)) == (25, 0, 5)
    questions = room.ask_aloud()
    first = questions.question
    room.seed.value = 2
    assert room.interview.seed == 2 and questions.question != first and room.buttons["again"].disabled


@pytest.mark.parametrize("begin_with", ["start", "next", "checks"])
def test_an_interview_that_has_begun_is_kept_until_start_again_is_pressed(room, begin_with):
    rubric, aloud = room.rubric(), room.ask_aloud()
    rubric.choices["Exits"].value, aloud.tick.value = "weak", "fine"
    room.buttons[begin_with].click()
    kept = room.interview
    room.length.value, room.seed.value = 25, 2
    assert room.interview is kept and (kept.minutes, kept.seed) == (45, 1)
    assert "press Start again" in room._say.value and not room.buttons["again"].disabled
    room.buttons["again"].click()
    new = room.interview
    assert (new.minutes, new.seed, new.released, new.ticks, new.aloud) == (25, 2, 0, {}, {})
    assert rubric.choices["Exits"].value == aloud.tick.value == "not yet" and not kept.clock.runs
    assert room.buttons["again"].disabled and room._report.value == ""


def test_start_again_leaves_the_file_as_it_is_and_says_so(room):
    room.buttons["file"].click()
    room.interview.file.write_text("x = 1", encoding="utf-8")
    room.buttons["next"].click()
    room.buttons["again"].click()
    assert "Your my_interview.py stays as it is." in room._say.value
    assert room.interview.file.read_text(encoding="utf-8") == "x = 1"


def test_the_report_of_a_missing_file_goes_when_the_file_is_made(room):
    room.buttons["checks"].click()
    assert "press Make my_interview.py." in room._report.value
    room.buttons["file"].click()
    assert room._report.value == ""


def test_after_the_last_part_comes_the_rubric(room):
    for left in range(5, -1, -1):
        room.buttons["next"].click()
        assert ("the rubric" in room._say.value) == (left == 0)


def test_what_is_ticked_reaches_the_result(room):
    rubric, aloud, result = room.rubric(), room.ask_aloud(), room.result()
    rubric.choices["Exits"].value = "weak"
    aloud.tick.value = "fine"
    text = twin_text(result.twin())
    assert "while True, and a counter that comes later." in text
    assert "1 question answered aloud: 0 strong, 1 fine" in text
    rubric.choices["Exits"].value = aloud.tick.value = "not yet"
    assert "What you ticked" not in twin_text(result.twin()) and room.interview.aloud == {}


def test_a_question_unfolds_in_three_steps_and_the_next_begins_folded(room):
    aloud = room.ask_aloud()
    for shown in (1, 2, 3):
        aloud.buttons["more"].click()
        assert aloud._answer.value.count("<p") == shown
    assert aloud.buttons["more"].disabled
    aloud.tick.value = "weak"
    aloud.buttons["next"].click()
    assert aloud._answer.value == "" and aloud.tick.value == "not yet"
    for _ in range(len(QUESTIONS) - 1):
        aloud.buttons["next"].click()
    assert aloud.tick.value == "weak" and room.interview.aloud == {aloud.question.question: "weak"}


def test_someone_writes_the_file_in_parts_and_saves_a_judged_result(room, tmp_path):
    result = room.result()
    room.buttons["file"].click()
    for _ in range(6):
        room.buttons["next"].click()
    room.interview.file.write_text(apply(answers()[room.interview.follow_up.name], PLAIN), encoding="utf-8")
    room.buttons["checks"].click()
    assert "That is what I asked for." in room._report.value and room._say.value.count("That is what I asked for.") == 1
    result.save_button.click()
    page = (tmp_path / "my_interview_result.html").read_text(encoding="utf-8")
    assert "Still open: 7 of 7 marks" in page and "6 parts of 6 released" in page and "ipynb" not in page
    assert "Let us talk about it. The rubric comes next." in page


def test_an_error_is_shown_in_the_room(room, tmp_path):
    result = room.result()
    room.interview.folder = tmp_path / "gone"
    result.save_button.click()
    assert "That did not work: FileNotFoundError" in result.error_box.value
    room.buttons["file"].click()
    assert "That did not work: FileNotFoundError" in room.error_box.value
    assert result_blocks(room.interview)
