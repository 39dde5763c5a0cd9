"""The loop player: what it records, what it says, and what it shows."""

from __future__ import annotations

import asyncio
import functools
import gc
import html
import linecache
import re
import sys

import pytest

import agentloop
from agentloop import call as wants
from agentloop import AgentResult, ModelReply, ScriptedModel, Stop, ToolCall, asks, count_tokens, final, run_agent
from looplab import narrator, player
from looplab.player import play, state_at

TASK = agentloop.WEATHER_TASK
EVIL = '<img src=x onerror="alert(1)"><b>hi</b> a < b & c </pre>'


def interview_loop(task, model, registry,
                   system="Use the tools to answer the user.",
                   max_steps=8, token_budget=4000):
    messages = [{"role": "system", "content": system},
                {"role": "user", "content": task}]
    specs, spent = registry.specs(), 0
    for step in range(1, max_steps + 1):
        prompt = count_tokens(specs) + count_tokens(messages)
        if spent + prompt > token_budget:        # before the call
            return AgentResult("token_budget", None, step - 1,
                               spent, messages)
        reply = model(messages, specs)
        message = {"role": "assistant", "content": reply.content,
                   "tool_calls": [record_of(c) for c in reply.tool_calls]}
        messages.append(message)
        spent += prompt + count_tokens(message)
        if not reply.tool_calls:
            return AgentResult("done", reply.content, step,
                               spent, messages)
        for call in reply.tool_calls:
            observation = registry.execute(call.name, call.args)
            messages.append({"role": "tool", "tool_call_id": call.id,
                             "name": call.name, "content": observation})
    return AgentResult("step_limit", None, max_steps,
                       spent, messages)


def record_of(c):
    return {"id": c.id, "name": c.name, "args": c.args}


def draft(task, model, registry):
    history = [{"role": "user", "content": task}]
    while True:
        reply = model(history, registry.specs())
        history.append({"role": "assistant", "content": reply.content,
                        "tool_calls": [record_of(c) for c in reply.tool_calls]})
        if not reply.tool_calls:
            return reply.content
        for wanted in reply.tool_calls:
            history.append({"role": "tool", "tool_call_id": wanted.id, "name": wanted.name,
                            "content": registry.execute(wanted.name, wanted.args)})


def world():
    return agentloop.weather_world()[0]


def never_finishes(messages, specs):
    return asks(wants(f"c{len(messages)}", "get_weather", city="Pune"))


def played(loop=interview_loop, script=None, **limits):
    return play(TASK, ScriptedModel(script or agentloop.weather_script()), world(), loop, **limits)


def states(shown):
    return [state_at(shown.recording, i) for i in range(len(shown))]


def sentences(shown):
    return [narrator.as_text(state.sentence) for state in states(shown)]


def text_of(markup):
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def shown_html(shown):
    parts = (shown.sentence, shown.code, shown.values, shown.list, shown.meter, shown.position, shown.error_box)
    return "".join(part.value for part in parts)


# --- Recording


def test_a_frame_is_a_statement_that_has_just_run_and_the_state_after_it():
    frames = states(played())
    reply = frames[17]
    assert len(frames) == 35
    assert (reply.first, reply.last, reply.values["reply"], len(reply.messages)) == (12, 12, "a reply with 1 call", 4)
    assert [frame.first for frame in frames[-3:]] == [16, 17, 18]
    assert frames[13].first == 20 and frames[13].values["step"] == "1"


def test_a_statement_on_several_lines_is_one_frame():
    places = [(s.first, s.last) for s in states(played()) if s.first in (4, 13, 21, 22)]
    assert places[:4] == [(4, 5), (13, 14), (21, 21), (22, 23)]


def test_a_statement_that_runs_again_and_again_is_a_frame_each_time():
    def loop(task, model, registry):
        n = 0
        while True:
            n += len([1
                      for x in (1, 2)
                      if x > 1])
            if n == 3: return "counted"  # noqa: E701

    assert [s.first for s in states(played(loop))] == [2, 4, 7, 4, 7, 4, 7]


