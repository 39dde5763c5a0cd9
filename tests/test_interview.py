"""A mock interview: the clock, the parts, what is said to a file, the changes with our answers, and the result page."""

from __future__ import annotations

import html
import json
import re
from datetime import date
from pathlib import Path

import pytest
from judged_files import OneProcess

from looplab import all_questions, interview, interview_room, interviewer_sheet, judging, mock_interview, sandbox
from looplab.also_asked import ALSO_ASKED
from looplab.cases import attempt
from looplab.faults import load
from looplab.follow_ups import FOLLOW_UPS, sentence_of, tried_by
from looplab.interview import (Clock, Interview, Requirement, headline, opening, remarks, report, short_answers,
                               try_change, try_what_is_also_asked)
from looplab.interview_brief import ALOUD_MINUTES, LENGTHS, MARKS, PARTS, RUBRIC
from looplab.interview_questions import QUESTIONS
from looplab.interview_result import (Notebook, in_an_hour, notebook_named, page_html, practice, practice_blocks,
                                      result_blocks, result_html, save_page, write_new)
from looplab.judging import Verdict
from looplab.view import twin_text

ROOT = Path(__file__).parent.parent
PLAIN = (ROOT / "tests/fixtures/plain.py").read_text(encoding="utf-8")
CELLS = json.loads((ROOT / "notebooks/17_mock_interview.ipynb").read_text(encoding="utf-8"))["cells"]


@pytest.fixture(scope="module")
def one_process(tmp_path_factory):
    process = OneProcess(tmp_path_factory.mktemp("judged"))
    yield process
    process.close()
    interview.SANDBOX.close()


@pytest.fixture
def processes_of_their_own(one_process):
    """Stands for what is passed by in these tests, so that a test can ask for it."""
    return RUN_SUITE


RUN_SUITE = judging.run_suite


@pytest.fixture(autouse=True)
def the_suite_is_loaded_once(request, one_process, monkeypatch):
    """Judge the files of these tests in one process, which says of each the same as a process of its own."""
    if "processes_of_their_own" not in request.fixturenames:
        monkeypatch.setattr(judging, "run_suite", lambda path, stage, seconds: (one_process.judge(path, stage), ""))


@pytest.mark.parametrize(("old", "new", "stage"), [
    ("spent + prompt > token_budget", "spent > token_budget", 5), ("import copy", "import no_such_module", 2)])
def test_one_process_for_all_files_says_what_a_process_for_each_says(tmp_path, one_process, old, new, stage):
    file = tmp_path / "my_interview.py"
    assert PLAIN.count(old) == 1
    file.write_text(PLAIN.replace(old, new), encoding="utf-8")
    assert RUN_SUITE(file, stage, judging.SECONDS) == (one_process.judge(file, stage), "")


def begin(folder, minutes=45, seed=1, released=0):
    """Return an interview in which so many parts were released, and judged if anything was."""
    return Interview(minutes, seed, folder, released, judged=released)


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


@pytest.mark.parametrize("start", [1, 7, 601])
def test_six_seeds_in_a_row_draw_all_six_changes(start):
    assert sorted(begin(None, seed=seed).follow_up.name for seed in range(start, start + 6)) == sorted(FOLLOW_UPS)


@pytest.mark.parametrize("seed", [-1, 10_000, 1.5, "a", None, True])
def test_another_seed_is_a_value_error(seed):
    with pytest.raises(ValueError, match="the seed is a whole number from 0 to 9999"):
        mock_interview(45, seed)


def test_five_questions_in_a_row_are_on_five_topics_in_the_first_two_rounds():
    for seed in range(20):
        topics = [QUESTIONS[i].topic for i in begin(None, seed=seed).questions]
        assert len(set(topics[:5])) == len(set(topics[7:12])) == 5


def test_the_seed_draws_the_order_of_the_questions():
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
    assert report(state)[0] == f"my_interview.py is empty: {interview.SAVE_FIRST}."
    assert opening(state).startswith("Let us begin together")
    assert [remark.words.partition(".")[0] for remark in remarks(state)] == ["I see nothing of this yet"] * 2
    text = twin_text(report(state))
    assert "has no class or function named ToolCall" in text
    assert "The file has the names of part 1" in text and "stage" not in text


MUTABLE = """from dataclasses import dataclass

@dataclass
class ModelReply:
    content: str = ""
    tool_calls: list = []
"""


@pytest.mark.parametrize(("text", "why", "names"), [
    ("x = 1\nx = (\n", "SyntaxError, line 2", ""),
    ("\n\nimport no_such_module", "ModuleNotFoundError, line 3", "no_such_module"),
    ("import sys\nsys.exit()", "it called sys.exit, line 2", ""),
    (MUTABLE, "ValueError, line 3", "write field(default_factory=list)."),
])
def test_a_file_that_does_not_load_is_told_that_alone_and_no_notebook_is_named(tmp_path, text, why, names):
    state = begin(tmp_path, released=6)
    state.file.write_text(text, encoding="utf-8")
    state.ticks["Loop"] = "weak"
    state.run_checks()
    [said] = report(state)
    assert said.startswith(f"Your file does not load: {why}") and names in said and said.endswith(".")
    assert state.change == state.also_asked == [] and headline(state) == "Not judged: see the report."
    assert practice(state) == [] and result_blocks(state)[-1] == "Mend the file, and run the checks again."


def test_a_file_that_ends_the_suite_is_to_be_mended_too(tmp_path, processes_of_their_own):
    state = begin(tmp_path, released=6)
    state.file.write_text("import os\nos._exit(0)", encoding="utf-8")
    state.run_checks()
    said = "it ended Python in the middle of the checks, as os._exit does"
    assert report(state) == [f"my_interview.py could not be judged: {said}."]
    assert result_blocks(state)[-1] == "Mend the file, and run the checks again."


def test_what_the_interviewer_says_depends_on_what_does_not_hold(tmp_path):
    state = begin(tmp_path, released=5)
    for old, new, heard in (
            ('f"ERROR: {name} failed: {type(error).__name__}: {error}"', "print(error)",
             "A tool raises. What does the model read then?"),
            ("if not calls: ", "if reply.content: ", "Which line ends the run, and what does it ask of the reply?"),
            ("if spent + prompt >", "if spent >", "What do you compare with the budget, and at which moment?"),
            ("token_budget=4000", "token_budget=2000",
             "Read me the head of run_agent. What holds for a caller who gives nothing more?"),
            ("count_tokens(messages[-1])", "1", "Add up one step aloud: its prompt, then its reply message."),
            ("max_steps + 1)", "max_steps + 2)", "Count the model calls aloud, up to the one that is not made.")):
        assert PLAIN.count(old) == 1
        state.file.write_text(PLAIN.replace(old, new), encoding="utf-8")
        state.run_checks()
        first = next(remark for remark in remarks(state) if remark.held < remark.of)
        assert first.words.endswith(heard)


def test_wrong_steps_at_a_stop_by_the_budget_are_asked_about_and_not_the_comparison(tmp_path):
    state = begin(tmp_path, released=5)
    old = 'return AgentResult("token_budget", None, step - 1,'
    assert PLAIN.count(old) == 1
    state.file.write_text(PLAIN.replace(old, old.replace("step - 1", "step")), encoding="utf-8")
    state.run_checks()
    assert "expected:  steps = " in state.verdict.first[1]
    assert remarks(state)[-1].words.endswith("Count the model calls aloud, up to the one that is not made.")


EXPECTED = "tried:     execute(...)\nexpected:  "


@pytest.mark.parametrize(("told", "heard"), [
    (f"{EXPECTED}`ü`\ncame back: it raised KeyError: 'properties' (line 57)", "It raised KeyError in line 57: what"),
    (f"{EXPECTED}`ü`\ncame back: it raised TypeError: execute() takes 2", "It raised TypeError: what came in"),
    (f"{EXPECTED}`ü`\ncame back: `ERROR: get failed: KeyError: 'properties'`", "It raised KeyError: what came in"),
    (f"{EXPECTED}`ERROR: get failed: KeyError`\ncame back: `ERROR: get failed: TypeError`",
     "Read me the observation letter by letter."),
    (f"{EXPECTED}`ü`\ncame back: `\\u00fc`", "Read me the observation letter by letter."),
    (f"{EXPECTED}an exception of the kind Exception\ncame back: it raised KeyError: 'x' (line 5)",
     "Read me the observation letter by letter."),
])
def test_where_the_file_raised_the_interviewer_asks_about_the_exception(tmp_path, told, heard):
    state = begin(tmp_path, 25, released=3)
    sentence = "A result keeps letters that are not ASCII"
    rows = [["1 x", "does not hold", "One"], ["3 x", "holds", "Two"], ["3 x", "does not hold", sentence]]
    state.verdict = Verdict("said", rows, ["One", "why"], told={("1 x", "One"): "why", ("3 x", sentence): told})
    assert remarks(state)[-1].words.startswith(f"This one does not hold yet: “{sentence}.” {heard}")


