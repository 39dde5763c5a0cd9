"""The faults of the clinic: 24 small changes of agentloop.py, each of which breaks one of its rules.

A fault is an old text and a new one; the broken loop is made from agentloop.py when it is asked for. Beside each
change stands a test that passes on our loop and fails on the broken one. It takes the loop as its argument, and is
written as a reader writes it in a cell.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import agentloop as ours
from agentloop import Json
from looplab.cases import attempt, define, what_came_back

Test = Callable[[Any], None]

LEVELS = {1: "the seven failures of first loops", 2: "small print", 3: "copies, ids, stopping and going on"}
TRIED = sys.modules["loop_under_test"] = ModuleType("loop_under_test")  # a dataclass looks its own module up


@dataclass(frozen=True)
class Fault:
    """One change of agentloop.py: what ours does, what the broken loop does, where to look first, and a test.

    `misses` are two wrong diagnoses of the same run, each of which something in the run speaks against.
    """

    number: int
    level: int
    rule: str
    wrong: str
    misses: tuple[str, str]
    hint: str
    old: str
    new: str
    test: Test

    @property
    def name(self) -> str:
        """The name of the fault, which is that of its test."""
        return self.test.__name__


FAULTS: list[Fault] = []


def fault(level: int, rule: str, wrong: str, misses: tuple[str, str], hint: str,
          old: str, new: str) -> Callable[[Test], Test]:
    """Add a fault whose test is the function below it."""

    def add(test: Test) -> Test:
        FAULTS.append(Fault(len(FAULTS) + 1, level, rule, wrong, misses, hint, old.strip("\n"), new.strip("\n"), test))
        return test

    return add


def our_text() -> str:
    """Return the text of agentloop.py."""
    return Path(str(ours.__file__)).read_text(encoding="utf-8")


def split_text(text: str) -> tuple[str, str]:
    """Cut a text of agentloop.py behind its first five sections, which are the loop."""
    after = re.search(r"^# --- (?![1-5] · )", text, re.MULTILINE)
    return (text[: after.start()], text[after.start() :]) if after else (text, "")


def broken_text(fault: Fault) -> str:
    """Return the text of agentloop.py with a fault; raise ValueError unless its old text stands once in the loop."""
    loop, rest = split_text(our_text())
    if loop.count(fault.old) != 1:
        raise ValueError(f"the old text of {fault.name} stands in agentloop.py {loop.count(fault.old)} times")
    return loop.replace(fault.old, fault.new) + rest


def load(text: str, file: str = "<agentloop>") -> ModuleType:
    """Return the module that the text of a loop makes."""
    module = ModuleType(TRIED.__name__)
    exec(compiled(text, file), vars(module))
    return module


@functools.cache
def compiled(text: str, file: str) -> CodeType:
    """Return the code of a text of agentloop.py, which takes longer to compile than to run."""
    return compile(text, file, "exec", dont_inherit=True)


# --- What the tests use --------------------------------------------------------------------------------------


def run(agentloop, replies, registry=None, **options):
    """Run the weather task on a loop, against a script or another model."""
    model = replies if callable(replies) else agentloop.ScriptedModel(replies)
    registry = registry or agentloop.weather_world()[0]
    return agentloop.run_agent(agentloop.WEATHER_TASK, model, registry, **options)


def observations(result):
    """Return the contents of the tool messages, in order."""
    return [message["content"] for message in result.messages if message["role"] == "tool"]


# --- Level 1 -------------------------------------------------------------------------------------------------


@fault(1, "Only a reply without calls ends the run.",
       "Text beside a call is taken for the final answer.",
       ("The call is cut out of the reply before it enters the list.",
        "The tool's result is lost before the model is asked again."),
       "Read the last reply. Is there nothing left to do?",
       'if not run.messages[-1]["tool_calls"]:',
       'if reply.content or not run.messages[-1]["tool_calls"]:')
def text_ends_the_run(agentloop):
    """The model looks up Pune first."""
    result = run(agentloop, agentloop.weather_script())
    assert result.answer == "It is 86.0 F in Pune."


@fault(1, "Every call of a reply has one observation.",
       "Of several calls in one reply, only the first is run.",
       ("The second call is run, but its observation is lost.", "The second call is refused by the registry."),
       "Count the calls of the first reply, then the observations below it.",
       "for call in open_calls(run.messages):",
       "for call in open_calls(run.messages)[:1]:")
def second_call_dropped(agentloop):
    """The model asks for two cities in one reply."""
    pune, delhi = (agentloop.call(city, "get_weather", city=city) for city in ("Pune", "Delhi"))
    result = run(agentloop, [agentloop.asks(pune, delhi), agentloop.final("Delhi is warmer.")])
    assert [m["tool_call_id"] for m in result.messages if m["role"] == "tool"] == ["Pune", "Delhi"]


@fault(1, "An observation carries the id of the call that it answers.",
       "Observations stand under the ids of other calls.",
       ("The model gives its two calls the wrong ids.",
        "The observations are appended in the wrong order, each under its own id."),
       "Take one id, and read the call and the observation that carry it.",
       """
                for call in open_calls(run.messages):
                    run.answer(call, f"ERROR: {call.error}" if call.error else execute(call))