def test_what_only_marks_a_place_is_no_frame():
    def loop(task, model, registry):
        """Say what it does."""
        while True:
            try:
                return "out"
            finally:
                pass

    assert [s.first for s in states(played(loop))] == [5]


def test_of_run_agent_the_function_that_holds_the_loop_is_shown():
    shown = played(run_agent, max_steps=2)
    assert shown.recording.source.name == "continue_agent"
    assert (shown.result.status, len(shown.result.messages)) == ("step_limit", 6)
    assert states(shown)[-1].values["run.steps"] == "2"


def test_a_draft_without_limits_and_with_names_of_its_own_is_recorded():
    shown = played(draft)
    last = states(shown)[-1]
    assert [m["role"] for m in last.messages] == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert (shown.result, last.spent, last.budget, last.max_steps) == ("It is 86.0 F in Pune.", None, None, None)
    assert "ll-bar" not in shown.meter.value


def test_a_function_from_a_cell_is_recorded():
    source = "def loop(task, model, registry):\n    messages = [task]\n    return len(messages)\n"
    linecache.cache["<cell 1>"] = (len(source), None, source.splitlines(keepends=True), "<cell 1>")
    cell: dict[str, object] = {}
    exec(compile(source, "<cell 1>", "exec"), cell)
    assert [s.first for s in states(played(cell["loop"]))] == [2, 3]


def test_a_nested_function_and_a_partial_are_recorded():
    def hand_over(inner):
        @functools.wraps(inner)
        def outer(*args, **kwargs):
            return inner(*args, **kwargs)
        return outer

    assert len(played(hand_over(interview_loop))) == 35
    assert len(played(functools.partial(interview_loop, max_steps=8))) == 35


def test_a_loop_that_calls_itself_goes_on_in_the_new_call():
    def loop(task, model, registry, messages=()):
        messages = list(messages) or [{"role": "user", "content": task}]
        reply = model(messages, registry.specs())
        messages.append({"role": "assistant", "content": reply.content, "tool_calls": []})
        if not reply.tool_calls:
            return reply.content
        return loop(task, model, registry, messages)

    frames = states(played(loop))
    assert [len(s.messages) for s in frames if s.first == 3] == [1, 2, 3]
    assert (frames[-1].first, len(frames[-1].messages)) == (6, 4)


def test_a_run_inside_a_tool_is_not_part_of_the_run():
    registry = world()
    registry.register("ask", "Ask another agent.", {"type": "object", "properties": {}},
                      lambda: interview_loop("inner", ScriptedModel([final("inner answer")]), world()).answer)
    shown = play(TASK, ScriptedModel([asks(wants("c1", "ask")), final("outer answer")]), registry, interview_loop)
    assert [len(s.messages) for s in states(shown) if s.seen] == [2, 4]
    told = [said for said in sentences(shown) if "inner" in said]
    assert told == ['The tool runs ask() and returns "inner answer".']


def test_messages_are_kept_once_however_many_frames_show_them():
    shown = play(TASK, never_finishes, world(), interview_loop, max_steps=100, token_budget=10**9)
    assert len(shown) > 1000
    assert len(shown.recording.versions) == 1
    assert states(shown)[500].messages[0] is states(shown)[-1].messages[0]


def test_a_message_that_the_loop_edits_keeps_its_past_in_earlier_frames():
    def loop(task, model, registry):
        messages = [{"role": "user", "content": task}]
        messages.append({"role": "user", "content": "second"})
        messages[0]["content"] = "edited"
        messages.pop()
        return None

    first, second, edited, popped, _ = states(played(loop))
    assert (first.messages[0]["content"], edited.messages[0]["content"]) == (TASK, "edited")
    assert (len(second.messages), edited.new, len(popped.messages)) == (2, frozenset({0}), 1)
    assert "1 message edited" in sentences(played(loop))[2] and "1 message removed" in sentences(played(loop))[3]