def test_where_the_change_raised_the_interviewer_asks_about_the_exception(tmp_path):
    state = begin(tmp_path, released=6)
    state.change = [Requirement("One.", True, ""), Requirement("Two.", False, "it raised KeyError: 'x' (line 5)")]
    assert "“Two.” It raised KeyError in line 5: what came in" in remarks(state)[-1].words


def test_a_reply_that_is_not_appended_is_named(tmp_path):
    state = begin(tmp_path, released=4)
    old = """        messages.append({"role": "assistant", "content": reply.content,
                         "tool_calls": calls})
        spent += prompt + count_tokens(messages[-1])
"""
    assert PLAIN.count(old) == 1
    state.file.write_text(PLAIN.replace(old, ""), encoding="utf-8")
    state.run_checks()
    assert "3 messages, of which message 3 holds {'role': 'assistant'}" in state.verdict.first[1]
    assert "came back: 2 messages" in state.verdict.first[1]


def test_a_file_that_did_not_change_is_asked_to_be_saved_first_unless_all_holds(tmp_path):
    state = begin(tmp_path, 25, released=1)
    for text, told in (("x = 1", False), ("x = 1", True), (PLAIN, False), (PLAIN, False)):
        state.file.write_text(text, encoding="utf-8")
        state.run_checks()
        assert ("is as it was at the last check" in twin_text(report(state))) == told
        assert ("was it saved?" in headline(state)) == told


def test_a_report_says_of_which_parts_it_is_when_others_were_asked_for_since(tmp_path):
    state = begin(tmp_path, 25)
    state.release()
    state.file.write_text(PLAIN.replace("class ToolRegistry", "class Registry"), encoding="utf-8")
    state.run_checks()
    assert len(remarks(state)) == 1 and opening(state) == report(state)[0] and opening(state).startswith("That is what")
    for _ in range(2):
        state.release()
    assert report(state)[0] == "As of part 1, Shapes. Validator and Registry came later: run the checks again."
    assert len(remarks(state)) == 1 and "does not hold" not in twin_text(result_blocks(state))
    assert headline(state) == "16 of 16 hold as of part 1"
    assert [why for _, why in practice(state)] == [
        "Validator: asked for, and not checked", "Registry: asked for, and not checked", "Loop: not reached",
        "Exits: not reached"]


def test_what_was_checked_before_the_first_part_is_not_taken_for_the_first_part(tmp_path):
    state = begin(tmp_path, 25)
    state.file.write_text(PLAIN.replace("spent + prompt > token_budget", "spent > token_budget"), encoding="utf-8")
    state.run_checks()
    state.release()
    text = twin_text(report(state))
    assert "These checks ran before a part was asked for" in text and "The first that does not hold" in text
    assert "That is what I asked for" not in text and len(remarks(state)) == 5


def test_the_opening_and_the_headline_tell_how_much_holds(tmp_path):
    state = begin(tmp_path, 25, released=5)
    for held, of, words in ((60, 111, "You are on the way: 60 of 111 hold."),
                            (110, 111, "Nearly done: 110 of 111 hold, and one does not yet."),
                            (105, 111, "Nearly done: 105 of 111 hold. Let me say what is left.")):
        outcomes = ["holds"] * held + ["does not hold"] * (of - held)
        state.verdict = Verdict("said", [["1 x", outcome, "Sentence"] for outcome in outcomes], ["Sentence", "why"])
        assert opening(state).startswith(words) and headline(state) == f"{held} of {of} hold"


def test_a_question_of_the_report_has_a_short_answer_and_one_that_was_not_asked_has_none(tmp_path):
    state = judged(tmp_path, 2)
    assert [title for title, _ in short_answers(state)] == [
        f"{title}: a short answer" for title in ("Shapes", "Registry", "Loop", "Exits")]
    assert all(part.answer.endswith(".") for part in PARTS) and short_answers(begin(tmp_path)) == []


def requirements_of(part):
    """Return the sentences that a part is judged by."""
    stage = next((ROOT / "tests/spec").glob(f"test_stage_{part.stage}_*.py")).read_text(encoding="utf-8")
    return [name.replace("_", " ") for name in re.findall(r"^def test_(\w+)", stage, re.MULTILINE)]


def test_each_of_the_interviewers_words_is_for_a_requirement_that_there_is():
    for part in PARTS[:5]:
        assert [key for key in part.words if not any(key in one for one in requirements_of(part))] == []
    for drawn in FOLLOW_UPS.values():
        sentences = [sentence_of(check).lower() for check in drawn.checks]
        assert all(tried_by(check) and sentence_of(check).endswith(".") for check in drawn.checks)
        assert drawn.words and [key for key in drawn.words if not any(key in one for one in sentences)] == []


@pytest.mark.parametrize("name", FOLLOW_UPS)
def test_a_change_is_asked_for_with_every_error_and_status_that_its_checks_compare(name):
    asked = f"{FOLLOW_UPS[name].asks} {FOLLOW_UPS[name].code}"
    checked = " ".join(sentence_of(check) for check in FOLLOW_UPS[name].checks)
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
    assert said["exits"].words.startswith("5 do not hold yet; the first is: “")
    assert opening(state) == "Nearly done: 102 of 107 hold. Let me say what is left."
    assert "expected:" in twin_text(report(state))


def test_only_the_released_parts_are_judged_and_all_before_the_first_is_released(tmp_path):
    state = begin(tmp_path, 25)
    state.file.write_text(PLAIN, encoding="utf-8")
    for released, parts in ((0, 5), (2, 2)):
        state.released = released  # run_checks judges what is released then
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


@pytest.fixture
def one_second(monkeypatch):
    """What runs for ever is stopped sooner."""
    monkeypatch.setattr(sandbox, "SECONDS", 1.0)


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
    "approval: the calls that are left are taken out of the list": (
        "approval", "            if call.name in risky:",
        '            if call.name in risky:\n                calls[reply.tool_calls.index(call):] = []',
        "the calls in the list are ['a']"),
    "timeout: None is taken for late": (
        "timeout", "if not outcome:", "if not outcome or outcome[0] == (None, None):",
        "a TimeoutError came all the same"),
    "timeout: the function is waited for": (
        "timeout", "thread.join(seconds)", "thread.join()", "still running after 1 seconds"),
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
    "repeats: the number is not looked at": (
        "repeated calls", "repeats(made, asked, max_repeats)", "repeats(made, asked, max_repeats and 3)",
        "repeated_call, ran 2 times"),
    "repeats: tools are not compared": (
        "repeated calls", "asked = (call.name, ", 'asked = ("", ', "it ended with repeated_call"),
    "parallel: one after the other": (
        "parallel calls", "pool.map(", "map(", "the first was over before the second began"),
    "resume: counters begin again": ("resume", "result.tokens\n", "0\n", "steps and tokens are"),
    "resume: the steps are for the second half": (
        "resume", "max_steps + 1):", "result.steps + max_steps + 1):", "done, 4 steps and token_budget, 2 steps"),
    "resume: the budget is for the second half": (
        "resume", "if spent + prompt", "if spent - result.tokens + prompt",
        "step_limit, 3 steps and token_budget, 3 steps"),
    "resume: the old result is edited": (
        "resume", "copy.deepcopy(result.messages)", "result.messages", "resume changed the result"),
    "resume: a run that is done goes on": ("resume", 'if result.status == "done":', "if False:", "no ValueError came"),
    "cutting: what is said comes on top": (
        "cutting results", "(text[:max(0, most - len(note))] + note)[:most]", "text[:most] + note", "it has 2"),
    "cutting: the number is not looked at": (
        "cutting results", "cut(content, max_result_chars)", "cut(content, max_result_chars and 200)",
        "it has 200 characters"),
    "cutting: nothing is said": ("cutting results", " + note)", ")", "it ends with"),
    "cutting: always": ("cutting results", "max_result_chars=None", "max_result_chars=200", "became 200"),
}


