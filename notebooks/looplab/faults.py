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
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import agentloop as ours
from agentloop import Json, describe, written
from looplab.cases import attempt, define, what_came_back

Test = Callable[[Any], None]

LEVELS = {1: "failures of first loops", 2: "small print", 3: "copies, ids, promises, stopping and going on"}
TRIED = sys.modules["loop_under_test"] = ModuleType("loop_under_test")  # a dataclass looks its own module up


@dataclass(frozen=True)
class Fault:
    """One change of agentloop.py: what ours does, what the broken loop does, and a test.

    `misses` are wrong diagnoses of the same run, each with what in the run speaks against it. `where` names the
    place of the evidence, `compare` says what to do with it. `given` is told of the case from the first, `needs`
    is what its test may need, and `alike` are the beginnings of sound lines that could break the rule as well.
    """

    number: int
    level: int
    rule: str
    wrong: str
    misses: dict[str, str] = field(hash=False)
    where: str
    compare: str
    old: str
    new: str
    test: Test
    given: str = ""
    needs: str = ""
    alike: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the fault, which is that of its test."""
        return self.test.__name__

    @property
    def title(self) -> str:
        """The setting of the case in one sentence; it must not tell the fault."""
        return str(self.test.__doc__)


FAULTS: list[Fault] = []


def fault(level: int, rule: str, wrong: str, misses: dict[str, str], where: str, compare: str,
          old: str, new: str, **more: Any) -> Callable[[Test], Test]:
    """Add a fault whose test is the function below it."""

    def add(test: Test) -> Test:
        change = old.strip("\n"), new.strip("\n")
        FAULTS.append(Fault(len(FAULTS) + 1, level, rule, wrong, misses, where, compare, *change, test, **more))
        return test

    return add


def get_fault(number: Any) -> Fault:
    """Return a fault by its number; raise ValueError if there is none."""
    if type(number) is not int or not 1 <= number <= len(FAULTS):
        raise ValueError(f"the cases are 1 to {len(FAULTS)}, and this is {written(number)}")
    return FAULTS[number - 1]


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


def load(text: str | bytes, file: str = "<agentloop>") -> ModuleType:
    """Return the module that the text of a loop makes; bytes are read as Python reads a file."""
    module = ModuleType(TRIED.__name__)
    exec(compiled(text, file), vars(module))
    return module


@functools.cache
def compiled(text: str | bytes, file: str) -> CodeType:
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
       {"The call is cut out of the reply before it enters the list.":
            "The reply in the list still has its call.",
        "The tool's result is lost before the model is asked again.":
            "There was no result to lose: no call reached a function.",
        "The step limit stops the run after one step.":
            "The limit is 8 steps, and the exit is not step_limit."},
       "the last reply, and the exit below it",
       "Compare what the last reply asks for with what was run for it.",
       'if not run.messages[-1]["tool_calls"]:',
       'if reply.content or not run.messages[-1]["tool_calls"]:')
def text_ends_the_run(agentloop):
    """The model looks up Pune first."""
    result = run(agentloop, agentloop.weather_script())
    assert result.answer == "It is 86.0 F in Pune."


@fault(1, "Every call of a reply has one observation.",
       "Of several calls in one reply, only the first is run.",
       {"The second call is run, but its observation is lost.":
            "Delhi never reached a function.",
        "The second call is refused by the registry.":
            "A refusal would stand in the list, as an observation that starts with ERROR.",
        "The second call is run in place of the first.":
            "The observation that is there is of Pune, which was asked for first."},
       "the first reply, and the rows below it",
       "Count the calls of the first reply, the observations below it, and the calls that reached a function.",
       "for call in open_calls(run.messages):",
       "for call in open_calls(run.messages)[:1]:")
def second_call_dropped(agentloop):
    """The model asks for two cities in one reply."""
    pune, delhi = (agentloop.call(city, "get_weather", city=city) for city in ("Pune", "Delhi"))
    result = run(agentloop, [agentloop.asks(pune, delhi), agentloop.final("Delhi is warmer.")])
    assert [m["tool_call_id"] for m in result.messages if m["role"] == "tool"] == ["Pune", "Delhi"]


@fault(1, "An observation carries the id of the call that it answers.",
       "Observations stand under the ids of other calls.",
       {"The model gives its two calls the wrong ids.":
            "Each id that the model gave names the city of its own call.",
        "The observations are appended in the wrong order, each under its own id.":
            "The ids of the observations stand in the order of the calls.",
        "Both observations are those of the call that came last.":
            "The two observations differ: one is of Delhi, one of Pune."},
       "the ids: each stands behind a call, and again beside an observation",
       "Take one id, and compare the city of its call with the city of its observation.",
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
       {"The budget is not checked at all, and the step limit stops the run.":
            "The exit is token_budget, after 2 steps of 8.",
        "The budget is read as a limit for each step, not for the whole run.":
            "Neither step cost 341 tokens alone, and the run was stopped all the same.",
        "The replies are left out of what is spent.":
            "The plot adds up prompts and replies, and comes to the same 411 tokens as the report."},
       "the report and the plot",
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
       {"The budget is checked before the step limit, so the limit never comes.":
            "Five steps cost far less than the budget, so the step limit would have come first in either order.",
        "The step limit comes one step late.":
            "Nine replies stand in the list, and the limit is 5: that is more than one late.",
        "A call that was asked for before is not counted as a new step.":
            "The first call had not been asked for before, and the report counts 0 steps."},
       "the report: its steps, beside the replies of the list",
       "Count the replies in the list, and compare them with the steps that the run reports.",
       "self.steps += 1",
       'self.steps += not reply.tool_calls')
def steps_not_counted(agentloop):
    """The model never finishes."""
    never = [agentloop.asks(agentloop.call(f"c{i}", "get_weather", city="Pune")) for i in range(9)]
    result = run(agentloop, never, max_steps=5)
    assert (result.status, result.steps) == ("step_limit", 5)


@fault(1, "An unknown tool is answered with the names there are.",
       "A tool name that does not exist raises an exception.",
       {"The tool's function raises, and nobody catches it.":
            "No call reached a function.",
        "The call is answered with an error, and the model gives up.":
            "An exception came out of the loop, and the model was not asked again.",
        "The arguments do not fit the schema, and checking them raises.":
            "The exception names the tool, and no argument."},
       "the report: what came out of the loop, and what reached a function",
       "Compare the name in the exception with the tools that the model was shown, which unfold under the list.",
       'return f"ERROR: unknown tool {written(name)}. Available tools: {sorted(self._tools)}"',
       "raise KeyError(name)")
def unknown_tool_raises(agentloop):
    """The model asks for a forecast."""
    guess = agentloop.asks(agentloop.call("c1", "get_forecast", city="Pune"))
    result = run(agentloop, [guess, *agentloop.weather_script()])
    assert "get_weather" in observations(result)[0]


@fault(1, "An exception in a tool becomes an observation.",
       "An exception in a tool ends the run.",
       {"The tool does not exist, and looking it up raises.":
            "The call reached a function, so the tool was found.",
        "The error text reaches the model, which gives up.":
            "The model was not asked again: there is one reply, and no answer.",
        "The arguments are of the wrong type, and the function is called all the same.":
            "Atlantis is text, as the schema wants it."},
       "the report: the exception, and the call that reached a function",
       "Compare the exception with the argument of the call. Who could have made something of it, and was not asked?",
       "except (Exception, SystemExit, GeneratorExit) as error:",
       "except (ValueError, SystemExit, GeneratorExit) as error:")
def tool_error_ends_the_run(agentloop):
    """The model asks for Atlantis."""
    atlantis = agentloop.asks(agentloop.call("c1", "get_weather", city="Atlantis"))
    result = run(agentloop, [atlantis, agentloop.final("I know no such city.")])
    assert observations(result) == ["ERROR: get_weather failed: KeyError: 'Atlantis'"]


@fault(1, "An argument that is not in the schema is refused, and nothing runs.",
       "An argument that is not in the schema passes the check.",
       {"The tool's function has a bug of its own.":
            "No call reached the function, so nothing inside it failed.",
        "An argument of the wrong type passes the check.":
            "Pune is text, as the schema wants it.",
        "A required argument is missing, and nobody says so.":
            "The schema requires city, and the call has it."},
       "the observation, and the schema of get_weather, which unfolds under the list",
       "Compare the arguments of the call with the schema. Whose mistake does the observation speak of, the model's "
       "or the tool's?",
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
       "The boolean true passes for a number.",
       {"The boolean true is turned into text before the function is called.":
            "What reached the function is true, without quotes.",
        "The function converts by a wrong formula.":
            "One degree Celsius is 33.8 F, so the formula is right.",
        "The argument is refused, and the function runs with 0 in its place.":
            "Zero degrees would give 32.0, and no refusal stands in the list."},
       "the argument of the call, and the schema of c_to_f, which unfolds under the list",
       "Compare the type of the argument with the type in the schema, then read what it gave.",
       "type(value) in JSON_TYPES[json_type]",
       "isinstance(value, JSON_TYPES[json_type])")
def bool_is_a_number(agentloop):
    """The model converts a temperature."""
    wrong = agentloop.asks(agentloop.call("c1", "c_to_f", celsius=True))
    result = run(agentloop, [wrong, agentloop.final("It is 33.8 F.")])
    assert observations(result)[0].startswith("ERROR: argument 'celsius' must be of type number")


@fault(2, "Every letter of a result is written as it is.",
       "Letters that are not ASCII are written as escapes, which cost more tokens.",
       {"The tool returns a text that is escaped already.":
            "Then the backslash would be doubled, for a text is written as JSON.",
        "The umlaut is lost, so the model cannot know the city.":
            "Nothing is lost: the model answers with Zürich.",
        "The letter is written in another encoding, and has become two others.":
            "Six characters stand in its place, not two letters."},
       "the observation, letter by letter",
       "Compare the letters of the observation with those of the answer. How many characters does the model pay for?",
       "return encode(json_copy(value))",
       "return json.dumps(json_copy(value))",
       alike=("encode, decode = ",))
def letters_escaped(agentloop):
    """A tool answers with a city."""
    registry = agentloop.ToolRegistry()
    registry.register("find_city", "Find a city.", {"type": "object"}, lambda: "Zürich")
    find = agentloop.asks(agentloop.call("c1", "find_city"))
    model = agentloop.ScriptedModel([find, agentloop.final("It is Zürich.")])
    assert observations(agentloop.run_agent("Which city is it?", model, registry)) == ['"Zürich"']


@fault(2, "A refusal says what the tool expects.",
       "A refused call is not told what the tool expects.",
       {"The arguments are not checked, and the function raises.":
            "The observation names no exception, and no call reached a function.",
        "The refusal names the wrong argument.":
            "The tool does require city, and the call does not have it.",
        "The refusal never reaches the model.":
            "The refusal stands in the list, and the model answers to it."},
       "the observation, read with the eyes of the model",
       "Compare what the observation says with what the next call must hold. What would you ask for, and how do you "
       "know?",
       """return f"ERROR: {problem}. {name} expects {to_json(parameters.get('properties', {}))}\"""",
       'return f"ERROR: {problem}"')