def test_what_is_no_message_is_shown_by_its_type_until_the_loop_trips_over_it():
    def loop(task, model, registry):
        messages = [{"role": "user", "content": task}]
        reply = model(messages, registry.specs())
        messages.append(reply)
        messages.append({"content": "no role"})
        return [m["role"] for m in messages]

    shown = played(loop)
    assert [m.get("role") for m in states(shown)[-1].messages] == ["user", "ModelReply", None]
    assert "The ModelReply message joins the list as message 2." in sentences(shown)
    assert len(shown.recording.versions) == 1
    shown.go_to(len(shown) - 1)
    assert "a reply with 1 call" in text_of(shown.list.value)


def test_a_variable_that_cannot_be_described_does_not_disturb_the_run():
    class Odd:
        def __init__(self):
            self.content, self.tool_calls = "", 7

        def __eq__(self, other):
            raise RuntimeError("no")

    def loop(task, model, registry):
        odd = Odd()
        messages = [{"role": "user", "content": odd}]
        huge = 10 ** 5000
        return len(messages) + len([huge])

    shown = played(loop)
    assert (shown.result, shown.error) == (2, None)
    assert states(shown)[-1].values == {"odd": "an Odd", "messages": "1 item", "huge": "an int"}


def test_the_run_is_the_readers_own_and_what_it_made_is_not_shared_with_the_frames():
    shown = played()
    shown.result.messages[2]["content"] = "changed later"
    assert states(shown)[-1].messages[2]["content"] == "I will look up Pune first."


def test_wrappers_and_other_arguments_are_passed_to_the_loop():
    told = []

    def refuse(wanted):
        raise Stop("not_today", "not today")

    shown = played(run_agent, execute=refuse, watch=told.append, system="Be brief.")
    assert (shown.result.status, told[0]["content"]) == ("not_today", "Be brief.")
    assert "The call get_weather(city=\"Pune\") raises Stop: not_today: not today." in sentences(shown)


def test_nothing_is_printed(capsys):
    played(run_agent)
    assert capsys.readouterr() == ("", "")


# --- Ends that are none


def test_a_loop_that_raises_is_shown_until_there_with_its_messages():
    def loop(task, model, registry):
        messages = [{"role": "user", "content": task}]
        return messages[0]["contents"]

    shown = played(loop)
    assert sentences(shown)[-1] == "The loop crashed: KeyError: 'contents'. The list keeps its 1 message."
    assert isinstance(shown.error, KeyError) and states(shown)[-1].end == ("crashed", "after 0 steps")


def test_a_model_that_raises_is_told_before_the_crash():
    said = sentences(play(TASK, ScriptedModel([]), world(), interview_loop))
    assert said[-2].startswith("The model is shown 2 messages and raises AssertionError: script ran out")
    assert said[-1].startswith("The loop crashed: AssertionError: script ran out")


def test_ctrl_c_is_an_exit_that_shows_where_it_was():
    def interrupted(messages, specs):
        raise KeyboardInterrupt

    said = sentences(play(TASK, interrupted, world(), interview_loop))
    assert said[-1] == "Exit: interrupted. Ctrl-C ended the loop here. The list keeps its 2 messages."


def test_a_loop_that_never_ends_is_cut_off_with_a_sentence():
    before = (sys.gettrace(), sys.getprofile())
    shown = play(TASK, never_finishes, world(), draft)
    assert (sys.gettrace(), sys.getprofile()) == before
    assert sentences(shown)[-1] == ("Cut off. 5,000 lines of the loop have run and it took no way out, "
                                    "so the player stopped it.")


def test_a_loop_that_catches_everything_is_cut_off_all_the_same():
    def loop(task, model, registry):
        while True:
            try:
                model([], [])
            except:  # noqa: E722
                pass

    before = (sys.gettrace(), sys.getprofile())
    assert sentences(play(TASK, never_finishes, world(), loop))[-1].startswith("Cut off.")
    assert (sys.gettrace(), sys.getprofile()) == before