@pytest.mark.parametrize("why", WRONG)
def test_a_wrong_answer_is_told_what_came_back(tmp_path, one_second, why):
    name, old, new, told = WRONG[why]
    text = apply(answers()[name], PLAIN)
    assert text.count(old) == 1
    broken = [r for r in change(tmp_path, name, text.replace(old, new)) if not r.holds]
    assert broken and told in " ".join(requirement.came_back for requirement in broken)


@pytest.mark.parametrize(("text", "told"), [
    ("", "the file has no "), ("x = (", "it raised SyntaxError"), ("while True: pass", "still running after 1 seconds"),
    ("import os; os._exit(0)", "the process ended"), ("import sys; sys.exit()", "it raised SystemExit"),
])
def test_whatever_is_in_the_file_the_change_is_judged(tmp_path, one_second, text, told):
    found = change(tmp_path, "resume", text)
    assert len(found) == 5 and not any(requirement.holds for requirement in found) and told in found[0].came_back


def test_the_change_is_part_of_the_report(tmp_path):
    state = begin(tmp_path, seed=seed_of("timeout"), released=6)
    state.file.write_text(PLAIN, encoding="utf-8")
    state.run_checks()
    text = twin_text(report(state))
    assert re.search(r"A change +0 of 5 +I see nothing of this yet", text)
    tried, expected, came_back = text[text.index("tried: "):].splitlines()[:3]
    assert tried == 'tried:     with_timeout(fn, 2)(x="sky"), where fn returns at once'
    assert expected.startswith("expected:  A function that is done in time gives its result")
    assert came_back == "came back: the file has no with_timeout"
    assert text.count("A function that is done in time gives its result") == 1


def seed_of(name):
    """Return the first seed that draws a change."""
    return next(seed for seed in range(1, 7) if begin(None, seed=seed).follow_up.name == name)


def test_a_file_that_raises_before_the_change_is_told_where(tmp_path):
    state = begin(tmp_path, seed=seed_of("cutting results"), released=6)
    old = "return max(1, len(json.dumps(obj, ensure_ascii=False)) // 4)"
    assert PLAIN.count(old) == 1
    text = apply(answers()["cutting results"], PLAIN).replace(old, old.replace("json.", "jason."))
    state.change = change(tmp_path, "cutting results", text)
    state.verdict = Verdict("said", [["5 exits", "holds", "Sentence"]])
    words = remarks(state)[-1].words
    assert words.startswith("I cannot see the change yet, because your file does not get that far: it raised NameError")
    assert re.search(r"\(line \d+\)\.$", words)


BOM, LATIN, ODD = b"\xef\xbb\xbf", "# für\n".encode("latin-1"), b"# coding: latin-1\nTOWN = 'Z\xfcrich'\n"


LOUD = b"print('x' * 20_000)\n"


@pytest.mark.parametrize("before", [BOM, LATIN, ODD, LOUD], ids=["bom", "comment", "coding", "prints"])
def test_every_part_reads_the_file_in_the_same_way(tmp_path, before):
    state = begin(tmp_path, seed=seed_of("timeout"), released=6)
    state.file.write_bytes(before + apply(answers()["timeout"], PLAIN).encode())
    state.run_checks()
    assert opening(state) == "That is what I asked for. Let us talk about it."


def test_the_text_of_a_file_is_read_as_python_reads_it(tmp_path):
    for data, text in ((BOM + b"x = 1\n", "x = 1\n"), (ODD, "# coding: latin-1\nTOWN = 'Zürich'\n"),
                       (LATIN, "# f\ufffdr\n"), (b"# coding: no-such\n", "# coding: no-such\n")):
        (tmp_path / "my_interview.py").write_bytes(data)
        assert interview.text_of(tmp_path / "my_interview.py") == text


def test_a_file_that_is_not_saved_as_utf_8_is_told_to_be(tmp_path):
    state = begin(tmp_path, released=1)
    state.file.write_text(PLAIN, encoding="utf-16")
    state.run_checks()
    assert report(state) == ["my_interview.py holds null bytes, as a file in UTF-16 does: save it as UTF-8."]
    state.file.write_bytes("TOWN = 'Zürich'\n".encode("latin-1"))
    state.run_checks()
    assert report(state)[0].startswith("Your file does not load: SyntaxError")
    assert report(state)[0].endswith(" Save the file as UTF-8.")


# --- What no check is about ----------------------------------------------------------------------------------


WITH_POOL = """
def with_timeout(fn, seconds):
    from concurrent.futures import ThreadPoolExecutor
    def limited(**args):
        pool = ThreadPoolExecutor(1)
        try:
            return pool.submit(fn, **args).result(seconds)
        finally:
            pool.shutdown(wait=False)
    return limited
"""
SWALLOWS_EXIT = (
    "except BaseException as error:", "except Exception as error:", "exits that look like timeouts")
ALSO = {  # a change, an edit of our answer to it, and what is asked about then
    "registry: ctrl-c": ("", "except Exception as error:", "except BaseException as error:", "Ctrl-C in a tool"),
    "timeout: exits": ("timeout", *SWALLOWS_EXIT),
    "timeout: no words": ("timeout", 'f"no result within {seconds} s; it may still be running"', "",
                          "what a timeout says"),
    "timeout: no daemon": ("timeout", ", daemon=True", "", "threads that keep the program alive"),
    "parallel: a pool of its own size": ("parallel calls", "Executor(len(reply.tool_calls))", "Executor()",
                                         "how many calls run at once"),
    "repeats: order": ("repeated calls", "json.dumps(call.args, sort_keys=True)", "json.dumps(call.args)",
                       "the order of arguments"),
}


def asked_about(text, *names):
    """Return what is asked about the text of a file, of these parts and changes, without a second process."""
    mine = load(text)
    return [asked.about for name in names for asked in ALSO_ASKED[name] if attempt(asked.does, mine).value]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # the exit that is not handed over
@pytest.mark.parametrize("why", ALSO)
def test_what_our_answers_condemn_is_asked_about(why):
    name, old, new, about = ALSO[why]
    text = apply(answers()[name], PLAIN) if name else PLAIN
    assert text.count(old) == 1
    assert about not in asked_about(text, name or "registry")
    assert about in asked_about(text.replace(old, new), name or "registry")


def test_a_pool_that_keeps_the_program_alive_is_asked_about():
    assert "threads that keep the program alive" in asked_about(PLAIN + WITH_POOL, "timeout")


def test_a_plain_answer_is_asked_about_what_the_brief_leaves_open_and_our_loop_is_not():
    assert asked_about(PLAIN, "registry", "loop") == [
        "results that are not JSON", "exits in a tool", "names that are no text",
        "schema keywords that are not checked", "ids that are given twice"]
    ours = (ROOT / "agentloop.py").read_text(encoding="utf-8")
    assert asked_about(ours, "registry", "loop", "timeout") == []


def test_what_is_asked_about_our_own_changes_is_what_is_said_below_them():
    found = {name: asked_about(apply(answers()[name], PLAIN), name) for name in ALSO_ASKED if name in FOLLOW_UPS}
    assert found == {"approval": ["who is asked about what"], "timeout": [], "repeated calls": [],
                     "parallel calls": [], "resume": ["calls without a result"], "cutting results": []}


def test_remarks_come_last_in_the_report_and_are_practised(tmp_path):
    state = begin(tmp_path, 25, released=3)
    state.file.write_text(PLAIN, encoding="utf-8")
    state.run_checks()
    lead, told = report(state)[-2:]
    assert lead.startswith("No check is about this. I tried it on your file") and len(told) == 4
    assert told[0].startswith("Registry: A tool returned what is not JSON")
    assert dict(practised(state))["03_registry.ipynb"] == (
        "Registry: results that are not JSON, exits in a tool, names that are no text")


def test_a_part_is_checked_for_the_first_time_when_the_file_has_changed_since_it_was_asked_for(tmp_path):
    state = begin(tmp_path, seed=seed_of("parallel calls"), released=5)
    answer = apply(answers()["parallel calls"], PLAIN)
    for text, released, failed in ((PLAIN, 5, None), (PLAIN, 6, None), (answer, 6, [])):
        state.file.write_text(text, encoding="utf-8")
        state.released = released
        state.run_checks()
        assert state.failed.get("follow-up") == failed and state.failed["exits"] == []


