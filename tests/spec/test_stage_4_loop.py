"""Stage 4: run_agent asks the model, runs the calls it asks for, and feeds the results back until it asks for none."""

from __future__ import annotations

import json

from .candidate import Candidate
from .play import HAPPY_PATH, LOOK_UP, Call, Play, asks, call, final, play
from .world import ANSWER, TASK, WEATHER, build_registry

ALL = (*WEATHER, "ping")
SORRY = "I cannot say."


def check_refused(mine: Candidate, wrong: Call, observation: str) -> None:
    """Expect that a wrong call runs nothing, is answered, and that the run goes on to its end."""
    run = play(mine, asks(wrong), final(SORRY))
    run.runs()
    run.observes(observation)
    run.ends(status="done", answer=SORRY)


def call_and_final(mine: Candidate, *calls: Call, tools: tuple[str, ...] = WEATHER) -> Play:
    """Run these calls in one reply, then a final answer."""
    return play(mine, asks(*calls), final(SORRY), tools=tools)


def test_the_file_has_the_names_of_stage_4(mine: Candidate) -> None:
    mine.require("ToolCall", "ModelReply", "ToolRegistry", "run_agent")


def test_a_reply_without_calls_ends_the_run_with_its_text_as_the_answer(mine: Candidate) -> None:
    run = play(mine, final("Hello."))
    run.ends(status="done", answer="Hello.")
    run.shows(2)


def test_a_reply_without_calls_ends_the_run_even_if_it_has_no_text(mine: Candidate) -> None:
    run = play(mine, final(""))
    run.ends(status="done")
    run.shows(2)


def test_the_model_is_first_shown_a_system_message_and_the_task(mine: Candidate) -> None:
    run = play(mine, final("Hello."))
    run.holds({"role": "system"}, {"role": "user", "content": TASK}, {"role": "assistant"})
    run.trial.expect(run.shown[0] == run.messages[:2], f"a model that is shown {run.messages[:2]}", f"{run.shown[0]}")


def test_the_happy_path_ends_with_the_answer_of_the_last_reply(mine: Candidate) -> None:
    play(mine, *HAPPY_PATH).ends(status="done", answer=ANSWER)


def test_the_happy_path_shows_the_model_2_then_4_then_6_messages(mine: Candidate) -> None:
    play(mine, *HAPPY_PATH).shows(2, 4, 6)


def test_the_happy_path_runs_each_tool_once(mine: Candidate) -> None:
    play(mine, *HAPPY_PATH).runs("get_weather", "c_to_f")


def test_the_happy_path_leaves_seven_messages(mine: Candidate) -> None:
    play(mine, *HAPPY_PATH).holds(
        {"role": "system"},
        {"role": "user", "content": TASK},
        {"role": "assistant", "tool_calls": [{"id": "c1", "name": "get_weather", "args": {"city": "Pune"}}]},
        {"role": "tool", "tool_call_id": "c1", "name": "get_weather", "content": '{"city": "Pune", "celsius": 30}'},
        {"role": "assistant", "tool_calls": [{"id": "c2", "name": "c_to_f", "args": {"celsius": 30}}]},
        {"role": "tool", "tool_call_id": "c2", "name": "c_to_f", "content": "86.0"},
        {"role": "assistant", "content": ANSWER, "tool_calls": []},
    )


def test_from_the_second_call_on_the_last_message_shown_is_a_tool_result(mine: Candidate) -> None:
    run = play(mine, *HAPPY_PATH)
    run.shows(2, 4, 6)
    for number, messages in enumerate(run.shown[1:], 2):
        role = messages[-1]["role"]
        run.trial.expect(role == "tool", f"the role `tool` in the last message of model call {number}", f"`{role}`")


def test_the_model_is_shown_the_specs_of_the_tools_at_every_call(mine: Candidate) -> None:
    run = play(mine, *HAPPY_PATH)
    run.shows(2, 4, 6)
    specs = mine.attempt("specs()", lambda: build_registry(mine, WEATHER, []).specs()).returned()
    for number, shown in enumerate(run.specs_shown, 1):
        run.trial.expect(shown == specs, f"what specs() lists, shown at model call {number}", f"{shown}")


def test_text_beside_a_call_is_not_the_answer(mine: Candidate) -> None:
    run = play(mine, *HAPPY_PATH)
    run.trial.expect(run.trial.field("answer") != LOOK_UP, "another answer than the text beside a call", LOOK_UP)
    run.ends(answer=ANSWER)


def test_text_beside_a_call_is_kept_in_its_message(mine: Candidate) -> None:
    run = play(mine, HAPPY_PATH[0], final(SORRY))
    kept = {"role": "assistant", "content": LOOK_UP, "tool_calls": [{"id": "c1", "name": "get_weather"}]}
    run.holds({"role": "system"}, {"role": "user"}, kept, {"role": "tool"}, {"role": "assistant"})