""", """
                calls = open_calls(run.messages)
                for call, other in zip(calls, reversed(calls)):
                    run.answer(call, f"ERROR: {call.error}" if call.error else execute(other))
""")
def results_swapped(agentloop):
    """The model asks for two cities in one reply."""
    pune, delhi = (agentloop.call(city, "get_weather", city=city) for city in ("Pune", "Delhi"))
    result = run(agentloop, [agentloop.asks(pune, delhi), agentloop.final("Pune is warmer.")])
    assert "Pune" in next(m["content"] for m in result.messages if m.get("tool_call_id") == "Pune")


@fault(1, "The budget is checked before the call, on what the next prompt will cost.",
       "The budget is compared with what is spent, and the next prompt is left out.",
       ("The budget is not checked at all, and the step limit stops the run.",
        "The budget is read as a limit for each step, not for the whole run."),
       "Compare the tokens spent with the budget. When was the last moment to stop?",
       "if run.spent + prompt > token_budget:",
       "if run.spent > token_budget:")
def budget_after_the_call(agentloop):
    """The budget is half of what the whole run costs."""
    half = run(agentloop, agentloop.weather_script()).tokens // 2
    result = run(agentloop, agentloop.weather_script(), token_budget=half)
    assert result.tokens <= half


@fault(1, "Every reply is a step, so a model that never finishes is stopped.",
       "Replies that ask for a call are not counted, so the step limit never comes.",
       ("The budget is checked before the step limit, so the limit never comes.",
        "The step limit comes one step late."),
       "Count the replies, and compare them with max_steps.",
       "self.steps += 1",
       'self.steps += not reply.tool_calls')
def steps_not_counted(agentloop):
    """The model never finishes."""
    never = [agentloop.asks(agentloop.call(f"c{i}", "get_weather", city="Pune")) for i in range(9)]
    result = run(agentloop, never, max_steps=5)
    assert (result.status, result.steps) == ("step_limit", 5)


@fault(1, "An unknown tool is answered with the names there are.",
       "A tool name that does not exist raises an exception.",
       ("The tool's function raises, and nobody catches it.",
        "The call is answered with an error, and the model gives up."),
       "How did the run end, and for what call? Could the model have done something about it?",
       'return f"ERROR: unknown tool {written(name)}. Available tools: {sorted(self._tools)}"',
       "raise KeyError(name)")
def unknown_tool_raises(agentloop):
    """The model asks for a forecast."""
    guess = agentloop.asks(agentloop.call("c1", "get_forecast", city="Pune"))
    result = run(agentloop, [guess, *agentloop.weather_script()])
    assert "get_weather" in observations(result)[0]


@fault(1, "An exception in a tool becomes an observation.",
       "An exception in a tool ends the run.",
       ("The tool does not exist, and looking it up raises.", "The error text reaches the model, which gives up."),
       "The model had an answer ready. Why was it not asked for it?",
       "except (Exception, SystemExit, GeneratorExit) as error:",
       "except (ValueError, SystemExit, GeneratorExit) as error:")
def tool_error_ends_the_run(agentloop):
    """The model asks for Atlantis."""
    atlantis = agentloop.asks(agentloop.call("c1", "get_weather", city="Atlantis"))
    result = run(agentloop, [atlantis, agentloop.final("I know no such city.")])
    assert observations(result) == ["ERROR: get_weather failed: KeyError: 'Atlantis'"]


@fault(1, "An argument that is not in the schema is refused, and nothing runs.",
       "An argument that is not in the schema reaches the tool's function.",
       ("The tool's function has a bug of its own.", "An argument of the wrong type reaches the tool's function."),
       "Whose mistake does the observation speak of, the model's or the tool's?",
       """
        if name not in properties:
            return f"unexpected argument {name!r}"
        if not has_type(value, properties[name]["type"]):