def test_nothing_is_asked_about_a_part_that_does_not_hold(tmp_path):
    state = begin(tmp_path, 25, released=3)
    state.file.write_text(PLAIN, encoding="utf-8")
    rows = [[f"{stage} x", "holds" if stage < 3 else "does not hold", "Sentence"] for stage in (1, 2, 3)]
    state.verdict = Verdict("said", rows, ["Sentence", "why"])
    assert try_what_is_also_asked(state) == []


def test_all_that_is_asked_has_a_part_a_sentence_and_a_notebook():
    assert set(ALSO_ASKED) <= {part.name for part in PARTS} | set(FOLLOW_UPS)
    for asked in (one for group in ALSO_ASKED.values() for one in group):
        assert asked.asks.endswith("?") and notebook_named(asked.notebook)


# --- The result ----------------------------------------------------------------------------------------------


def judged(tmp_path, *failing):
    """Return an interview of five parts, in which one requirement of each stage given does not hold."""
    state = begin(tmp_path, 25, released=5)
    outcomes = {stage: "does not hold" if stage in failing else "holds" for stage in range(1, 6)}
    rows = [[f"{stage} x", outcome, f"Sentence {stage}"] for stage, outcome in outcomes.items()]
    state.verdict = Verdict("said", rows, ["Sentence", "why"] if failing else [])
    return state


def practised(state):
    """Return the files of the notebooks to practise with, each with the reason."""
    return [(notebook.file, why) for notebook, why in practice(state)]


@pytest.mark.parametrize(("failing", "notebooks"), [
    ((1,), ["01_messages.ipynb"]), ((2, 5), ["02_validator.ipynb", "05_exits.ipynb"]), ((3,), ["03_registry.ipynb"]),
    ((4,), ["04_loop.ipynb"]), ((4, 5), ["04_loop.ipynb", "05_exits.ipynb"]),
    ((), []),
])
def test_what_failed_says_which_notebook_to_practise_with(tmp_path, failing, notebooks):
    assert [name for name, _ in practised(judged(tmp_path, *failing))] == notebooks


def test_nothing_was_weak_is_said_only_when_all_marks_are_ticked(tmp_path):
    state = judged(tmp_path)
    for criterion in RUBRIC:
        open_marks = [c.name for c in RUBRIC if c.name not in state.ticks and c.name != "A change"]
        if open_marks:
            assert practice(state) == []
            assert result_blocks(state)[-1] == f"Still open: {len(open_marks)} of 6 marks of the rubric."
        state.ticks[criterion.name] = "strong"
    assert practised(state) == [("18_bug_clinic.ipynb", "nothing was weak: find the bugs of others")]
    assert "Still open" not in twin_text(result_blocks(state))


def test_the_questions_are_open_where_there_is_time_for_them(tmp_path):
    state = judged(tmp_path)
    state.ticks = {criterion.name: "strong" for criterion in RUBRIC}
    longer = begin(tmp_path, released=6)
    longer.verdict, longer.change = Verdict("said", state.verdict.rows), [Requirement("One.", True, "")]
    longer.ticks = state.ticks
    assert practice(longer) == [] and result_blocks(longer)[-1] == "Still open: the questions aloud."
    longer.aloud[QUESTIONS[0].question] = "strong"
    assert [name for name, _ in practised(longer)] == ["18_bug_clinic.ipynb"]
    longer.ticks, longer.aloud = {}, {}
    assert "7 of 7 marks of the rubric and the questions aloud" in result_blocks(longer)[-1]


def test_fine_shows_what_strong_would_be_and_where_it_is_practised(tmp_path):
    state = judged(tmp_path)
    state.ticks = {criterion.name: "strong" for criterion in RUBRIC} | {"Exits": "fine"}
    assert "Strong: names the three exits" in twin_text(result_blocks(state))
    assert [name for name, _ in practised(state)] == ["18_bug_clinic.ipynb"]
    assert practice_blocks(state)[-2:] == [["Exits: 05 Exits (05_exits.ipynb)"], ""]
    assert twin_text(result_blocks(state)).count("ames the three exits") == 1


@pytest.mark.parametrize("mark", MARKS)
def test_the_interview_itself_is_what_to_practise_for_speaking_alone(tmp_path, mark):
    for seed in range(1, 7):
        state = begin(tmp_path, seed=seed, released=6)
        state.ticks = {criterion.name: mark for criterion in RUBRIC}
        state.aloud = {q.question: mark for q in QUESTIONS}
        assert practice(state) == [] and "the checks" in result_blocks(state)[-1]
        state.verdict = Verdict("said", [["1 x", "does not hold", "Sentence"]], ["Sentence", "why"])
        named = twin_text(practice_blocks(state))
        assert practice(state) and named.count("17_mock_interview.ipynb") == (mark != "strong")
        assert ("Aloud: you ticked weak, so answer the questions once more, aloud" in named) == (mark == "weak")
        assert mark == "strong" or str(notebook_named(state.follow_up.notebook)) in named


def test_the_short_interview_has_no_mark_for_a_change(tmp_path):
    assert "A change" not in [c.name for c in begin(tmp_path, 25).rubric]
    assert [c.name for c in begin(tmp_path, 45).rubric] == [c.name for c in RUBRIC]


def test_what_was_ticked_weak_or_not_reached_is_practised_too(tmp_path):
    state = judged(tmp_path)
    state.ticks["Loop"] = "weak"
    state.ticks["Exits"] = "strong"
    state.aloud = {q.question: "weak" for q in QUESTIONS if q.notebook == 3}
    state.released = state.judged = 4
    found = dict(practised(state))
    assert found["05_exits.ipynb"] == "Exits: not reached" and found["04_loop.ipynb"] == "Loop: you ticked weak"
    weak = [q.question for q in QUESTIONS if q.notebook == 3]
    named = "; ".join(f"“{question}”" for question in weak[:3])
    assert found["03_registry.ipynb"] == f"weak aloud: {named}; and {len(weak) - 3} more" and len(weak) > 3
    assert len(found) == 3


def test_a_change_that_fails_names_the_notebook_of_that_change_and_asks_about_it(tmp_path):
    for seed in range(20):
        state = begin(tmp_path, seed=seed, released=6)
        state.verdict = Verdict("said", [[f"{stage} x", "holds", "Sentence"] for stage in range(1, 6)])
        state.change = [Requirement("One.", True, ""), Requirement("Two.", False, "why")]
        asked = state.follow_up
        assert remarks(state)[-1].words == f"This one does not hold yet: “Two.” {asked.some_holds}"
        key, words = next(iter(asked.words.items()))
        state.change[1] = Requirement(f"So {key.upper()} it is.", False, "why")
        assert remarks(state)[-1].words.endswith(f"it is.” {words}")
        assert [notebook for notebook, _ in practice(state)] == [notebook_named(asked.notebook)]


def test_a_file_that_was_judged_before_anything_was_released_is_not_called_not_reached(tmp_path):
    state = judged(tmp_path, 2)
    state.released = state.judged = 0
    assert [why for _, why in practice(state)] == ["Validator: 0 of 1 hold"]


def test_a_file_that_was_not_judged_is_the_first_thing_to_do(tmp_path):
    assert result_blocks(begin(tmp_path))[-1].endswith("write the first part, and run the checks.")


def test_only_notebooks_that_exist_are_named():
    numbers = {18} | {named.notebook for named in (*PARTS, *RUBRIC, *QUESTIONS, *FOLLOW_UPS.values())} - {0}
    assert [number for number in numbers if not notebook_named(number)] == []
    assert notebook_named(99) is None


ASKED = {6: ("A tool hangs.", "When do you retry?"), 7: ("The model makes the same call again",),
         8: ("A tool may issue refunds.", "How do you resume a run"), 9: ("What do you store of a run?",),
         10: ("How do you change from one provider", "A reply was cut off"), 11: ("When would you not build",),
         12: ("A web page tells your agent",), 13: ("Two calls in one reply.",), 14: ("Does done mean",),
         15: ("The message list does not fit", "What should an agent remember"),
         16: ("How would you know that the agent got better?",)}