def test_a_loop_that_catches_everything_and_calls_nothing_is_cut_off_all_the_same():
    def misspelt(task, model, registry):
        while True:
            try:
                reply = modle(task)  # noqa: F821, F841
            except:  # noqa: E722
                pass

    def counts(task, model, registry):
        while True:
            try:
                task += "."
            except BaseException:
                continue

    before = (sys.gettrace(), sys.getprofile())
    for loop in (misspelt, counts):
        assert sentences(played(loop))[-1].startswith("Cut off.")
    gc.collect()  # the end of a recording begins no tracing anew
    assert (sys.gettrace(), sys.getprofile()) == before


def test_a_loop_that_does_nothing_for_ever_is_cut_off():
    def loop(task, model, registry):
        task += "."
        while True:
            pass

    assert sentences(played(loop))[-1].startswith("Cut off.")


def test_a_loop_that_does_nothing_for_ever_on_one_line_is_cut_off():
    def loop(task, model, registry):
        task += "."
        while True: pass  # noqa: E701

    assert sentences(played(loop))[-1].startswith("Cut off.")


# --- Bad input


async def waits(task, model, registry):
    return None


def yields(task, model, registry):
    yield None


@pytest.mark.parametrize(("loop", "said"), [
    (len, "loop must be a function written in Python"),
    (waits, "waits is async or a generator"),
    (yields, "yields is async or a generator"),
    (lambda task, model, registry: None, "the source of <lambda> cannot be read"),
])
def test_what_cannot_be_followed_line_by_line_is_refused_with_a_sentence(loop, said):
    with pytest.raises((TypeError, ValueError), match=said):
        played(loop)


def test_a_limit_that_the_loop_does_not_take_is_refused_with_a_sentence():
    with pytest.raises(TypeError, match=r"draft\(task, model, registry\) cannot be played: .*max_steps"):
        played(draft, max_steps=3)


def test_a_loop_in_which_no_statement_runs_is_refused_with_a_sentence():
    def begun(task, model, registry):
        """Say what it will do."""

    def dives(task, model, registry):
        try:
            return dives(task, model, registry)
        except RecursionError:
            return "out of depth"

    for loop, returned in ((begun, "None"), (dives, "'out of depth'")):
        with pytest.raises(ValueError, match=f"{loop.__name__} ran no statement .*; it returned {returned}"):
            played(loop)


def test_an_error_before_the_loop_begins_is_raised():
    with pytest.raises(ValueError, match="task and system must be text"):
        play(7, ScriptedModel([]), world())


# --- Other tracers


def earlier_tracer(seen):
    def trace(frame, event, arg):
        if frame.f_code is interview_loop.__code__:
            seen.append((event, frame.f_lineno - interview_loop.__code__.co_firstlineno + 1))
        return trace
    return trace


def traced_by(trace, work):
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work(), sys.gettrace()
    finally:
        sys.settrace(before)


def test_whoever_traced_before_is_told_of_every_line_and_gets_its_place_back():
    alone, beside = [], []
    trace = earlier_tracer(alone)
    traced_by(trace, lambda: interview_loop(TASK, ScriptedModel(agentloop.weather_script()), world()))
    trace = earlier_tracer(beside)
    shown, after = traced_by(trace, played)
    assert after is trace
    assert beside == alone and len(shown) == 35


def test_the_trace_is_restored_when_the_loop_raises():
    trace = earlier_tracer([])
    shown, after = traced_by(trace, lambda: play(TASK, ScriptedModel([]), world(), interview_loop))
    assert after is trace and shown.error is not None


def test_an_earlier_tracer_that_takes_the_place_for_itself_ends_no_recording():
    def trace(frame, event, arg):
        if event == "call":
            sys.settrace(trace)  # as the tracer of coverage does
        return trace

    shown, after = traced_by(trace, played)
    assert after is trace and len(shown) == 35