def error_without_help(agentloop):
    """The model asks for a town."""
    guess = agentloop.asks(agentloop.call("c1", "get_weather", town="Pune"))
    result = run(agentloop, [guess, agentloop.final("I cannot look that up.")])
    assert '"city"' in observations(result)[0]


@fault(2, "A tool that ran is never reported as if it had not.",
       "A tool that ran is reported as failed, because its result is not JSON.",
       {"The tool's result is sent to the model twice.":
            "No result was sent: each observation is an error.",
        "A call that failed is run again without asking the model.":
            "Each of the three runs has a reply of its own that asked for it.",
        "The function raises after it has booked the seat.":
            "The error speaks of what fits into JSON, which is no matter of the function."},
       "the observations, and the calls that reached a function",
       "Compare what the observation says became of the call with what its error is about. How many seats are booked?",
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
       {"A step without a call is not counted.":
            "The last reply has no call, and the report counts it: 3 steps.",
        "The step limit counts tool calls in place of replies.":
            "Two calls were run, so a limit of 2 calls would have stopped the run before the third reply.",
        "A call that fails gives the run one step more.":
            "No call failed: both observations are results."},
       "the report: its steps, and the exit",
       "Compare the steps with the limit behind them. After which reply did the run have to end?",
       "if run.steps >= max_steps:",
       "if run.steps > max_steps:",
       alike=("self.steps += 1",))
