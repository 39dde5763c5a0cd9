"""What every adapter must pass: the cases of the loop, played through a model that is real as far as the loop knows.

A class of tests inherits AdapterCases and gives it a fixture `link`; one does so without a network, one over HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from looplab.provider import Answer, Provider, Refusal, in_order
from support import PLENTY, assert_closed, observations, takes, tool

from agentloop import (
    WEATHER_TASK,
    AgentResult,
    Json,
    Model,
    ModelReply,
    ScriptedModel,
    ToolRegistry,
    Usage,
    anthropic_model,
    asks,
    call,
    continue_agent,
    final,
    first_difference,
    json_text_model,
    openai_model,
    run_agent,
    weather_script,
    weather_world,
)

ANTHROPIC, BEDROCK, MANTLE, OPENAI, JSON_TEXT = "anthropic", "bedrock", "bedrock_mantle", "openai", "json_text"


@dataclass(frozen=True)
class Link:
    """A model, and the provider at the other end of the wire."""

    kind: str
    provider: Provider
    model: Model

    def run(self, script: list[Any], registry: ToolRegistry | None = None, **options: Any) -> AgentResult:
        """Run the weather task, or the one in `options`, while the provider answers from the script."""
        self.provider.answer = in_order(script)
        self.provider.requests.clear()
        limits = {"max_steps": 50, "token_budget": PLENTY} | options
        task = limits.pop("task", WEATHER_TASK)
        return run_agent(task, self.model, registry or weather_world()[0], **limits)

    def shown(self) -> list[int]:
        """Return how many messages each request showed, the system text counted in."""
        return [len(request["messages"]) + ("system" in request) for request in self.provider.requests]

    def last_shown(self) -> list[str]:
        """Return the text with which each request ended: the task, or the observation of its last call."""
        last = [request["messages"][-1]["content"] for request in self.provider.requests]
        return [content if isinstance(content, str) else content[-1].get("content", content[-1].get("text"))
                for content in last]


def model_of(kind: str, client: Any) -> Model:
    """Return the model of an adapter on a client; a model for JSON text is one that is offered no tools."""

    def complete(messages: list[Json]) -> str:
        response = client.chat.completions.create(model="a-model", messages=messages)
        text: str = response.choices[0].message.content
        return text

    makers: dict[str, Callable[[], Model]] = {
        ANTHROPIC: lambda: anthropic_model(client, "a-model"),
        BEDROCK: lambda: anthropic_model(client, "anthropic.a-model-v1:0"),
        MANTLE: lambda: anthropic_model(client, "anthropic.a-model"),
        OPENAI: lambda: openai_model(client, "a-model"),
        JSON_TEXT: lambda: json_text_model(complete),
    }
    return makers[kind]()


class AdapterCases:
    """The cases of the loop, and of replies that are none."""

    def test_the_happy_path_is_the_same_run_as_with_a_script(self, link: Link) -> None:
        result = link.run(weather_script())
        scripted = run_agent(WEATHER_TASK, ScriptedModel(weather_script()), weather_world()[0])
        assert (result.status, result.answer, result.steps) == ("done", "It is 86.0 F in Pune.", 3)
        assert first_difference(result.messages, scripted.messages) is None
        assert link.shown() == [2, 4, 6]
        assert link.last_shown() == [WEATHER_TASK, '{"city": "Pune", "celsius": 30}', "86.0"]

    def test_two_calls_in_one_reply_give_two_observations_in_order(self, link: Link) -> None:
        pune, delhi = call("a", "get_weather", city="Pune"), call("b", "get_weather", city="Delhi")
        together = [asks(pune, delhi)] if link.kind != JSON_TEXT else [asks(pune), asks(delhi)]
        registry, ran = weather_world()
        result = link.run([*together, final("Both are hot.")], registry)
        assert result.answer == "Both are hot." and ran == ["get_weather(Pune)", "get_weather(Delhi)"]
        assert observations(result) == ['{"city": "Pune", "celsius": 30}', '{"city": "Delhi", "celsius": 35}']
        assert_closed(result.messages)

    def test_an_unknown_tool_becomes_an_observation_and_the_run_goes_on(self, link: Link) -> None:
        registry, ran = weather_world()
        result = link.run([asks(call("a", "get_forecast", city="Pune")), final("I cannot tell.")], registry)
        expected = "ERROR: unknown tool 'get_forecast'. Available tools: ['c_to_f', 'get_weather']"
        assert result.status == "done" and ran == [] and observations(result) == [expected]
        assert link.last_shown()[-1] == expected

    @pytest.mark.parametrize(("name", "args", "sentence"), [
        ("get_weather", {}, "missing required argument 'city'"),
        ("c_to_f", {"celsius": "30"}, "argument 'celsius' must be of type number"),
        ("get_weather", {"city": "Pune", "unit": "F"}, "unexpected argument 'unit'"),
        ("c_to_f", {"celsius": True}, "argument 'celsius' must be of type number"),
    ])
    def test_bad_arguments_become_an_observation_and_nothing_runs(
            self, link: Link, name: str, args: Json, sentence: str) -> None:
        registry, ran = weather_world()
        result = link.run([asks(call("a", name, **args)), final("No.")], registry)
        assert result.status == "done" and ran == []
        assert observations(result)[0].startswith(f"ERROR: {sentence}. {name} expects ")

    def test_a_tool_without_arguments_runs_and_refuses_an_extra_one(self, link: Link) -> None:
        registry = tool(lambda: "pong", {"type": "object"}, name="ping")
        result = link.run([asks(call("a", "ping")), asks(call("b", "ping", x=1)), final("Up.")], registry)
        assert result.status == "done"
        assert observations(result) == ['"pong"', "ERROR: unexpected argument 'x'. ping expects {}"]

    def test_a_tool_that_raises_is_observed_and_the_model_recovers(self, link: Link) -> None:
        script = [asks(call("a", "get_weather", city="Atlantis")), *weather_script()]
        result = link.run(script)
        assert result.answer == "It is 86.0 F in Pune."
        assert observations(result)[0] == "ERROR: get_weather failed: KeyError: 'Atlantis'"

    def test_max_steps_calls_a_model_that_never_finishes_exactly_so_often(self, link: Link) -> None:
        forever = [asks(call(f"c{n}", "get_weather", city="Pune")) for n in range(9)]
        result = link.run(forever, max_steps=5)
        assert (result.status, result.answer, result.steps) == ("step_limit", None, 5)
        assert link.shown() == [2, 4, 6, 8, 10]

    def test_a_budget_of_the_full_cost_finishes_and_half_of_it_stops_early(self, link: Link) -> None:
        full = link.run(weather_script())
        assert link.run(weather_script(), token_budget=full.tokens).status == "done"
        half = link.run(weather_script(), token_budget=full.tokens // 2)
        assert half.status == "token_budget" and half.steps == len(link.provider.requests) < 3
        assert_closed(half.messages)

    def test_text_beside_a_call_is_kept_and_is_no_answer(self, link: Link) -> None:
        result = link.run([asks(call("a", "get_weather", city="Pune"), text="Final answer: 30?"), final("30")])
        assert result.answer == "30" and result.messages[2]["content"] == "Final answer: 30?"

    @pytest.mark.parametrize("blank", ["", "  \n"])
    def test_a_reply_with_neither_text_nor_call_ends_the_run_as_an_empty_reply(self, link: Link, blank: str) -> None:
        result = link.run([asks(call("a", "get_weather", city="Pune")), final(blank)])
        assert (result.status, result.answer, result.steps) == ("empty_reply", None, 2)

    def test_a_run_that_stopped_goes_on_over_the_same_wire(self, link: Link) -> None:
        stopped = link.run(weather_script(), max_steps=1)
        link.provider.answer = in_order(weather_script()[1:])
        result = continue_agent(stopped, link.model, weather_world()[0], 8, PLENTY)
        assert (result.answer, result.steps) == ("It is 86.0 F in Pune.", 3)

    def test_letters_of_every_kind_arrive_and_half_an_emoji_stops_nothing(self, link: Link) -> None:
        registry = tool(lambda q: q + "\ud83d", takes(q="string"))
        result = link.run([asks(call("a", "t", q="Malmö 日本 🙂")), final("ok")], registry, task="caf\udce9 é")
        assert result.status == "done" and result.messages[2]["tool_calls"][0]["args"] == {"q": "Malmö 日本 🙂"}
        assert "caf? é" in str(link.provider.requests[-1]) and link.last_shown()[-1] == '"Malmö 日本 🙂?"'

    def test_an_error_of_the_provider_passes_through_and_leaves_the_run_so_far(self, link: Link) -> None:
        script: list[Answer] = [asks(call("a", "get_weather", city="Pune")), Refusal(400, "no more")]
        with pytest.raises(Exception, match="no more") as caught:
            link.run(script)
        result = vars(caught.value)["result"]
        assert result.status == "interrupted" and result.steps == 1
        assert_closed(result.messages)


class ToolCallingCases(AdapterCases):
    """The cases of adapters whose API knows calls, stop reasons and usage."""

    @pytest.mark.parametrize(("stop_reason", "calls"), [("truncated", 1), ("truncated", 0), ("refused", 0)])
    def test_a_reply_that_was_cut_off_or_refused_is_no_answer_and_its_calls_do_not_run(
            self, link: Link, stop_reason: str, calls: int) -> None:
        registry, ran = weather_world()
        asked = [call("a", "get_weather", city="Pune")][:calls]
        result = link.run([ModelReply("It is", asked, stop_reason=stop_reason)], registry)
        assert (result.status, result.answer, ran) == (stop_reason, None, [])
        assert result.messages[-1] == {"role": "assistant", "content": "It is", "tool_calls": []}

    def test_a_run_that_was_cut_off_can_go_on(self, link: Link) -> None:
        stopped = link.run([ModelReply("It is ", stop_reason="truncated")])
        link.provider.answer = in_order([final("86.0 F.")])
        assert continue_agent(stopped, link.model, weather_world()[0], 8, PLENTY).answer == "86.0 F."

    def test_the_usage_that_the_provider_counted_is_what_was_spent(self, link: Link) -> None:
        usages = [Usage(100, 20), Usage(150, 10), Usage(180, 9)]
        script = [replace(reply, usage=usage) for reply, usage in zip(weather_script(), usages)]
        assert link.run(script).tokens == 120 + 160 + 189

    @pytest.mark.parametrize("name", ["functions.get_weather", "get weather", "wetter_für", "", "w" * 99])
    def test_a_name_that_the_provider_refuses_is_observed_and_does_not_stop_the_run(
            self, link: Link, name: str) -> None:
        result = link.run([asks(call("a", name, city="Pune")), *weather_script()])
        assert result.answer == "It is 86.0 F in Pune."
        assert observations(result)[0].startswith(f"ERROR: unknown tool {name!r}.")

    def test_ids_that_are_missing_or_come_twice_are_replaced_before_they_are_sent_back(self, link: Link) -> None:
        same = [asks(call(i, "get_weather", city="Pune"), call(i, "c_to_f", celsius=30)) for i in ("", "x", "x")]
        result = link.run([*same, final("ok")])
        assert result.answer == "ok"
        assert_closed(result.messages)

    def test_a_run_can_change_its_provider_in_the_middle(self, link: Link) -> None:
        first, *rest = weather_script()
        odd = [asks(call("functions.get_weather:0", "get_weather", city="Pune")), first]
        stopped = run_agent(WEATHER_TASK, ScriptedModel(odd), weather_world()[0], max_steps=2)
        link.provider.answer = in_order(rest)
        assert continue_agent(stopped, link.model, weather_world()[0], 8, PLENTY).answer == "It is 86.0 F in Pune."