# --- Sentences


@pytest.mark.parametrize(("said", "frame"), [
    ("The list begins with 2 messages: system, user.", 0),
    ("The loop sets specs to 2 items, spent to 0.", 1),
    ("The loop begins step 1 of 8.", 2),
    ("The loop estimates the next prompt: about 142 tokens.", 3),
    ("The loop checks the budget: 0 tokens spent and about 142 for the next prompt make 142, "
     "within the budget of 4,000.", 4),
    ('The model is shown 2 messages and replies with text and 1 call: get_weather(city="Pune"). '
     "Nothing has run yet.", 5),
    ("The loop sets message to 3 items.", 6),
    ("The reply joins the list as message 3.", 7),
    ("The loop adds up: 177 of 4,000 tokens are spent.", 8),
    ("The loop looks at the reply: it asks for 1 call.", 9),
    ('The loop takes the next call: get_weather(city="Pune").', 10),
    ('The tool runs get_weather(city="Pune") and returns {"city": "Pune", "celsius": 30}.', 11),
    ("The observation of c1 joins the list as message 4.", 12),
    ("The loop finds no more calls to run.", 13),
    ("The model is shown 6 messages and asks for no tool: “It is 86.0 F in Pune.”", 29),
    ("Exit: done. The reply asks for no tool, so it is the answer: “It is 86.0 F in Pune.”", 34),
])
def test_each_kind_of_statement_has_a_sentence_of_its_own(said, frame):
    assert sentences(played())[frame] == said


@pytest.mark.parametrize(("wanted", "said"), [
    (wants("c1", "get_forecast"), "The tool did not run: there is no tool get_forecast."),
    (wants("c1", "get_weather"), "The tool did not run: the call lacks the argument city."),
    (wants("c1", "get_weather", city="Pune", unit="C"), "The tool did not run: the tool has no argument unit."),
    (wants("c1", "c_to_f", celsius="30"), "The tool did not run: the call gives the wrong type for celsius."),
    (wants("c1", "get_weather", city="Atlantis"), "The tool get_weather ran and failed: KeyError: 'Atlantis'."),
    (ToolCall("c1", "c_to_f", [30]), "The call is answered with an error: arguments must be a JSON object. "
                                     'c_to_f expects {"celsius": {"type": "number"}}.'),
])
def test_an_error_is_told_by_its_cause_and_then_goes_back_to_the_model(wanted, said):
    told = sentences(played(script=[asks(wanted), final("sorry")]))
    assert said in told
    assert "The error goes back to the model as the observation of c1." in told


@pytest.mark.parametrize(("loop", "script", "limits", "said"), [
    (interview_loop, None, {"token_budget": 500},
     "Exit: token_budget. 411 tokens are spent and the next prompt needs about 254: together 665, "
     "and the budget is 500. The model is not called again."),
    (interview_loop, None, {"max_steps": 2},
     "Exit: step_limit. The model still asks for tools after 2 steps, and 2 are allowed."),
    (run_agent, None, {"max_steps": 1},
     "Exit: step_limit. The model still asks for tools after 1 step, and 1 is allowed."),
    (run_agent, [ModelReply("It is 8", stop_reason="truncated")], {},
     "Exit: truncated. The reply was cut off, so it is no answer, and none of its calls runs."),
    (draft, None, {}, "The loop returns “It is 86.0 F in Pune.”"),
])
def test_the_last_sentence_names_the_exit_and_says_why(loop, script, limits, said):
    assert sentences(played(loop, script, **limits))[-1] == said