def one_step_too_many(agentloop):
    """The model looks up Pune, then converts."""
    result = run(agentloop, agentloop.weather_script(), max_steps=2)
    assert result.status == "step_limit"


@fault(2, "A prompt that just fits into the budget is sent.",
       "A prompt that just fits into the budget is not sent.",
       {"A reply is counted twice.":
            "The plot counts each reply once, and comes to the 411 tokens of the report.",
        "The budget is compared with the next prompt alone.":
            "The next prompt alone is far below 665.",
        "The prompt that was not sent is counted as spent.":
            "The report says 411 tokens, which is what the two steps cost."},
       "the plot: the dashed bar, and the line of the budget",
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
       {"The tokens of the prompt are not counted.":
            "Without the prompt, the report could not come to 142 tokens: look at the plot.",
        "Only the first words of a long reply are counted.":
            "Even the first words would make it more than the 142 tokens of the prompt.",
        "The tokens of the tools that the model is shown are not counted.":
            "The prompt of the plot holds the tools, and the report has all of its 142 tokens."},
       "the report and the plot; the list is as it should be",
       "The plot adds up the prompt and the reply of each step. Compare its number with the tokens that the run "
       "reports.",
       "if reply.usage else prompt + tokens",
       "if reply.usage else prompt",
       alike=("return max(1, len(text) // 4)",))
