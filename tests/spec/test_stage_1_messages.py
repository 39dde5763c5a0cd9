"""Stage 1: the two dataclasses, the scripted model, and three helpers that write scripts."""

from __future__ import annotations

import dataclasses
from typing import Any

from .candidate import Candidate

MESSAGES: list[dict[str, Any]] = [{"role": "system", "content": "Help."}, {"role": "user", "content": "Hello."}]
MORE = {"role": "assistant", "content": "Hello to you.", "tool_calls": []}


def test_the_file_has_the_names_of_stage_1(mine: Candidate) -> None:
    mine.require("ToolCall", "ModelReply", "ScriptedModel", "call", "asks", "final")


def test_a_tool_call_is_a_dataclass(mine: Candidate) -> None:
    mine.attempt("is_dataclass(ToolCall)", lambda: dataclasses.is_dataclass(mine.ToolCall)).gives(True)


def test_a_reply_is_a_dataclass(mine: Candidate) -> None:
    mine.attempt("is_dataclass(ModelReply)", lambda: dataclasses.is_dataclass(mine.ModelReply)).gives(True)


def test_a_tool_call_holds_an_id_a_name_and_args(mine: Candidate) -> None:
    made = mine.use("ToolCall", "c1", "get_weather", {"city": "Pune"})
    made.has(id="c1", name="get_weather", args={"city": "Pune"})


def test_the_fields_of_a_tool_call_can_be_given_by_name(mine: Candidate) -> None:
    made = mine.use("ToolCall", name="get_weather", args={"city": "Pune"}, id="c1")
    made.has(id="c1", name="get_weather", args={"city": "Pune"})


def test_a_reply_holds_text_and_calls_side_by_side(mine: Candidate) -> None:
    calls = [mine.use("ToolCall", "c1", "ping", {}).returned()]
    mine.use("ModelReply", "I will try.", calls).has(content="I will try.", tool_calls=calls)
    mine.use("ModelReply", tool_calls=calls, content="I will try.").has(content="I will try.", tool_calls=calls)


def test_a_reply_has_no_text_and_no_calls_unless_they_are_given(mine: Candidate) -> None:
    mine.use("ModelReply").has(content="", tool_calls=[])


def test_a_new_reply_does_not_share_its_list_of_calls_with_an_older_one(mine: Candidate) -> None:
    def make_two() -> Any:
        mine.ModelReply().tool_calls.append("a call")
        return mine.ModelReply()

    mine.attempt("ModelReply() after the list of another ModelReply() has grown", make_two).has(tool_calls=[])


def test_call_writes_a_tool_call_with_its_arguments_by_name(mine: Candidate) -> None:
    made = mine.use("call", "c1", "get_weather", city="Pune", days=2)
    made.has(id="c1", name="get_weather", args={"city": "Pune", "days": 2})
    made.is_a(mine.ToolCall)


def test_call_without_arguments_writes_empty_args(mine: Candidate) -> None:
    mine.use("call", "c1", "ping").has(id="c1", name="ping", args={})


def test_asks_writes_a_reply_with_its_calls_in_order(mine: Candidate) -> None:
    calls = [mine.use("ToolCall", "c1", "ping", {}).returned(), mine.use("ToolCall", "c2", "pong", {}).returned()]
    made = mine.use("asks", *calls)
    made.has(tool_calls=calls)
    made.is_a(mine.ModelReply)


def test_final_writes_a_reply_without_calls(mine: Candidate) -> None:
    made = mine.use("final", "It is warm.")
    made.has(content="It is warm.", tool_calls=[])
    made.is_a(mine.ModelReply)


def test_a_scripted_model_replays_its_replies_in_order(mine: Candidate) -> None:
    def replay() -> list[str]:
        model = mine.ScriptedModel([mine.ModelReply("one"), mine.ModelReply("two")])
        return [model(MESSAGES, []).content, model(MESSAGES, []).content]

    mine.attempt('two calls of ScriptedModel([ModelReply("one"), ModelReply("two")])', replay).gives(["one", "two"])


def test_a_scripted_model_keeps_what_it_was_shown_at_every_call(mine: Candidate) -> None:
    def replay() -> list[Any]:
        model = mine.ScriptedModel([mine.ModelReply("one"), mine.ModelReply("two")])
        model(MESSAGES, [])
        model([*MESSAGES, MORE], [])
        return list(model.seen)

    tried = ".seen of a ScriptedModel that was called with 2 messages, then with 3"
    mine.attempt(tried, replay).gives([MESSAGES, [*MESSAGES, MORE]])


def test_what_a_scripted_model_keeps_is_a_copy(mine: Candidate) -> None:
    def replay() -> list[Any]:
        model, messages = mine.ScriptedModel([mine.ModelReply("one")]), list(MESSAGES)
        model(messages, [])
        messages.append(MORE)
        return list(model.seen)

    tried = ".seen of a ScriptedModel that was called with a list of 2 messages, which has grown to 3 since"
    mine.attempt(tried, replay).gives([MESSAGES])


def test_a_script_that_ran_out_fails_loudly(mine: Candidate) -> None:
    def replay() -> Any:
        model = mine.ScriptedModel([mine.ModelReply("one")])
        model(MESSAGES, [])
        return model(MESSAGES, [])

    trial = mine.attempt("the second call of a ScriptedModel with one reply", replay)
    trial.raises("script ran out", AssertionError)