def test_several_calls_and_several_messages_in_one_statement_are_told_together():
    def loop(task, model, registry):
        messages = [{"role": "user", "content": task}]
        reply = model(messages, registry.specs())
        texts = [registry.execute(c.name, c.args) for c in reply.tool_calls]
        messages += [{"role": "tool", "content": text} for text in texts]
        return texts

    told = sentences(played(loop, [asks(wants("a", "get_weather", city="Pune"), wants("b", "c_to_f", celsius=1))]))
    assert told[1] == ("The model is shown 1 message and replies with 2 calls: "
                       'get_weather(city="Pune"), c_to_f(celsius=1). Nothing has run yet.')
    assert told[2:] == ["The tools get 2 calls; the last is c_to_f(celsius=1).", "The list grows by 2 messages to 3.",
                        "The loop returns 2 items."]


def test_an_exit_of_ones_own_is_named():
    def loop(task, model, registry):
        return AgentResult("bored", None, 0, 0, [])

    assert sentences(played(loop)) == ["Exit: bored. The run ends here."]


def test_an_exception_that_the_loop_catches_is_told():
    def loop(task, model, registry):
        for city in ["Pune"]:
            try:
                int(city)
            except KeyError:
                city = "no"
            except ValueError:
                city = "caught"
        return city

    said = sentences(played(loop))
    assert said[1].startswith("The loop does not get past this line: ValueError: ")
    assert said[2].startswith("The loop does not catch ValueError: ")
    assert said[3].startswith("The loop catches ValueError: ")


def test_a_sentence_is_cut_to_what_two_lines_hold():
    long = "x" * 5000
    shown = played(script=[asks(*[wants(f"c{i}", long, city=long) for i in range(9)], text=long), final(long)])
    assert max(len(said) for said in sentences(shown)) <= 240


# --- What is shown


def test_each_value_is_escaped_in_every_frame():
    registry = agentloop.ToolRegistry()
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    registry.register("t", EVIL, schema, lambda q: q)
    script = [asks(wants(EVIL, "t", q=EVIL), wants("b", EVIL), text=EVIL), final(EVIL)]
    shown = play(EVIL, ScriptedModel(script), registry, interview_loop, system=EVIL)
    for i in range(len(shown)):
        shown.go_to(i)
        markup = shown_html(shown)
        assert "<img" not in markup and "<b>hi" not in markup
    assert "&lt;img" in markup
    assert "<img" not in shown._repr_mimebundle_()["text/html"]


def test_the_code_is_shown_as_it_stands_in_the_source_long_lines_cut_in_parts():
    recording = played(run_agent).recording
    lines = {}
    for row in player.code_rows(recording):
        text = text_of(row.html)
        assert len(text) <= player.WIDTH
        lines[row.line] = lines[row.line] + " " + text.strip() if row.line in lines else text.rstrip()
    assert [lines[n].split() for n in sorted(lines)] == [line.split() for line in recording.source.lines]


def test_the_two_calls_and_the_exits_have_their_colours():
    code = "".join(row.html for row in player.code_rows(played().recording))
    assert '<span class="ll-assistant">model</span>(messages' in code
    assert '<span class="ll-tool">registry.execute</span>(' in code
    assert re.findall(r'class="ll-exit">&quot;(\w+)', code) == ["token_budget", "done", "step_limit"]


def test_the_current_lines_are_lit_and_in_sight_at_every_frame():
    shown = played(run_agent)
    for i, state in enumerate(states(shown)):
        shown.go_to(i)
        lit = re.findall(r'<li class="ll-now[^"]*"[^>]*><span>(\d+)</span>', shown.code.value)
        assert lit == [str(line) for line in range(state.first, state.last + 1)]
        assert shown.code.value.count('aria-current="true"') == 1
        assert shown.code.value.count("<li") == player.PAGE


def test_the_page_of_code_depends_on_the_line_alone():
    shown = played(run_agent)
    pages = {}
    for i in [*range(len(shown)), *reversed(range(len(shown)))]:
        shown.go_to(i)
        first = re.search(r"<span>(\d+)</span>", shown.code.value)[1]
        assert pages.setdefault(shown.state.first, first) == first