def test_a_question_names_the_notebook_that_treats_it_and_every_notebook_of_the_series_is_named_by_one():
    assert {q.notebook for q in QUESTIONS} == set(range(1, 17)) and all(notebook_named(q.notebook) for q in QUESTIONS)
    for number, questions in ASKED.items():
        for beginning in questions:
            assert [q.notebook for q in QUESTIONS if q.question.startswith(beginning)] == [number], beginning


def test_a_notebook_is_named_and_timed_as_in_the_map():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(.+?)\]\(notebooks/(\S+)\) \|.*\| (\d+)[^|]*\|$", text, re.MULTILINE)
    found = [Notebook(name, file, int(minutes)) for name, file, minutes in rows]
    assert len(found) == 19 and [notebook_named(number) for number in range(1, 19)] == found[1:]


def test_what_to_practise_comes_by_weight_and_an_hour_holds_what_fits(tmp_path):
    state = judged(tmp_path, 5)
    state.ticks = {"Validator": "weak"}
    state.aloud = {q.question: "weak" for q in QUESTIONS if q.notebook in (1, 6)}
    state.also_asked = [(PARTS[2], ALSO_ASKED["registry"][0]), (PARTS[1], ALSO_ASKED["registry"][4])]
    state.failed, state.failed_runs = {"exits": ["One", "Two"], "loop": ["One"], "shapes": []}, {"exits": 2, "loop": 1}
    assert [name[:2] for name, _ in practised(state)] == ["05", "04", "02", "01", "06", "03"]
    assert dict(practised(state))["04_loop.ipynb"] == "Loop: held after 2 runs of the checks; 1 check failed on the way"
    hour, table = practice_blocks(state)[:2]
    assert hour == "With an hour: 05 Exits (25 minutes), then 04 Loop (25 minutes). The rest later."
    assert [row[0] for row in table] == ["when", "First", "Then", "Later", "Later", "Later", "Later"]


def test_two_faults_that_took_two_runs_weigh_more_than_one_that_failed_more_checks(tmp_path):
    state = judged(tmp_path)
    state.failed = {"loop": ["One", "Two", "Three", "Four"], "validator": ["One", "Two"]}
    state.failed_runs = {"loop": 1, "validator": 2}
    assert [name for name, _ in practised(state)] == ["02_validator.ipynb", "04_loop.ipynb"]
    state.failed_runs["loop"] = 2
    assert [name for name, _ in practised(state)] == ["04_loop.ipynb", "02_validator.ipynb"]
    assert "several checks may fail for one fault:" in twin_text(result_blocks(state))


@pytest.mark.parametrize(("minutes", "fit"), [([], 0), ([60], 1), ([30, 30, 1], 2), ([25, 30, 25, 5], 2)])
def test_an_hour_holds_the_first_notebooks_that_fit_one_after_the_other(minutes, fit):
    assert in_an_hour([Notebook("x", "x.ipynb", one) for one in minutes]) == fit


def test_the_result_links_to_the_notebooks_and_the_page_names_their_files(tmp_path):
    state = judged(tmp_path, 2)
    state.ticks["Exits"] = "fine"
    shown, page = result_html(state), page_html(state, DAY)
    for name, file in (("02 Validator", "02_validator.ipynb"), ("05 Exits", "05_exits.ipynb")):
        assert f'<a href="{file}" target="_blank">{name}</a>' in shown and f"{name} ({file})" in page
    assert "<a " not in page


def test_on_the_page_what_to_practise_comes_before_how_it_went(tmp_path):
    page = page_html(judged(tmp_path, 2), DAY)
    places = [page.index(text) for text in ("<h1>", "An interview of", "<h2>What to practise</h2>", "<td>First</td>",
                                            "<h2>How it went</h2>", "Nearly done: 4 of 5")]
    assert places == sorted(places)


def test_a_mistake_that_was_mended_leaves_a_trace_and_what_was_not_begun_leaves_none(tmp_path):
    state = begin(tmp_path, 25, released=2)
    rows = {"holds": [["1 x", "holds", "One"], ["1 x", "holds", "Two"]],
            "late": [["1 x", "holds", "One"], ["1 x", "does not hold", "Two"], ["2 x", "does not hold", "Three"]]}
    rows["mended"] = [*rows["holds"], ["2 x", "holds", "Three"]]
    for name in ("late", "mended"):
        state.verdict = Verdict("said", rows[name])
        state.remember_failed()
    assert (state.failed, state.failed_runs) == ({"shapes": ["Two"], "validator": []}, {"shapes": 1, "validator": 0})
    table = [["part", "holds now", "failed runs", "what failed"], ["Shapes", "2 of 2", "1", "1 check: Two"]]
    assert table in result_blocks(state) and "1 check: Two" in page_html(state, DAY)


def test_every_check_that_failed_at_any_run_leaves_a_trace(tmp_path):
    state = begin(tmp_path, 25, released=5)
    early, late, steps = ("if spent + prompt > token_budget:", "if spent + prompt >= token_budget:"), (
        "range(1, max_steps + 1)", "range(1, max_steps)"), ("None, step - 1,", "None, step,")
    for faults in ((early, late, steps), (early, steps), (steps,), ()):
        text = PLAIN
        for old, new in faults:
            assert text.count(old) == 1
            text = text.replace(old, new)
        state.file.write_text(text, encoding="utf-8")
        state.run_checks()
    failed = state.failed["exits"]
    for sentence in ("A model that never finishes is called `max_steps` times",
                     "A budget that just covers the next prompt lets the call happen",
                     "A budget one token short of the next prompt stops before the call"):
        assert sentence in failed
    assert state.failed_runs["exits"] == 3 and state.verdict.holds
    assert dict(practised(state))["05_exits.ipynb"].startswith(
        f"Exits: held after 4 runs of the checks; {len(failed)} checks failed on the way")
    [row] = next(block for block in result_blocks(state) if block and block[0] == [
        "part", "holds now", "failed runs", "what failed"])[1:]
    assert row[2] == "3" and row[3].endswith(f"and {len(failed) - 3} more")


BOOL = ('isinstance(value, bool) != (kind == "boolean")', "False")
NO_LIMITS = (("range(1, max_steps + 1)", "range(1, 10**6)"), ("if spent + prompt > token_budget:", "if False:"))
CONSEQUENCES = {  # faults, the parts where they are in the order of their size, and those that only follow
    "a bool is a number": ((BOOL,), ["validator"], ["registry", "loop"]),
    "and there are no limits": ((BOOL, *NO_LIMITS), ["exits", "validator"], ["registry", "loop"]),
    "properties have to be there": (
        (('properties = schema.get("properties", {})', 'properties = schema["properties"]'),), ["validator"],
        ["registry", "loop"]),
    "text ends a run": ((("if not calls:", "if not calls or reply.content:"),), ["loop"], ["exits"]),
}


@pytest.mark.parametrize("why", CONSEQUENCES)
def test_what_to_practise_goes_by_the_size_of_the_trouble_that_is_a_parts_own_and_leaves_no_failing_part_out(
    tmp_path, why
):
    faults, own, follows = CONSEQUENCES[why]
    text = PLAIN
    for old, new in faults:
        assert text.count(old) == 1
        text = text.replace(old, new)
    state = begin(tmp_path, 25, released=5)
    state.ticks = {criterion.name: "fine" for criterion in RUBRIC}
    state.file.write_text(text, encoding="utf-8")
    state.run_checks()
    notebooks = {part.name: notebook_named(part.notebook).file for part in PARTS[:5]}
    failing = [(file, reason) for file, reason in practised(state) if " hold" in reason]
    assert [file for file, _ in failing] == [notebooks[name] for name in own + follows]
    assert ["perhaps because of a part before it" in reason for _, reason in failing] == (
        [False] * len(own) + [True] * len(follows))
    assert list(state.failed_runs[name] for name in own + follows) == [1] * len(own) + [0] * len(follows)
    fine = practice_blocks(state)[-2]
    assert not any(file in line for file, _ in practised(state) for line in fine)


def test_a_notebook_is_named_once_whatever_leads_to_it(tmp_path):
    for seed in range(1, 7):
        state = begin(tmp_path, seed=seed, released=6)
        state.verdict = Verdict("said", [["1 x", "does not hold", "Sentence"]], ["Sentence", "why"])
        state.ticks = {criterion.name: "fine" for criterion in RUBRIC} | {"Loop": "weak"}
        state.also_asked = [(PARTS[2], ALSO_ASKED["registry"][0])]
        named = re.findall(r"\d\d_\w+\.ipynb", twin_text(practice_blocks(state)))
        assert len(named) == len(set(named)) >= 7