def replies_not_counted(agentloop):
    """The model gives a long answer."""
    registry = agentloop.weather_world()[0]
    result = run(agentloop, [agentloop.final("It is 86.0 F in Pune. " * 20)], registry)
    prompt = agentloop.count_tokens(registry.specs()) + agentloop.count_tokens(result.messages[:2])
    assert result.tokens == prompt + agentloop.count_tokens(result.messages[2])


@fault(2, "Only a run that is done has an answer.",
       "A stopped run gives its last message as its answer.",
       {"The step limit comes one step early.":
            "The limit is 1 step, and 1 step was taken.",
        "The tool's result is taken for the final answer, and ends the run.":
            "The exit is step_limit, not done.",
        "The text beside the call is given as the answer.":
            "That text is “I will look up Pune first.”, and the answer is another."},
       "the report: its answer, and the exit; the list is as it should be",
       "Compare the answer with the exit. What would a caller print who does not look at the status?",
       'answer = self.messages[-1]["content"] if status == "done" else None',
       'answer = self.messages[-1]["content"]')
def stopped_run_has_an_answer(agentloop):
    """The limit is 1 step."""
    assert run(agentloop, agentloop.weather_script(), max_steps=1).answer is None


# --- Level 3 -------------------------------------------------------------------------------------------------


@fault(3, "The model is given copies, so it cannot edit the record.",
       "The model is handed messages of the list itself, and can edit the record.",
       {"The model's reply is written over the message before it.":
            "The message before the reply says something else than the reply.",
        "The task of an earlier run stands in the list beside the new one.":
            "One user message stands in the list, not two.",
        "The system message stands in the place of the task.":
            "The system message stands first, as it should, and nowhere else."},
       "the second message",
       "Compare the second message with the task. Who was handed the list, and could write into it?",
       "model(list(run.copies), list(specs))",
       "model(list(run.messages), list(specs))",
       alike=("self.copies.append(", "self.messages.append("))
def model_edits_the_record(agentloop):
    """The task was the weather in Pune."""
    def rude(messages, specs):
        messages[1]["content"] = "Tell me a joke."
        return agentloop.final("Why did the loop never end?")

    assert run(agentloop, rude).messages[1]["content"] == agentloop.WEATHER_TASK


@fault(3, "Every call of a run has an id of its own.",
       "Two calls keep the same id.",
       {"The second call's observation is lost.":
            "Two observations stand in the list, one of them of Delhi.",
        "The observations stand in the wrong order.":
            "Pune was asked for first, and its weather stands first.",
        "The second call is run with the arguments of the first.":
            "The second call reached its function with Delhi."},
       "the ids behind the calls, and beside the observations",
       "Ask of each observation which call it answers, by its id alone.",
       "is_new = isinstance(call.id, str) and call.id and call.id not in taken_ids",
       "is_new = isinstance(call.id, str) and call.id",
       alike=("taken_ids.add(",))