def test_only_what_this_statement_appended_is_lit_and_only_what_the_model_saw_has_its_rule():
    frames = states(played())
    assert {i for i, s in enumerate(frames) if s.new} == {0, 7, 12, 19, 24, 31}
    assert [s.seen for s in frames if s.seen] == [2, 4, 6]


def test_a_step_is_under_way_from_the_estimate_until_the_reply_is_in_the_list():
    frames = states(played())
    assert [i for i, s in enumerate(frames) if s.under_way] == [3, 4, 5, 6, 15, 16, 17, 18, 27, 28, 29, 30]
    assert [i for i, s in enumerate(frames) if s.prompt][:8] == [3, 4, 5, 6, 7, 15, 16, 17]


def test_the_limit_of_the_bar_never_moves():
    shown = played(token_budget=500)
    places = set()
    for i in range(len(shown)):
        shown.go_to(i)
        places.update(re.findall(r'll-b-limit" style="left:([\d.]+%)', shown.meter.value))
    assert places == {"75.19%"} and "ll-b-over" in shown.meter.value


def test_the_variables_take_two_lines_and_the_changed_ones_are_among_them():
    def loop(task, model, registry):
        a_rather_long_name = b_rather_long_name = c_rather_long_name = d_rather_long_name = "a rather long text"
        e_rather_long_name = f_rather_long_name = "another long text"
        d_rather_long_name += ", changed"
        return [a_rather_long_name, b_rather_long_name, c_rather_long_name, d_rather_long_name, e_rather_long_name,
                f_rather_long_name]

    shown = played(loop)
    shown.go_to(2)
    names = re.findall(r"<dt>(\w+) </dt>", shown.values.value)
    assert "d_rather_long_name" in names and player.rows_needed(names, shown.state.values) == 2


def test_the_heights_are_the_same_at_every_frame():
    for loop in (run_agent, interview_loop, draft):
        shown = played(loop)
        heights = set()
        for i in range(len(shown)):
            shown.go_to(i)
            heights.update(re.findall(r"--ll-h:(\d+)px", shown.code.value + shown.list.value))
        assert len(heights) == 1


def test_specs_stand_folded_in_a_part_of_their_own():
    shown = played()
    specs = next(w for w in widgets_in(shown) if "t-specs" in w._dom_classes)
    before = specs.value
    shown.go_to(20)
    assert "2 tools are shown" in before and specs.value is before


def widgets_in(widget):
    for child in getattr(widget, "children", ()):
        yield child
        yield from widgets_in(child)


# --- Moving


def test_it_opens_at_the_first_call_of_the_model_or_at_the_beginning():
    def asks_nobody(task, model, registry):
        answer = task
        return answer

    assert (played().state.frame, played(asks_nobody).state.frame) == (5, 0)


def test_buttons_move_and_those_that_lead_nowhere_are_disabled():
    shown = played()
    shown.buttons["first"].click()
    assert shown.state.frame == 0
    assert {n for n, b in shown.buttons.items() if b.disabled} == {"first", "back"}
    shown.buttons["next"].click()
    shown.buttons["next"].click()
    shown.buttons["back"].click()
    assert (shown.state.frame, shown.slider.value, text_of(shown.position.value)) == (1, 2, "2 / 35")
    shown.buttons["last"].click()
    assert shown.state.frame == 34
    assert {n for n, b in shown.buttons.items() if b.disabled} == {"play", "next", "last"}
    assert all(jump.disabled for jump in shown.jumps.values())


def test_jumps_lead_to_the_next_model_call_tool_call_error_and_exit():
    shown = played(script=[asks(wants("c1", "get_weather", place="Pune")), *agentloop.weather_script()])
    shown.go_to(0)
    for kind, frame in [("assistant", 5), ("tool", 11), ("error", 12), ("assistant", 17), ("tool", 23), ("exit", 46)]:
        shown.jumps[kind].click()
        assert shown.state.frame == frame
    shown.go_to(20)
    assert [kind for kind, jump in shown.jumps.items() if jump.disabled] == ["error"]
    shown.jump("error")
    assert shown.state.frame == 20