""", """
        if name in properties and not has_type(value, properties[name]["type"]):
""")
def unexpected_argument_passes(agentloop):
    """The model asks for Pune in Fahrenheit."""
    extra = agentloop.asks(agentloop.call("c1", "get_weather", city="Pune", unit="F"))
    result = run(agentloop, [extra, agentloop.final("I cannot say.")])
    assert "unexpected argument 'unit'" in observations(result)[0]


# --- Level 2 -------------------------------------------------------------------------------------------------


@fault(2, "A bool is no number.",
       "`true` passes for a number.",
       ("`true` is turned into text before the function is called.", "The function converts by a wrong formula."),
       "Read the arguments of the call, then what it gave.",
       "type(value) in JSON_TYPES[json_type]",
       "isinstance(value, JSON_TYPES[json_type])")
def bool_is_a_number(agentloop):
    """The model converts a temperature."""
    wrong = agentloop.asks(agentloop.call("c1", "c_to_f", celsius=True))
    result = run(agentloop, [wrong, agentloop.final("It is 33.8 F.")])
    assert observations(result)[0].startswith("ERROR: argument 'celsius' must be of type number")


@fault(2, "Every letter of a result is written as it is.",
       "Letters that are not ASCII are written as escapes, which cost more tokens.",
       ("The tool returns a text that is escaped already.", "The umlaut is lost, so the model cannot know the city."),
       "Read the observation aloud.",
       "return encode(json_copy(value))",
       "return json.dumps(json_copy(value))")
def letters_escaped(agentloop):
    """A tool answers with a city."""
    registry = agentloop.ToolRegistry()
    registry.register("find_city", "Find a city.", {"type": "object"}, lambda: "Zürich")
    find = agentloop.asks(agentloop.call("c1", "find_city"))
    model = agentloop.ScriptedModel([find, agentloop.final("It is Zürich.")])
    assert observations(agentloop.run_agent("Which city is it?", model, registry)) == ['"Zürich"']


@fault(2, "A refusal says what the tool expects.",
       "A refused call is not told what the tool expects.",
       ("The arguments are not checked, and the function raises.", "The refusal names the wrong argument."),
       "Be the model. What would you ask for next, and how do you know?",
       """return f"ERROR: {problem}. {name} expects {to_json(parameters.get('properties', {}))}\"""",
       'return f"ERROR: {problem}"')
def error_without_help(agentloop):
    """The model asks for a town."""
    guess = agentloop.asks(agentloop.call("c1", "get_weather", town="Pune"))
    result = run(agentloop, [guess, agentloop.final("I cannot look that up.")])
    assert '"city"' in observations(result)[0]


@fault(2, "A tool that ran is never reported as if it had not.",
       "A tool that ran is reported as failed, because its result is not JSON.",
       ("The tool's result is sent to the model twice.", "A call that failed is run again without asking the model."),
       "How many seats are booked, and how many did the model want?",
       """return f"ERROR: {name} ran, but its result is not JSON: {describe(error)}; do not repeat it blindly\"""",
       'return f"ERROR: {name} failed: {describe(error)}"')
def ran_but_reported_failed(agentloop):
    """The model books a seat."""
    registry, booked = agentloop.ToolRegistry(), []
    registry.register("book", "Book a seat.", {"type": "object"}, lambda: booked.append("seat") or {"seat"})

    def tries_again(messages, specs):  # as a model does that reads "failed"
        if len(messages) == 2 or "failed" in messages[-1]["content"]:
            return agentloop.asks(agentloop.call(f"c{len(messages)}", "book"))
        return agentloop.final("One seat is booked.")

    agentloop.run_agent("Book a seat.", tries_again, registry, max_steps=3)
    assert booked == ["seat"]


@fault(2, "At most max_steps replies are asked for.",
       "One step more than max_steps is taken.",
       ("A step without a call is not counted.", "The step limit counts tool calls in place of replies."),
       "Count the replies, and compare them with max_steps.",
       "if run.steps >= max_steps:",
       "if run.steps > max_steps:")
def one_step_too_many(agentloop):
    """The limit is 2 steps."""
    result = run(agentloop, agentloop.weather_script(), max_steps=2)
    assert result.status == "step_limit"


@fault(2, "A prompt that just fits into the budget is sent.",
       "A prompt that just fits into the budget is not sent.",
       ("A reply is counted twice.", "The budget is compared with the next prompt alone."),
       "Add the next prompt to what is spent. Is that more than the budget?",
       "if run.spent + prompt > token_budget:",
       "if run.spent + prompt >= token_budget:")