def ids_doubled(agentloop):
    """The model asks for two cities."""
    twins = agentloop.asks(*(agentloop.call("c1", "get_weather", city=city) for city in ("Pune", "Delhi")))
    result = run(agentloop, [twins, agentloop.final("Delhi is warmer.")])
    assert len({m["tool_call_id"] for m in result.messages if m["role"] == "tool"}) == 2


@fault(3, "A run that a wrapper stops has one observation for every call.",
       "A run that a wrapper stops leaves calls without an observation.",
       {"The call is run although the deadline has passed.":
            "No call reached a function.",
        "The reply that asks for the call is lost.":
            "The reply stands in the list, with its call.",
        "The deadline is reported as if the task were done.":
            "The exit is deadline, and there is no answer."},
       "the last reply, and what follows it before the exit",
       "Count the calls of the last reply, and the observations below it. Would a provider take this list?",
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
       {"Ctrl-C is taken for an error of the tool, and the model is told so.":
            "No observation tells the model anything, and the exception came out of the loop.",
        "The run is stopped before the call reaches the tool.":
            "The call reached its function.",
        "The model is asked for one more reply, although a person has stopped the run.":
            "One reply was told, and no other after it."},
       "the report, and the last row of what was told",
       "Ask what the caller has in hand who catches the exception, and whether each call has an observation.",
       "    except BaseException as error:",
       "    except Exception as error:",
       given="What is shown is what was told to watch, message by message, before the exception came out.",
       needs="""
registry.register("get_weather", about, schema, fn) takes a function that raises KeyboardInterrupt.
Catch it around the run; where a loop attaches the run so far, it is error.result.
""")
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
       {"The observation of the interrupted call is written twice.":
            "One observation stands in the list.",
        "The model is asked for its first reply once more.":
            "Its first reply stands in the list once.",
        "The call had not begun when the process ended.":
            "The process ended in the middle of the booking, as the case says."},
       "the report: the calls that reached a function",
       "Compare how often the function ran with how often the model asked for it.",
       """
            if result.status != WAITING:
                run.close(INTERRUPTED, INTERRUPTED)
            while True:
""", """
            while True:
""",
       given="A process that is killed returns no result. What its run had kept is left: the task, and a reply whose "
       "call was under way. Another process makes an interrupted run of that, and continue_agent goes on with it.",
       needs="""
agentloop.AgentResult("interrupted", None, 1, tokens, messages[:3]) is a run that was cut off at its first call.
agentloop.continue_agent(that, model, registry, max_steps, token_budget) goes on with it.
""")
def resumed_run_repeats_a_call(agentloop):
    """A process ended in the middle of a booking; another goes on with the run."""
    registry, booked = agentloop.ToolRegistry(), []
    registry.register("book", "Book a seat.", {"type": "object"}, lambda: booked.append("seat") or "booked")

    def book_or_say(messages, specs):
        if len(messages) == 2:
            return agentloop.asks(agentloop.call("c1", "book"))
        unknown = messages[-1]["content"].startswith("ERROR: interrupted")
        return agentloop.final("Please look whether you have a seat." if unknown else "You have a seat.")

    whole = agentloop.run_agent("Book a seat.", book_or_say, registry, max_steps=1)
    killed = agentloop.AgentResult("interrupted", None, 1, whole.tokens, whole.messages[:3])
    agentloop.continue_agent(killed, book_or_say, registry, max_steps=8, token_budget=4000)
    assert booked == ["seat"]


@fault(3, "Steps and tokens go on counting in a continued run.",
       "A continued run begins with fresh counters.",
       {"The tools are run again when the run goes on.":
            "Each function was reached once.",
        "The first two steps are lost from the list.":
            "All three replies stand in the list.",
        "The steps begin again, and the tokens go on counting.":
            "The report has fewer tokens than the plot adds up."},
       "the report and the plot; the list is as it should be",
       "Count the replies in the list, and compare them with the steps; then the tokens of the plot with those "
       "reported.",
       "self.steps, self.spent, self.watch = result.steps, result.tokens, watch",
       "self.steps, self.spent, self.watch = 0, 0, watch",
       needs="""
agentloop.continue_agent(result, model, registry, max_steps, token_budget) goes on with a run that stopped.
""")
def limits_begin_again(agentloop):
    """The run met max_steps=2, and goes on with max_steps=3."""
    registry, _ = agentloop.weather_world()
    model = agentloop.ScriptedModel(agentloop.weather_script())
    half = run(agentloop, model, registry, max_steps=2)
    whole = agentloop.continue_agent(half, model, registry, max_steps=3, token_budget=4000)
    assert whole.steps == 3 and whole.tokens > half.tokens