def test_two_calls_in_one_reply_both_run_and_get_one_result_each_in_order(mine: Candidate) -> None:
    run = call_and_final(mine, call("c1", "c_to_f", celsius=30), call("c2", "get_weather", city="Delhi"))
    run.runs("c_to_f", "get_weather")
    run.holds(
        {"role": "system"},
        {"role": "user"},
        {"role": "assistant", "tool_calls": [{"id": "c1", "name": "c_to_f"}, {"id": "c2", "name": "get_weather"}]},
        {"role": "tool", "tool_call_id": "c1", "name": "c_to_f", "content": "86.0"},
        {"role": "tool", "tool_call_id": "c2", "name": "get_weather", "content": '{"city": "Delhi", "celsius": 35}'},
        {"role": "assistant", "content": SORRY},
    )
    run.shows(2, 5)


def test_two_calls_of_the_same_tool_are_told_apart_by_their_ids(mine: Candidate) -> None:
    run = call_and_final(mine, call("b", "get_weather", city="Delhi"), call("a", "get_weather", city="Pune"))
    run.holds(
        {"role": "system"},
        {"role": "user"},
        {"role": "assistant"},
        {"role": "tool", "tool_call_id": "b", "content": '{"city": "Delhi", "celsius": 35}'},
        {"role": "tool", "tool_call_id": "a", "content": '{"city": "Pune", "celsius": 30}'},
        {"role": "assistant"},
    )


def test_a_call_that_fails_does_not_keep_the_next_one_from_running(mine: Candidate) -> None:
    run = call_and_final(mine, call("c1", "get_weather", city="Atlantis"), call("c2", "get_weather", city="Pune"))
    run.runs("get_weather", "get_weather")
    run.observes("ERROR: get_weather failed: KeyError: 'Atlantis'", '{"city": "Pune", "celsius": 30}')


def test_an_unknown_tool_is_answered_and_the_run_goes_on(mine: Candidate) -> None:
    names = "['c_to_f', 'get_weather']"
    wrong = call("c1", "get_forecast", city="Pune")
    check_refused(mine, wrong, f"ERROR: unknown tool 'get_forecast'. Available tools: {names}")


def test_a_missing_argument_runs_nothing_and_the_run_goes_on(mine: Candidate) -> None:
    expected = 'get_weather expects {"city": {"type": "string"}}'
    check_refused(mine, call("c1", "get_weather"), f"ERROR: missing required argument 'city'. {expected}")


def test_text_for_a_number_runs_nothing_and_the_run_goes_on(mine: Candidate) -> None:
    expected = 'c_to_f expects {"celsius": {"type": "number"}}'
    wrong = call("c1", "c_to_f", celsius="30")
    check_refused(mine, wrong, f"ERROR: argument 'celsius' must be of type number. {expected}")


def test_an_argument_that_is_not_in_the_schema_runs_nothing_and_the_run_goes_on(mine: Candidate) -> None:
    expected = 'get_weather expects {"city": {"type": "string"}}'
    wrong = call("c1", "get_weather", city="Pune", unit="C")
    check_refused(mine, wrong, f"ERROR: unexpected argument 'unit'. {expected}")


def test_a_bool_for_a_number_runs_nothing_and_the_run_goes_on(mine: Candidate) -> None:
    expected = 'c_to_f expects {"celsius": {"type": "number"}}'
    wrong = call("c1", "c_to_f", celsius=True)
    check_refused(mine, wrong, f"ERROR: argument 'celsius' must be of type number. {expected}")


def test_a_tool_without_arguments_runs(mine: Candidate) -> None:
    run = call_and_final(mine, call("c1", "ping"), tools=ALL)
    run.runs("ping")
    run.observes('"pong"')


def test_a_tool_without_arguments_refuses_an_extra_one(mine: Candidate) -> None:
    run = call_and_final(mine, call("c1", "ping", x=1), tools=ALL)
    run.runs()
    run.observes("ERROR: unexpected argument 'x'. ping expects {}")


def test_a_tool_that_raises_is_answered_and_the_model_recovers(mine: Candidate) -> None:
    atlantis = asks(call("c0", "get_weather", city="Atlantis"))
    run = play(mine, atlantis, *HAPPY_PATH)
    run.observes(
        "ERROR: get_weather failed: KeyError: 'Atlantis'", '{"city": "Pune", "celsius": 30}', "86.0"
    )
    run.ends(status="done", answer=ANSWER)


def test_messages_are_appended_and_never_edited(mine: Candidate) -> None:
    run = play(mine, *HAPPY_PATH)
    run.shows(2, 4, 6)
    later = [*run.shown[1:], run.messages]
    for number, (before, after) in enumerate(zip(run.shown, later), 1):
        same = after[: len(before)] == before
        run.trial.expect(same, f"the messages shown at model call {number}, {before}, to stay as they were", f"{after}")


def test_messages_can_be_written_as_json(mine: Candidate) -> None:
    run = play(mine, *HAPPY_PATH)
    messages = run.messages
    again = mine.attempt(f"json.loads(json.dumps({messages}))", lambda: json.loads(json.dumps(messages)))
    again.gives(messages)


def test_a_second_run_begins_with_two_messages_again(mine: Candidate) -> None:
    play(mine, *HAPPY_PATH).shows(2, 4, 6)
    play(mine, *HAPPY_PATH).shows(2, 4, 6)