def test_what_is_new_since_the_last_run_is_said():
    one, two = ["One", "came back: 1"], ["One", "came back: 2"]
    for before, now, said in (
            (({}, []), ({"A": True}, []), ""),
            (({"A": False, "B": True, "C": True}, one), ({"A": True, "B": False, "C": True}, one),
             "Since the last run, what holds now: A; what does not hold any more: B."),
            (({"A": False}, one), ({"A": True, "B": False}, two), "Since the last run, what holds now: A."),
            (({"A": False}, one), ({"A": False}, two),
             "Since the last run the same checks fail, the first with another result."),
            (({"A": False}, one), ({"A": False}, one), ""),
            (({"A": True}, []), ({"A": True, "B": False}, one), ""),
            (({"A": False}, one), ({"A": False, "B": False}, two), "")):
        assert interview.what_is_new(before, now) == said


def test_what_is_new_since_the_last_run_is_not_on_the_page(tmp_path):
    state = judged(tmp_path, 2)
    state.since = "Since the last run, what holds now: A."
    assert state.since in report(state) and state.since not in page_html(state, DAY)


def test_the_report_says_what_is_new_even_if_as_many_hold(tmp_path):
    state = begin(tmp_path, 25, released=5)
    for old, new in ((BOOL), ("copy.deepcopy(messages)", "messages")):
        state.file.write_text(PLAIN.replace(old, new), encoding="utf-8")
        state.run_checks()
    assert ("Since the last run, what holds now: Validator: A bool is never a number; Registry: An argument of the "
            "wrong type runs nothing; Loop: A bool for a number runs nothing and the run goes on; what does not hold "
            "any more: Shapes: What a scripted model keeps is a copy.") in report(state)


DAY = date(2031, 2, 3)


def test_the_page_is_saved_whole_under_a_name_that_is_free(tmp_path):
    state = judged(tmp_path, 2)
    state.verdict.first[1] = "<script>alert(1)</script>"
    names = []
    for tick in (*MARKS, "strong"):
        state.ticks["Loop"] = tick
        names.append(save_page(state, DAY).name)
    assert names == [f"my_interview_result{n}.html" for n in ("", "_2", "_3", "_3")]
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(set(names))
    first, last = ((tmp_path / name).read_text(encoding="utf-8") for name in (names[0], names[-1]))
    assert "<script>" not in last and "&lt;script&gt;" in last and last.endswith("</html>\n")
    loop = RUBRIC[3]
    assert html.escape(loop.weak) in first and html.escape(loop.weak) not in last
    assert html.escape(loop.strong) in last and "<td>02 Validator (02_validator.ipynb)</td>" in last


def test_the_page_has_its_day_the_change_the_times_and_the_file_that_was_judged(tmp_path):
    state = begin(tmp_path)
    state.file.write_text("x = '<b>'  # mine\n", encoding="utf-8")
    watch = Watch()
    state.clock = Clock(45, watch)
    state.clock.start()
    for _ in range(6):
        state.release()
        watch.seconds += 120
    state.run_checks()
    state.file.write_text("y = 2", encoding="utf-8")
    text = save_page(state, DAY).read_text(encoding="utf-8")
    assert "<h1>Mock interview, 2031-02-03</h1>" in text and html.escape(state.follow_up.code) in text
    assert "<td>Validator</td><td>6</td><td>2:00</td>" in text and "12:00 minutes used" in text
    assert html.escape("x = '<b>'  # mine") in text and "y = 2" not in text and "The rubric comes next" not in text


def test_a_page_that_cannot_be_made_or_written_leaves_the_folder_as_it_was(tmp_path):
    state = judged(tmp_path)
    before = save_page(state, DAY).read_text(encoding="utf-8")
    state.text = "half of a pair: \ud800"  # so that the page cannot be written
    with pytest.raises(UnicodeEncodeError):
        write_new(tmp_path / "new.html", state.text)
    state.clock = None  # nor made
    with pytest.raises(AttributeError):
        save_page(state, DAY)
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
    "input tokens", "context window", "JSON of a given shape", "streaming", "from one run to the next"])
def test_the_questions_that_every_interview_asks_are_among_them(word):
    assert any(word in q.question for q in QUESTIONS)
    assert any("keep room" in q.reply for q in QUESTIONS)


def test_the_notebook_says_how_many_questions_there_are():
    said = re.findall(r"(\d+) questions", " ".join("".join(cell["source"]) for cell in CELLS))
    assert said and set(said) == {str(len(QUESTIONS))}


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
    return mock_interview(45, 1, tmp_path)


def after_a_restart(tmp_path, minutes=45, seed=1):
    """Return the room as the cell opens it in a new kernel, which knows no room yet."""
    interview_room.ROOMS.clear()
    return mock_interview(minutes, seed, tmp_path)


def test_nothing_is_written_before_a_button_is_pressed(room, tmp_path):
    benches = [room, room.rubric(), room.ask_aloud(), room.result()]
    assert [bench._repr_mimebundle_() and bench.error_box.value for bench in benches] == [""] * 4
    assert list(tmp_path.iterdir()) == []
    for name in ("start", "next", "checks"):
        room.buttons[name].click()
        after_a_restart(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["my_interview_state.json"]


def test_the_parts_are_released_in_order_one_at_a_time(room):
    shown = []
    for _ in range(7):
        room.buttons["next"].click()
        shown.append(room._asked.value.count("<summary>Stuck for two minutes?</summary>"))
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
    room.seed.value = "2"
    assert room.interview.seed == 2 and questions.question != first and room.buttons["again"].disabled


@pytest.mark.parametrize("begin_with", ["start", "next", "checks"])
def test_an_interview_that_has_begun_is_kept_until_start_again_is_pressed_and_confirmed(room, begin_with):
    rubric, aloud = room.rubric(), room.ask_aloud()
    rubric.choices["Exits"].value, aloud.tick.value = "weak", "fine"
    room.buttons[begin_with].click()
    kept = room.interview
    room.length.value, room.seed.value = 25, "2"
    assert room.interview is kept and (kept.minutes, kept.seed) == (45, 1)
    assert "press Start again" in room._say.value and not room.buttons["again"].disabled
    room.buttons["again"].click()
    assert room.interview is kept and room.buttons["sure"].layout.display is None
    room.buttons["sure"].click()
    new = room.interview
    assert (new.minutes, new.seed, new.released, new.ticks, new.aloud) == (25, 2, 0, {}, {})
    assert rubric.choices["Exits"].value == aloud.tick.value == "not yet" and not kept.clock.runs
    assert room.buttons["again"].disabled and room._report.value == ""


def test_start_again_leaves_the_file_as_it_is_and_says_so(room):
    room.buttons["file"].click()
    room.interview.file.write_text("x = 1", encoding="utf-8")
    room.buttons["next"].click()
    for name in ("again", "sure"):
        room.buttons[name].click()
    assert "Your my_interview.py stays as it is." in room._say.value
    assert room.interview.file.read_text(encoding="utf-8") == "x = 1"


def test_start_again_is_asked_about_and_forgotten_when_something_else_is_pressed(room):
    room.buttons["next"].click()
    assert room.buttons["sure"].layout.display == "none"
    for _ in range(2):
        room.buttons["again"].click()
    assert "Press Yes, start again if you mean it." in room._say.value, "a double click confirms nothing"
    assert room.buttons["sure"].layout.display is None and room.interview.released == 1
    assert room.buttons["aside"].layout.display == "none", "there is no file to keep"
    room.buttons["next"].click()
    assert room.buttons["sure"].layout.display == "none" and room.interview.released == 2


def test_start_again_offers_to_keep_the_file_under_a_name_that_is_free(room, tmp_path):
    (tmp_path / "my_interview_1.py").write_text("older", encoding="utf-8")
    room.interview.file.write_text("mine", encoding="utf-8")
    room.buttons["next"].click()
    assert room.buttons["aside"].layout.display == "none"
    room.buttons["again"].click()
    assert room.buttons["aside"].layout.display is None
    room.buttons["aside"].click()
    assert "Your file is now my_interview_2.py." in room._say.value and room.interview.released == 0
    assert (tmp_path / "my_interview_2.py").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "my_interview_1.py").read_text(encoding="utf-8") == "older" and not room.interview.has_file