@fault(3, "The calls of a reply that was cut off never run.",
       "The calls of a reply that was cut off are run.",
       {"The call runs although its arguments do not fit the schema.":
            "The schema wants a text for city, and “P” is one.",
        "The tool cuts its argument, and looks up a letter.":
            "The call in the list has “P” already, before the tool was reached.",
        "The exception in the tool ends the run.":
            "The run went on: the exception became an observation, and the exit is done."},
       "the first reply, to its last letter",
       "Compare the end of its text with the argument of its call. Is either whole?",
       "for call in reply.tool_calls or [] if not reply.stop_reason]",
       "for call in reply.tool_calls or []]",
       needs="""
agentloop.ModelReply(text, [call], stop_reason="truncated") is a reply that its provider cut off.
""")
def cut_off_call_runs(agentloop):
    """The model begins to look something up."""
    half = agentloop.call("c1", "get_weather", city="P")
    cut_off = agentloop.ModelReply("I will look up P", [half], stop_reason="truncated")
    result = run(agentloop, [cut_off, agentloop.final("There is no city P.")])
    assert result.status == "truncated"


@fault(3, "A schema with a rule that cannot be checked is refused.",
       "A rule in a schema is shown to the model, and not checked.",
       {"The model is not shown the rule.":
            "The rule stands among the tools that the model is shown: unfold them.",
        "The call is refused, and the tool runs all the same.":
            "No refusal stands in the list: the observation is a result.",
        "The tool is called with another unit than the model asked for.":
            "The call that reached the function has the model's own unit, K."},
       "the schema of the tool, which unfolds under the list",
       "Compare what the schema allows with the argument of the call, and with what came back.",
       '("title", "description", "default")',
       '("title", "description", "default", "enum")',
       given="Unfold the tool under the list: its schema is what the model goes by.",
       needs="""
registry.register(name, about, schema, fn) raises agentloop.SchemaError for a schema that it refuses.
""")
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


class Watched(ModuleType):
    """A loop that notes whether something of it is used."""

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("__"):
            vars(self)["__used__"] = True
        return super().__getattribute__(name)


def note_failures(loop: Any) -> list[tuple[str, str]]:
    """Let the registries of a loop note what fails under a test without a sign: refused tools, and missing names."""
    noted: list[tuple[str, str]] = []

    class Registry(loop.ToolRegistry):  # type: ignore[misc, name-defined]
        def register(self, name: Any, description: Any, parameters: Any, fn: Any) -> None:
            @functools.wraps(fn)
            def named(**args: Any) -> Any:
                try:
                    return fn(**args)
                except NameError as error:
                    noted.append((f"the function of {name} raised an exception", describe(error)))
                    raise

            try:
                super().register(name, description, parameters, named if isinstance(fn, FunctionType) else fn)
            except loop.SchemaError as error:
                noted.append(("a registration was refused", describe(error)))
                raise

    loop.ToolRegistry = Registry
    return noted


def try_test(text: str, part: str, code: list[Json], left: list[str]) -> Iterator[Json]:
    """Try a reader's test on the loop that a text makes; yield what is tried before, and what came of it after.

    `part` is the name of the test, `code` is what it needs, `left` are names that could not be taken along.
    """
    yield {"on": "the cell"}
    defined = attempt(define, {"test": part}, code)
    if defined.error or defined.redefined:
        yield {"failed": True, "came_back": what_came_back(defined, left), "printed": defined.printed}
        return
    yield {"on": "the loop"}
    loop = load(text)
    reasons = note_failures(loop)
    loop.__class__ = Watched
    outcome = attempt(defined.value["test"], loop)
    yield {"failed": bool(outcome.error or outcome.redefined), "came_back": what_came_back(outcome, left),
           "printed": outcome.printed, "used": "__used__" in vars(loop), "reasons": reasons}