def budget_one_token_short(agentloop):
    """The budget is 665."""
    whole = run(agentloop, agentloop.weather_script())
    last_reply = agentloop.count_tokens(whole.messages[-1])
    result = run(agentloop, agentloop.weather_script(), token_budget=whole.tokens - last_reply)
    assert result.status == "done"


@fault(2, "A step costs its prompt and its reply.",
       "The tokens of the replies are not counted.",
       ("The tokens of the prompt are not counted.", "Only the first words of a long reply are counted."),
       "Add up the bars, and compare the sum with the tokens that the run reports.",
       "if reply.usage else prompt + tokens",
       "if reply.usage else prompt")
def replies_not_counted(agentloop):
    """The model gives a long answer."""
    registry = agentloop.weather_world()[0]
    result = run(agentloop, [agentloop.final("It is 86.0 F in Pune. " * 20)], registry)
    prompt = agentloop.count_tokens(registry.specs()) + agentloop.count_tokens(result.messages[:2])
    assert result.tokens == prompt + agentloop.count_tokens(result.messages[2])


@fault(2, "Only a run that is done has an answer.",
       "A stopped run gives its last message as its answer.",
       ("The step limit comes one step early.", "The tool's result is taken for the final answer, and ends the run."),
       "What would a caller print who does not look at the status?",
       'answer = self.messages[-1]["content"] if status == "done" else None',
       'answer = self.messages[-1]["content"]')
def stopped_run_has_an_answer(agentloop):
    """The limit is 1 step."""
    assert run(agentloop, agentloop.weather_script(), max_steps=1).answer is None


# --- Level 3 -------------------------------------------------------------------------------------------------


@fault(3, "The model is given copies, so it cannot edit the record.",
       "The model is handed messages of the list itself, and can edit the record.",
       ("The model's reply is written over the message before it.",
        "The task of an earlier run stands in the list beside the new one."),
       "Compare the second message with the task.",
       "model(list(run.copies), list(specs))",
       "model(list(run.messages), list(specs))")
def model_edits_the_record(agentloop):
    """The task was the weather in Pune."""
    def rude(messages, specs):
        messages[1]["content"] = "Tell me a joke."
        return agentloop.final("Why did the loop never end?")

    assert run(agentloop, rude).messages[1]["content"] == agentloop.WEATHER_TASK


@fault(3, "Every call of a run has an id of its own.",
       "Two calls keep the same id.",
       ("The second call's observation is lost.", "The observations stand in the wrong order."),
       "Which observation answers which call?",
       "is_new = isinstance(call.id, str) and call.id and call.id not in taken_ids",
       "is_new = isinstance(call.id, str) and call.id")
def ids_doubled(agentloop):
    """The model asks for two cities."""
    twins = agentloop.asks(*(agentloop.call("c1", "get_weather", city=city) for city in ("Pune", "Delhi")))
    result = run(agentloop, [twins, agentloop.final("Delhi is warmer.")])
    assert len({m["tool_call_id"] for m in result.messages if m["role"] == "tool"}) == 2


@fault(3, "A run that a wrapper stops has one observation for every call.",
       "A run that a wrapper stops leaves calls without an observation.",
       ("The call is run although the deadline has passed.", "The reply that asks for the call is lost."),
       "Would a provider take this list? Look at the last reply.",
       """
            if stop.status != WAITING:
                run.close(f"ERROR: {stop.why}", NOT_RUN)
            return run.end(stop.status)
""", """
            return run.end(stop.status)
""")
def stop_leaves_calls_open(agentloop):
    """A deadline passes when the first call is about to run."""
    def too_late(call):
        raise agentloop.Stop("deadline")

    result = run(agentloop, agentloop.weather_script(), execute=too_late)
    assert agentloop.open_calls(result.messages) == []


@fault(3, "After Ctrl-C the run so far is attached to the exception.",
       "Ctrl-C throws away the run so far, and leaves a call without an observation.",
       ("Ctrl-C is taken for an error of the tool, and the model is told so.",
        "The run is stopped before the call reaches the tool."),
       "The model was paid for one reply. Where is it?",
       "    except BaseException as error:",
       "    except Exception as error:")
def ctrl_c_loses_the_run(agentloop):
    """A person presses Ctrl-C while the first call runs."""
    def pressed(city):
        raise KeyboardInterrupt

    registry = agentloop.ToolRegistry()
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    registry.register("get_weather", "Look up a city.", schema, pressed)
    try:
        run(agentloop, agentloop.weather_script(), registry)
    except KeyboardInterrupt as error:
        assert vars(error)["result"].status == "interrupted"