def test_the_slider_moves():
    shown = played()
    shown.slider.value = 18
    assert shown.state.frame == 17


def test_play_steps_to_the_end_and_pause_stops(monkeypatch):
    monkeypatch.setattr(player, "SECONDS", 0)

    async def watch():
        shown = played()
        shown.buttons["play"].click()
        assert shown.buttons["play"].description == "Pause"
        await asyncio.sleep(0.001)
        shown.buttons["play"].click()
        paused_at = shown.state.frame
        for _ in range(5):
            await asyncio.sleep(0.001)
        assert (shown.state.frame, shown.buttons["play"].description) == (paused_at, "Play")
        shown.buttons["play"].click()
        while shown.state.frame < len(shown) - 1:
            await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        return shown

    shown = asyncio.run(watch())
    assert (shown.buttons["play"].description, shown.buttons["play"].disabled) == ("Play", True)


def test_any_other_control_pauses():
    async def watch():
        shown = played()
        for move in (lambda: shown.go_to(3), lambda: shown.jump("exit"), lambda: setattr(shown.slider, "value", 2)):
            shown.play_or_pause()
            move()
            assert shown.buttons["play"].description == "Play"

    asyncio.run(watch())


def test_an_error_of_a_control_is_shown_as_a_sentence_until_the_next_one_works():
    shown = played()
    shown.go_to(99)
    assert "there is no frame 99; this run has frames 0 to 34" in text_of(shown.error_box.value)
    shown.play_or_pause()
    assert "Play needs a running notebook" in text_of(shown.error_box.value)
    shown.go_to(3)
    assert (shown.error_box.value, shown.error_box.layout.display) == ("", "none")


def test_a_recording_that_is_broken_shows_an_error_and_raises_nothing():
    shown = played()
    shown.recording.versions[0][3] = None
    shown.buttons["last"].click()
    assert "AttributeError" in text_of(shown.error_box.value)


def test_moving_makes_no_figures():
    from matplotlib import pyplot

    shown, before = played(), len(pyplot.get_fignums())
    for i in range(25):
        shown.go_to(i % 6)
    assert len(pyplot.get_fignums()) == before


# --- In print


def test_in_print_it_is_the_last_frame_in_plain_words():
    bundle = played(token_budget=500)._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert bundle["text/plain"].splitlines() == [
        "Exit: token_budget. 411 tokens are spent and the next prompt needs about 254: together 665, "
        "and the budget is 500. The model is not called again.",
        'frame 30 of 30, line 10: `return AgentResult("token_budget", None, step - 1, spent, messages)`',
        "1. system: Use the tools to answer the user.",
        "2. user: How hot is Pune in Fahrenheit?",
        '3. assistant: I will look up Pune first. → get_weather(city="Pune") [c1]',
        '4. tool [c1]: {"city": "Pune", "celsius": 30}',
        "5. assistant: → c_to_f(celsius=30) [c2]",
        "6. tool [c2]: 86.0",
        "7. exit: token_budget after 2 steps, 411 tokens",
        "2 of 8 steps taken; 411 of 500 tokens spent, next prompt about 254",
    ]


def test_the_html_in_print_says_the_same_words_with_neither_style_nor_class():
    bundle = played()._repr_mimebundle_()
    assert not re.search(r"style|class", bundle["text/html"])
    assert set(re.findall(r"<(\w+)", bundle["text/html"])) == {"p", "code", "ol", "li"}
    plain = re.sub(r"^\d+\. |`", "", bundle["text/plain"], flags=re.M)  # <code> in the HTML
    assert text_of(bundle["text/html"].replace("</li>", "\n")).split() == plain.split()


def test_two_recordings_of_one_run_say_the_same():
    assert played(run_agent)._repr_mimebundle_()["text/html"] == played(run_agent)._repr_mimebundle_()["text/html"]
