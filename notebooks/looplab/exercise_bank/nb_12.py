"""Exercises of notebook 12: unseen numbers, the right hour, a replay that fails, no writes after reading."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import FunctionType
from typing import Any

from agentloop import AgentResult, Execute, Json, ScriptedModel, ToolCall, asks, call, final, replay, run_agent
from looplab.cases import Case, Exercise, Patient
from looplab.worlds import CHECKOUT_TASK, LOG_LINES, checkout_world, investigates

P99 = '{"p99_ms": {"01:00": 209, "02:00": 2930}}'
HITS = json.dumps({"hits": LOG_LINES[1:2]})

NUMBERS = Exercise(
    "12-numbers",
    {"unseen": FunctionType},
    [
        Case('unseen("p99 was 2930 ms", [P99])', "nothing: 2930 was measured", []),
        Case('unseen("p99 was 3100 ms", [P99])', "3100, which no result says", [3100.0]),
        Case('unseen("p99 was 93 ms", [P99])', "93: it is only a part of 2930", [93.0]),
        Case('unseen("from 209 to 2,930 ms", [P99])', "nothing: a comma between thousands changes no number", []),
        Case('unseen("50 connections of 10, p99 2930", [P99, HITS])', "50; the others stand in two results", [50.0]),
        Case('unseen("all 10 in use", [HITS])', "nothing: a log line may say ERROR, and is a result all the same", []),
        Case(
            'unseen("9000 orders", ["ERROR: get_orders failed: no page 9000"])',
            "9000: an error repeats what the model asked for",
            [9000.0],
        ),
        Case('unseen("7, then 4, then 5", [])', "all of them, in order", [7.0, 4.0, 5.0]),
        Case('unseen("the pool was too small", [P99])', "nothing: there is no number in it", []),
    ],
    (
        "First collect the numbers of all observations that are no errors. Then which of the text are missing?",
        "numbers(observation) finds them in JSON too. An error is a text that begins with ERROR: and a space.",
        'seen = [n for o in observations if not o.startswith("ERROR: ") for n in numbers(o)]. Return the numbers of '
        "the text that are not in it.",
    ),
    lambda: {"P99": P99, "HITS": HITS},
)


# --- The right hour ------------------------------------------------------------------------------------------


def watched(*windows: str, end: str = "It is slow.") -> list[Json]:
    """Return the messages of a run that asks for the metrics of each window, one after the other."""
    turns = [asks(call(f"m{n}", "query_metrics", service="checkout", window=w)) for n, w in enumerate(windows)]
    return run_agent(CHECKOUT_TASK, Patient([*turns, final(end)]), checkout_world()[0]).messages


def whole_run() -> list[Json]:
    """Return the messages of the investigation."""
    return run_agent(CHECKOUT_TASK, Patient(list(investigates())), checkout_world()[0]).messages


HOURS = Exercise(
    "12-hours",
    {"hour_says": FunctionType},
    [
        Case('hour_says(watched("24h"), "02:00", 2930)', "True: so it was measured", True),
        Case('hour_says(watched("24h"), "02:00", 2870)', "False: that was the p99 of 03:00", False),
        Case('hour_says(watched("24h"), "02:00", 293)', "False: 293 is only a part of 2930", False),
        Case('hour_says(watched("24h"), "05:00", 2910)', "False: nothing is known of this hour", False),
        Case('hour_says(watched("2h"), "02:00", 2930)', "False: this run saw two hours, 03:00 and 04:00", False),
        Case('hour_says(watched("2h", "24h"), "02:00", 2930)', "True: the second result says so", True),
        Case('hour_says(watched("24h", "2h"), "02:00", 2930)', "True: the first result says so", True),
        Case('hour_says(watched("yesterday", "24h"), "02:00", 2930)', "True, after a first call that failed", True),
        Case(
            'hour_says(whole_run(), "03:00", 2930)',
            "False, though three tools gave results",
            False,
            given="the investigation of this notebook, 03:00, 2930",
        ),
        Case(
            """hour_says(watched(end='{"p99_ms": {"02:00": 7}}'), "02:00", 7)""",
            "False: the model says so, and no result does",
            False,
        ),
    ],
    (
        "Hour and number must come from one and the same result. Which messages are results, and which of them count?",
        "Decode each result that is no error. Not all of them have p99_ms, and not each p99_ms has the hour.",
        'result.get("p99_ms", {}).get(hour) == ms tells it for one result; any result may be the one that says so.',
    ),
    lambda: {"watched": watched, "whole_run": whole_run},
)


# --- A replay that fails -------------------------------------------------------------------------------------


def how_it_replays(changed: Callable[[Execute], Execute]) -> str:
    """Replay the recorded run with a changed execute; return what it says."""
    registry, _ = checkout_world()
    recorded = run_agent(CHECKOUT_TASK, ScriptedModel(investigates()), registry)
    try:
        run_agent(CHECKOUT_TASK, replay(recorded.messages), registry, execute=changed(registry))
    except AssertionError as error:
        return str(error).partition(":")[2].partition(": ")[0].strip()
    return "the replay went through to the end"


def observed(changed: Callable[[Execute], Execute], name: str, **args: Any) -> str:
    """Return what a changed execute observes."""
    return changed(checkout_world()[0])(call("c1", name, **args))


def untouched(name: str, **args: Any) -> str:
    """Return what the world itself says."""
    return checkout_world()[0](call("c1", name, **args))


def hits_of(observation: str) -> int | str:
    """Return how many lines a search found, or why that cannot be read."""
    try:
        return len(json.loads(observation)["hits"])
    except ValueError:
        return "it is not JSON"


REPLAY = Exercise(
    "12-replay",
    {"changed": FunctionType},
    [
        Case(
            "how_it_replays(changed)",
            "it fails at message 6, in content.hits",
            "message 6 (tool) differs in content.hits",
        ),
        Case('hits_of(observed(changed, "search_logs", query="payments-db"))', "the three lines, and one more", 4),
        Case('hits_of(observed(changed, "search_logs", query="nothing"))', "one line, where there was none", 1),
        Case(
            'observed(changed, "list_deploys", service="checkout")',
            "as it was",
            untouched("list_deploys", service="checkout"),
        ),
        Case(
            'observed(changed, "query_metrics", service="checkout", window="24h")',
            "as it was",
            untouched("query_metrics", service="checkout", window="24h"),
        ),
        Case('observed(changed, "search_logs", word="x")', "the error as it was", untouched("search_logs", word="x")),
    ],
    (
        "Inside changed, define a function that takes a call, runs execute(call), and changes the text for one tool.",
        "An observation is text: decode it, append a line to its hits, and write it as JSON again. Let errors be.",
        'result = json.loads(text); result["hits"].append("02:05:00 ERROR one more"); return to_json(result). Only if '
        'call.name is "search_logs" and the text does not begin with ERROR: .',
    ),
    lambda: {
        "how_it_replays": how_it_replays,
        "observed": observed,
        "hits_of": hits_of,
    },
)


# --- No writes after reading ---------------------------------------------------------------------------------


def told(no_writes_after: Any, *names: str, wraps: int = 1) -> list[str]:
    """Make calls under the rule, each of `wraps` rules in turn; return "ran", "refused" or what else came of each."""
    ran: list[ToolCall] = []

    def execute(call: ToolCall) -> str:
        ran.append(call)
        return '"ran"'

    rules = [no_writes_after(execute, {"search_logs", "read_page"}, {"roll_back", "send_mail"}) for _ in range(wraps)]
    said = []
    for n, name in enumerate(names):
        before = len(ran)
        text = rules[n % wraps](call(f"c{n}", name))
        refused = isinstance(text, str) and text.startswith("ERROR: ")
        did = "ran" if len(ran) > before else "was not run"
        usual = {("ran", False): "ran", ("was not run", True): "refused"}
        strange = f"{did}, and gave {text}"
        said.append(usual.get((did, refused), strange) if refused or text == '"ran"' else strange)
    return said


TAINT = Exercise(
    "12-taint",
    {"no_writes_after": FunctionType},
    [
        Case(
            'told(no_writes_after, "search_logs", "roll_back")',
            "the log is read, then the write is refused",
            ["ran", "refused"],
        ),
        Case(
            'told(no_writes_after, "roll_back", "search_logs")',
            "both run: nothing was read before the write",
            ["ran", "ran"],
        ),
        Case(
            'told(no_writes_after, "list_deploys", "roll_back")',
            "both run: list_deploys is trusted",
            ["ran", "ran"],
        ),
        Case(
            'told(no_writes_after, "read_page", "list_deploys", "search_logs", "send_mail", "roll_back")',
            "reading goes on, and every write is refused",
            ["ran", "ran", "ran", "refused", "refused"],
        ),
        Case(
            'told(no_writes_after, "search_logs", "list_deploys", "roll_back")',
            "what was read is not forgotten by a step between",
            ["ran", "ran", "refused"],
        ),
        Case(
            'told(no_writes_after, "search_logs", "roll_back", wraps=2)',
            "two runs: what the first read does not bind the second",
            ["ran", "ran"],
            given='two runs, each with its own Execute: the first calls "search_logs", the second "roll_back"',
        ),
    ],
    (
        "The Execute must remember one thing: whether an untrusted tool was run. Where does each run keep its own?",
        "A variable of no_writes_after, changed by the inner function with nonlocal. First look at writes, then run.",
        'has_read = False; in run(call): if has_read and call.name in writes, return "ERROR: …". Else set has_read if '
        "call.name is in untrusted, and return execute(call).",
    ),
    lambda: {"told": told},
)


# --- Find the bug: a transcript that shows one result twice --------------------------------------------------


def searched(*queries: str) -> AgentResult:
    """Return a run that searches the logs for each of the queries, all in one turn."""
    calls = [call(f"l{n}", "search_logs", query=query) for n, query in enumerate(queries)]
    return run_agent(CHECKOUT_TASK, Patient([asks(*calls, text="Searching."), final("Done.")]), checkout_world()[0])


def in_turns(*queries: str) -> AgentResult:
    """Return a run that searches the logs for each of the queries, a turn for each."""
    turns = [asks(call(f"l{n}", "search_logs", query=query), text="Searching.") for n, query in enumerate(queries)]
    return run_agent(CHECKOUT_TASK, Patient([*turns, final("Done.")]), checkout_world()[0])


def results_in(lines: Any) -> list[Any]:
    """Return how many lines each search found, according to a transcript."""
    return [hits_of(line.removeprefix("result ")) for line in lines if line.startswith("result ")]


BUG = Exercise(
    "12-bug",
    {"lines_of": FunctionType},
    [
        Case('results_in(lines_of(searched("pool").messages))', "one search, one hit", [1]),
        Case(
            'results_in(lines_of(searched("pool", "nothing").messages))',
            "one line for the first search, none for the second",
            [1, 0],
        ),
        Case(
            'results_in(lines_of(searched("nothing", "timeout", "pool").messages))',
            "none, two, one",
            [0, 2, 1],
        ),
        Case('results_in(lines_of(in_turns("timeout", "nothing").messages))', "in two turns: two, then none", [2, 0]),
        Case(
            'lines_of(searched("pool").messages)[:2] + lines_of(searched("pool").messages)[-1:]',
            "a line for the text, one for the call, and the conclusion last",
            ["Searching.", 'call search_logs {"query": "pool"}', "Done."],
        ),
        Case(
            "[line.split()[0] + ' ' + line.split()[1] for line in lines_of(whole_run()) if line.startswith('call')]",
            "the calls of the investigation, in order",
            ["call query_metrics", "call list_deploys", "call search_logs"],
            given="the investigation of this notebook",
        ),
    ],
    (
        "Two calls of the same tool, and one entry in results. What is it stored under?",
        "A name can come twice, and the later result replaces the earlier. What labels a result with its call?",
        'results = {m["tool_call_id"]: …}, and then results[asked["id"]].',
    ),
    lambda: {"searched": searched, "in_turns": in_turns, "results_in": results_in, "whole_run": whole_run},
    shipped="""
def lines_of(messages):
    results = {m["name"]: m["content"] for m in messages if m["role"] == "tool"}
    lines = []
    for reply in [m for m in messages if m["role"] == "assistant"]:
        lines.append(reply["content"])
        for asked in reply["tool_calls"]:
            lines.append(f"call {asked['name']} {json.dumps(asked['args'])}")
            lines.append(f"result {results[asked['name']]}")
    return lines
""",
)

EXERCISES = [NUMBERS, HOURS, REPLAY, TAINT, BUG]