@fault(3, "A call that may have run already is not run again.",
       "A call that was interrupted is run a second time.",
       ("The observation of the interrupted call is written twice.",
        "The model is asked for its first reply once more."),
       "Count the calls that reached the tool's function.",
       """
            if result.status != WAITING:
                run.close(INTERRUPTED, INTERRUPTED)
            while True:
""", """
            while True:
""")
def resumed_run_repeats_a_call(agentloop):
    """The process was killed while the first call ran; later the run goes on."""
    registry, ran = agentloop.weather_world()
    whole = run(agentloop, agentloop.weather_script(), registry, max_steps=1)
    killed = agentloop.AgentResult("interrupted", None, 1, whole.tokens, whole.messages[:3])
    model = agentloop.ScriptedModel([agentloop.final("I do not know what became of it.")])
    agentloop.continue_agent(killed, model, registry, max_steps=8, token_budget=4000)
    assert len(ran) == 1


@fault(3, "Steps and tokens go on counting in a continued run.",
       "A continued run begins with fresh counters.",
       ("The first two steps are lost from the list.", "The tools are run again when the run goes on."),
       "Count the replies in the list, and compare them with the steps that the run reports.",
       "self.steps, self.spent, self.watch = result.steps, result.tokens, watch",
       "self.steps, self.spent, self.watch = 0, 0, watch")
def limits_begin_again(agentloop):
    """The run met max_steps=2, and goes on with max_steps=3."""
    registry, _ = agentloop.weather_world()
    model = agentloop.ScriptedModel(agentloop.weather_script())
    half = run(agentloop, model, registry, max_steps=2)
    whole = agentloop.continue_agent(half, model, registry, max_steps=3, token_budget=4000)
    assert whole.steps == 3 and whole.tokens > half.tokens


@fault(3, "The calls of a reply that was cut off never run.",
       "The calls of a reply that was cut off are run.",
       ("The call runs although its arguments do not fit the schema.",
        "The loop itself cuts the reply and its arguments."),
       "The provider cut the reply off. Can its arguments be trusted?",
       "for call in reply.tool_calls or [] if not reply.stop_reason]",
       "for call in reply.tool_calls or []]")
def cut_off_call_runs(agentloop):
    """The first reply came with the stop reason truncated."""
    half = agentloop.call("c1", "get_weather", city="P")
    cut_off = agentloop.ModelReply("I will look up P", [half], stop_reason="truncated")
    result = run(agentloop, [cut_off, agentloop.final("There is no city P.")])
    assert result.status == "truncated"


@fault(3, "A schema with a rule that cannot be checked is refused.",
       "A rule in a schema is shown to the model, and not checked.",
       ("The model is not shown the rule.", "The call is refused, and the tool runs all the same."),
       "Read the schema that the model was shown, then its call.",
       '("title", "description", "default")',
       '("title", "description", "default", "enum")')
def rule_shown_but_not_checked(agentloop):
    """The model asks for kelvin."""
    schema = {"type": "object", "properties": {"unit": {"type": "string", "enum": ["C", "F"]}}, "required": ["unit"]}
    registry = agentloop.ToolRegistry()
    try:
        registry.register("read_thermometer", "Read it.", schema, lambda unit: 30)
    except agentloop.SchemaError:
        return
    wrong = agentloop.asks(agentloop.call("c1", "read_thermometer", unit="K"))
    model = agentloop.ScriptedModel([wrong, agentloop.final("It is 30 K.")])
    result = agentloop.run_agent("How hot is it in kelvin?", model, registry)
    assert observations(result)[0].startswith("ERROR: ")


# --- In the process ------------------------------------------------------------------------------------------


def try_test(loops: dict[str, str], part: str, code: list[Json], left: list[str]) -> Iterator[Json]:
    """Try a reader's test on some loops, given as texts by name; yield the name before, and what came of it after.

    `part` is the name of the test, `code` is what it needs, `left` are names that could not be taken along.
    """
    defined = attempt(define, {"test": part}, code)
    if defined.error or defined.redefined:
        yield {"on": "the cell"}
        yield {"failed": True, "came_back": what_came_back(defined, left)}
        return
    for name, text in loops.items():
        yield {"on": name}
        outcome = attempt(defined.value["test"], load(text))
        yield {"failed": bool(outcome.error or outcome.redefined), "came_back": what_came_back(outcome, left)}