@pytest.mark.parametrize(("make", "what"), [
    (lambda path: path.mkdir(), "a folder"), (lambda path: path.symlink_to("gone.py"), "a link to a file that is gone"),
])
def test_what_stands_in_the_way_of_the_file_is_named_with_a_way_out(room, make, what):
    try:
        make(room.interview.file)
    except OSError:
        pytest.skip("no links can be made here")
    for name, shown in (("file", room._say), ("checks", room._report), ("aside", room._say)):
        room.buttons[name].click()
        assert f"my_interview.py is {what}: rename it or take it away, then press Make" in shown.value
    assert not list(room.interview.folder.glob("my_interview_1*"))


@pytest.mark.parametrize("typed", ["1.5", "a", "-1", "99999", "", "²"])
def test_what_is_no_seed_is_said_to_be_none_and_changes_nothing(room, typed):
    room.buttons["next"].click()
    kept = room.interview
    room.length.value = 25
    assert "We go on with 45 minutes, seed 1." in room._say.value
    room.seed.value = typed
    assert f"“{typed}” is no seed, which is a whole number from 0 to 9999: it is 1 again." in room._say.value
    assert room.interview is kept and room.seed.value == "1"


def test_no_button_can_be_pressed_while_the_checks_run(room):
    seen = []
    room.interview.run_checks = lambda: seen.extend(button.disabled for button in room.buttons.values())
    room.buttons["checks"].click()
    assert seen and all(seen) and not room.buttons["checks"].disabled


def test_the_verdict_stands_beside_the_button(room):
    assert "hold" not in room._headline.value
    room.buttons["next"].click()
    room.interview.file.write_text("x = 1", encoding="utf-8")
    room.buttons["checks"].click()
    assert "0 of 16 hold" in room._headline.value


def test_when_the_minutes_of_a_part_are_over_the_interviewer_says_so_once(room):
    watch = Watch()
    room.interview.clock = Clock(45, watch)
    room.buttons["start"].click()
    room.buttons["next"].click()
    said = []
    for seconds in (239, 1, 60):
        watch.seconds += seconds
        before = room._say.value
        room.keep_pace()
        said.append(room._say.value != before)
    assert said == [False, True, False] and "The minutes for “Shapes” are over." in room._say.value
    room.buttons["next"].click()
    assert "Validator: 0:00 of 6 minutes" in room._clock.value
    watch.seconds += 360
    room.keep_pace()
    assert "The minutes for “Validator” are over." in room._say.value
    table = result_blocks(room.interview)[1]
    assert table[:3] == [["part", "minutes", "minutes used"], ["Shapes", "4", "5:00"], ["Validator", "6", "6:00"]]
    assert table[-1] == ["Questions aloud", "5", "–"]


def test_the_time_of_the_questions_is_not_that_of_the_last_part(room):
    watch, aloud = Watch(), room.ask_aloud()
    room.interview.clock = Clock(45, watch)
    room.buttons["start"].click()
    aloud.buttons["more"].click()
    assert room.interview.aloud_began is None, "no part came before"
    room.buttons["next"].click()
    for button in (aloud.buttons["more"], aloud.buttons["next"], room.buttons["checks"]):
        watch.seconds += 29
        button.click()
    assert "Questions aloud: 0:58 of 5 minutes" in room._clock.value
    table = result_blocks(room.interview)[1]
    assert table[1] == ["Shapes", "4", "0:29"] and table[-1] == ["Questions aloud", "5", "0:58"]
    room.buttons["next"].click()
    assert room.interview.used_by_part()[0][1] == 87 and "Validator: 0:00" in room._clock.value


def test_an_interview_goes_on_after_the_kernel_was_started_again(room, tmp_path):
    watch = Watch()
    room.interview.clock = Clock(45, watch)
    room.buttons["start"].click()
    for _ in range(3):
        room.buttons["next"].click()
        watch.seconds += 120
    rubric, aloud = room.rubric(), room.ask_aloud()
    room.interview.failed, room.interview.failed_runs = {"loop": ["Sentence"]}, {"loop": 2}
    rubric.choices["Loop"].value, aloud.tick.value = "weak", "fine"
    after = after_a_restart(tmp_path, 25, 2)
    said = ("We go on with the interview of 45 minutes, seed 1, left at 39:00 after 3 parts; its marks are back. Run "
            "the checks for a report. For a new interview of 25 minutes, seed 2, press Start again.")
    assert said in after._say.value
    assert "3. Registry" in after._asked.value and after.rubric().choices["Loop"].value == "weak"
    aloud = after.ask_aloud()
    assert aloud.place == 1 and aloud.tick.value == "not yet", "it goes on with the first that is not ticked"
    aloud.buttons["back"].click()
    assert aloud.tick.value == "fine" and "3 parts of 6 asked for" in after.result()._page.value
    new = after.interview
    assert (new.minutes, new.seed, new.released, new.clock.text, new.clock.runs) == (45, 1, 3, "39:00", False)
    assert (new.ticks, new.aloud, new.began) == (room.interview.ticks, room.interview.aloud, [0, 120, 240])
    assert (new.failed, new.failed_runs, new.aloud_began) == ({"loop": ["Sentence"]}, {"loop": 2}, 360)
    assert opening(new) == "Run the checks again: there is no report any more."
    assert practice_blocks(new)[-1].endswith("was judged: run the checks again.")


@pytest.mark.parametrize("press", ["start", "next", "checks", "tick", "question"])
def test_nothing_that_is_pressed_after_a_restart_loses_what_was_kept(room, tmp_path, press):
    for name in ("next", "next"):
        room.buttons[name].click()
    room.rubric().choices["Loop"].value = room.ask_aloud().tick.value = "weak"
    after = after_a_restart(tmp_path)
    if press == "tick":
        after.rubric().choices["Exits"].value = "fine"
    elif press == "question":
        after.ask_aloud().buttons["next"].click()
    else:
        after.buttons[press].click()
    again = after_a_restart(tmp_path).interview
    assert again.released == 2 + (press == "next") and again.ticks["Loop"] == "weak" and len(again.aloud) == 1


@pytest.mark.parametrize("presses", [("checks", "next"), ("checks", "tick"), ("next", "next"), ("question", "tick")])
def test_what_is_pressed_after_a_restart_belongs_to_the_interview_that_was_kept(room, tmp_path, presses):
    room.buttons["next"].click()
    room.rubric().choices["Loop"].value = room.ask_aloud().tick.value = "weak"
    after = after_a_restart(tmp_path)
    rubric, aloud = after.rubric(), after.ask_aloud()
    acts = {"tick": lambda: setattr(rubric.choices["Exits"], "value", "fine"),
            "question": lambda: setattr(aloud.tick, "value", "fine")}
    for press in presses:
        acts.get(press, after.buttons.get(press) and after.buttons[press].click)()
        assert after.error_box.value == ""
    assert [file.name for file in tmp_path.iterdir()] == ["my_interview_state.json"]


def test_a_part_that_is_asked_for_while_the_clock_does_not_run_says_so_and_how_to_go_on(room, tmp_path):
    def says():
        room.buttons["next"].click()
        return room._say.value.partition("minutes.")[2].removesuffix("</p>").strip()

    room.interview.clock = Clock(45, watch := Watch())
    before, _, running = says(), room.buttons["start"].click(), says()
    watch.seconds += 5
    room.buttons["start"].click()
    assert "The clock does not run: press Start the clock." in before
    assert "The clock" not in running and "The clock does not run: press Go on." in says()


def test_an_interview_that_another_takes_the_place_of_is_kept_under_a_name_that_is_free(room, tmp_path):
    state = tmp_path / "my_interview_state.json"
    for number in (1, 2):
        room.buttons["next"].click()
        before = state.read_bytes()
        for name in ("again", "sure"):
            room.buttons[name].click()
        aside = f"my_interview_state_{number}.json"
        assert f"The parts and marks of the last one are now in {aside}." in room._say.value
        assert (tmp_path / aside).read_bytes() == before and not state.exists()
    (tmp_path / "my_interview_state_1.json").rename(state)
    assert after_a_restart(tmp_path).interview.released == 1, "it can be gone on with"


def test_the_cell_that_is_run_again_shows_the_same_interview(room, tmp_path):
    rubric = room.rubric()
    room.buttons["next"].click()
    rubric.choices["Loop"].value = "weak"
    kept = room.interview
    assert mock_interview(45, 1, tmp_path) is room and room.interview is kept
    assert mock_interview(25, 2, tmp_path) is room and room.interview is kept
    assert "For a new interview of 25 minutes, seed 2, press Start again." in room._say.value
    rubric.choices["Exits"].value = "fine"
    assert kept.ticks == {"Loop": "weak", "Exits": "fine"}
    for name in ("again", "sure"):
        room.buttons[name].click()
    assert mock_interview(60, 3, tmp_path) is room and (room.interview.minutes, room.interview.seed) == (60, 3)


WHOLE = {"minutes": 45, "seed": 1, "released": 1, "began": [0.0], "used": 5.0}
BAD = ({"minutes": 7}, {"seed": -1}, {"released": 2}, {"began": [None]}, {"used": "x"}, {"used": float("nan")},
       {"ticks": {"Loop": "great"}}, {"ticks": {"x": "weak"}}, {"ticks": 5}, {"aloud": {"x": 3}},
       {"failed": {"loop": 3}}, {"failed_runs": {"loop": "many"}}, {"aloud_began": []})


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "\0", "[" * 100_000, *(json.dumps(WHOLE | bad) for bad in BAD)],
                         ids=range(6 + len(BAD)))
def test_what_was_kept_and_cannot_be_read_is_put_aside_and_told(tmp_path, text):
    state = tmp_path / "my_interview_state.json"
    state.write_text(text, encoding="utf-8")
    room = after_a_restart(tmp_path)
    assert "my_interview_state.json holds no interview that can be read, so this is a new one." in room._say.value
    room.buttons["next"].click()
    assert "was not of this interview; it is now my_interview_state_1.json." in room.error_box.value
    assert (tmp_path / "my_interview_state_1.json").read_text(encoding="utf-8") == text
    room.buttons["next"].click()
    assert room.error_box.value == "" and after_a_restart(tmp_path).interview.released == 2


def test_what_another_kernel_kept_in_the_same_place_is_put_aside_and_not_written_over(room, tmp_path):
    room.buttons["next"].click()
    (tmp_path / "my_interview_state.json").write_text(json.dumps(WHOLE), encoding="utf-8")
    room.buttons["next"].click()
    assert json.loads((tmp_path / "my_interview_state_1.json").read_text(encoding="utf-8")) == WHOLE
    assert after_a_restart(tmp_path).interview.released == 2


def test_the_clock_alone_puts_nothing_aside_that_another_notebook_keeps(room, tmp_path):
    watch, state = Watch(), tmp_path / "my_interview_state.json"
    room.interview.clock = Clock(45, watch)
    room.buttons["start"].click()
    room.buttons["next"].click()
    watch.seconds += 20
    room.beat()
    assert json.loads(state.read_text(encoding="utf-8"))["used"] == 20
    state.write_text(json.dumps(WHOLE), encoding="utf-8")
    watch.seconds += 20
    room.beat()
    assert json.loads(state.read_text(encoding="utf-8")) == WHOLE and not room.error_box.value
    room.buttons["next"].click()
    assert "it is now my_interview_state_1.json. If the interview is open in two notebooks," in room.error_box.value


def test_while_the_checks_run_this_stands_beside_the_button(room, monkeypatch):
    said = []
    monkeypatch.setattr(room.interview, "run_checks", lambda: said.append(room._headline.value))
    room.buttons["checks"].click()
    assert ["The checks run …" in text for text in [*said, room._headline.value]] == [True, False]


def test_that_nothing_can_be_kept_is_said_once_and_why(room, tmp_path):
    (tmp_path / "my_interview_state.json").mkdir()
    said = []
    for _ in range(2):
        room.buttons["next"].click()
        said.append("Your parts and marks are not kept, because my_interview_state.json is a folder." in
                    room.error_box.value)
    assert said == [True, False]
    for name in ("again", "sure"):
        room.buttons[name].click()
    assert room.interview.released == 0 and [file.name for file in tmp_path.iterdir()] == ["my_interview_state.json"]


def test_the_rubric_shows_no_mark_for_a_change_that_is_not_asked_for(room):
    rubric = room.rubric()
    change, exits = rubric.choices["A change"], rubric.choices["Exits"]
    assert change.layout.display is None
    room.length.value = 25
    assert change.layout.display == "none" and exits.layout.display is None
    assert not any(row.layout.display is None for row in rubric._rows["A change"])


def test_a_change_can_be_ticked_once_it_was_asked_for_and_is_not_open_before(room):
    rubric = room.rubric()
    for open_marks in (6, 6, 6, 6, 6, 7):
        assert rubric.choices["A change"].disabled and not rubric.choices["Exits"].disabled
        room.buttons["next"].click()
        room.interview.verdict = Verdict("said", [["1 x", "holds", "Sentence"]])
        assert f"{open_marks} of {open_marks} marks" in practice_blocks(room.interview)[-1]
    assert not rubric.choices["A change"].disabled


def test_each_part_has_a_nudge_for_who_is_alone():
    assert all(part.nothing for part in PARTS)


def test_the_minutes_of_the_parts_stay_in_the_room(room):
    for _ in range(3):
        assert "<td>Validator</td><td>6</td>" in room._asked.value
        room.buttons["next"].click()


def test_there_is_a_way_back_to_the_question_before(room):
    aloud = room.ask_aloud()
    first = aloud.question
    assert aloud.buttons["back"].disabled
    aloud.buttons["next"].click()
    assert aloud.question != first and not aloud.buttons["back"].disabled
    assert aloud.buttons["next"].description == "Next question"
    for _ in range(len(QUESTIONS) - 2):
        aloud.buttons["next"].click()
    assert aloud.buttons["next"].description == "Begin again with the first"
    for _ in range(2):
        aloud.buttons["next"].click()
    aloud.buttons["back"].click()
    assert aloud.question == first


def test_what_was_saved_is_said_until_a_mark_changes_or_saving_fails(room, tmp_path):
    rubric, result = room.rubric(), room.result()
    for change in (lambda: setattr(rubric.choices["Loop"], "value", "weak"), room.buttons["next"].click,
                   lambda: [room.buttons[name].click() for name in ("again", "sure")]):
        result.save_button.click()
        assert "Saved as my_interview_result" in result._saved.value
        change()
        assert result._saved.value == ""
    result.save_button.click()
    room.interview.folder = tmp_path / "gone"
    result.save_button.click()
    assert result._saved.value == "" and "That did not work" in result.error_box.value


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
    text = twin_text(result_blocks(room.interview))
    assert "One of the two limits, or a budget that is looked at" in text
    assert "1 question answered aloud: 0 strong, 1 fine" in text
    rubric.choices["Exits"].value = aloud.tick.value = "not yet"
    assert "What you ticked" not in result._page.value and room.interview.aloud == {}


def test_what_is_stored_in_the_notebook_is_the_same_whatever_was_kept(room, tmp_path):
    def stored(room):
        return [bench.twin() for bench in (room, room.rubric(), room.ask_aloud(), room.result())]

    before = stored(room)
    for name in ("start", "file", "next"):
        room.buttons[name].click()
    (tmp_path / "my_interview.py").write_text("import json\n", encoding="utf-8")
    room.rubric().choices["Shapes"].value = room.ask_aloud().tick.value = "weak"
    assert stored(room) == stored(after_a_restart(tmp_path)) == before
    assert "We go on" in after_a_restart(tmp_path, 25, 2)._say.value
    assert stored(mock_interview(25, 2, tmp_path)) == stored(mock_interview(25, 2, tmp_path / "new")) != before


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
    assert "Still open: 7 of 7 marks" in page and "6 parts of 6 asked for" in page and "The rubric" not in page
    assert "The rubric comes next." in room._say.value
    for text in ("x = (", ""):
        room.interview.file.write_text(text, encoding="utf-8")
        room.buttons["checks"].click()
        assert "The rubric comes next." not in room._say.value


def test_an_error_is_shown_in_the_room(room, tmp_path):
    result = room.result()
    room.interview.folder = tmp_path / "gone"
    result.save_button.click()
    assert "That did not work: FileNotFoundError" in result.error_box.value
    room.buttons["file"].click()
    assert "That did not work: FileNotFoundError" in room.error_box.value
    assert result_blocks(room.interview)
