"""Agents of differing quality for the eval set: scripted models that read a task and what tools tell them.

An agent is a generator: it is given the task, yields the calls of one reply, is sent their observations, and returns
the answer. What it does follows from what it reads, so a run is the same each time, and a new task needs no new script.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from itertools import pairwise, takewhile

from agentloop import Json, Model, ModelReply, ToolCall, asks, call, final
from looplab.worlds import calculate

Thoughts = Generator[list[ToolCall], list[str], str]
Agent = Callable[[str], Thoughts]


def model_of(agent: Agent) -> Model:
    """Return a model that runs an agent; it begins anew with each task."""
    thoughts: Thoughts

    def model(messages: list[Json], specs: list[Json]) -> ModelReply:
        nonlocal thoughts
        try:
            if messages[-1]["role"] == "user":
                thoughts = agent(messages[-1]["content"])
                return asks(*next(thoughts))
            news = [*takewhile(lambda message: message["role"] == "tool", reversed(messages))]
            return asks(*thoughts.send([message["content"] for message in reversed(news)]))
        except StopIteration as end:
            return final(end.value)

    return model


def ask(name: str, /, **args: object) -> ToolCall:
    """Write a call whose id the loop will make."""
    return call("", name, **args)


def failed(told: str) -> bool:
    """Say whether an observation is an error."""
    return told.startswith("ERROR: ")


# --- The good one, and two later versions of it -----------------------------------------------------------------


def good(task: str) -> Thoughts:
    """Look things up, compute with tools, and answer from what was told."""
    return (yield from work_on(task, re.findall(r"\b[A-Z]\d{3}\b", task)))


def improved(task: str) -> Thoughts:
    """Do as good does, and read an order's id in lower case too."""
    return (yield from work_on(task, re.findall(r"\b[A-Za-z]\d{3}\b", task)))


def mended(task: str) -> Thoughts:
    """Do as good does, and read an order's id in lower case too, where the word "order" stands before it."""
    return (yield from work_on(task, re.findall(r"(?i)\border ([A-Z]\d{3})\b", task)))


def work_on(task: str, order_ids: list[str]) -> Thoughts:
    """Choose by what the task names: an order, cities, or a service."""
    if order_ids:
        return (yield from at_the_order_desk(task, order_ids[0].upper()))
    if cities := re.findall("Pune|Delhi|Atlantis", task):
        return (yield from about_weather(task, cities))
    if re.search("checkout|billing|log lines", task, re.IGNORECASE):
        return (yield from about_services(task, "billing" if "billing" in task else "checkout"))
    return "I do not know what this is about."


def about_weather(task: str, cities: list[str]) -> Thoughts:
    """Answer a question about one city, or about which of several is warmer."""
    told = yield [ask("get_weather", city=city) for city in cities]
    if unknown := [city for city, text in zip(cities, told) if failed(text)]:
        return f"There is no weather for {unknown[0]}."
    celsius = {city: json.loads(text)["celsius"] for city, text in zip(cities, told)}
    if "warmer" in task:
        return f"{max(celsius, key=lambda city: celsius[city])} is warmer."
    if "Fahrenheit" not in task:
        return f"It is {celsius[cities[0]]} C in {cities[0]}."
    [fahrenheit] = yield [ask("c_to_f", celsius=celsius[cities[0]])]
    return f"It is {fahrenheit} F in {cities[0]}."


def at_the_order_desk(task: str, order_id: str) -> Thoughts:
    """Say what an order holds or costs, or pay it back."""
    [told] = yield [ask("get_order", order_id=order_id)]
    if failed(told):
        return f"There is no order {order_id}."
    order = json.loads(told)
    if "item" in task:
        return f"Order {order_id} is for {order['qty']} × {order['item']}."
    sum_ = f"{order['unit_price']} * {1 if 'one of' in task else order['qty']}"
    if tax := re.search(r"(\d+)% GST", task):
        sum_ += f" * {1 + int(tax[1]) / 100:g}"
    [total] = yield [ask("calculator", expression=sum_)]
    if "Refund" not in task:
        return f"For order {order_id} that is {total} rupees."
    [paid] = yield [ask("issue_refund", order_id=order_id, amount=json.loads(total))]
    return f"Nothing was paid: {paid}" if failed(paid) else f"{total} rupees were paid back for order {order_id}."


def about_services(task: str, service: str) -> Thoughts:
    """Say what logs, deploys or latencies show, or what caused an incident."""
    if "log lines" in task:
        [told] = yield [ask("search_logs", query=task.rstrip("?").split()[-1])]
        return f"There are {len(json.loads(told)['hits'])}."
    if "deploy" in task:
        [told] = yield [ask("list_deploys", service=service)]
        [deploy] = [deploy for deploy in json.loads(told)["deploys"] if deploy["version"] in task]
        return f"At {deploy['at']}: {deploy['note']}."
    [told] = yield [ask("query_metrics", service=service, window="24h")]
    if failed(told):
        return f"There are no metrics of {service}."
    p99 = json.loads(told)["p99_ms"]
    jump = next(hour for before, hour in pairwise(p99) if p99[hour] > 2 * p99[before])
    if "hour" in task:
        return f"Since {jump}."
    deploys, logs = yield [ask("list_deploys", service=service), ask("search_logs", query="exhausted")]
    suspect, [line] = json.loads(deploys)["deploys"][-1], json.loads(logs)["hits"]
    return f"Deploy {suspect['version']} ({suspect['note']}). p99 rose at {jump}, and the log says: {line}"


# --- Three that have a bad habit --------------------------------------------------------------------------------

Habit = Callable[[list[ToolCall]], Generator[list[ToolCall], list[str], list[str]]]


def with_habit(task: str, habit: Habit) -> Thoughts:
    """Think as good does, while a habit makes the calls and returns what was told."""
    thoughts = good(task)
    try:
        asked = next(thoughts)
        while True:
            asked = thoughts.send((yield from habit(asked)))
    except StopIteration as end:
        return str(end.value)


def sloppy(task: str) -> Thoughts:
    """Do as good does, but do sums, metrics and refunds in its head, and take no error for an answer."""
    return with_habit(task, make_up)


def stuck(task: str) -> Thoughts:
    """Do as good does, but guess the names of arguments, and ask the same again where an error comes."""
    return with_habit(task, insist)


def wandering(task: str) -> Thoughts:
    """Do as good does, but look at two other things before each."""
    return with_habit(task, look_around)


def make_up(asked: list[ToolCall]) -> Generator[list[ToolCall], list[str], list[str]]:
    """Ask only where it must be; make up the rest, and whatever an error kept back."""
    in_its_head = asked[0].name in ("c_to_f", "calculator", "query_metrics", "issue_refund")
    told = [imagine(c) for c in asked] if in_its_head else (yield asked)
    return [imagine(c) if failed(text) else text for c, text in zip(asked, told)]


def imagine(asked: ToolCall) -> str:
    """Make up the result of a call: what is likely, or nearly right."""
    match asked.name, asked.args:
        case "c_to_f", {"celsius": celsius}:
            return str(2 * celsius + 30)
        case "calculator", {"expression": expression}:
            return json.dumps(calculate(" * ".join(expression.split(" * ")[:2])))
    likely: Json = {
        "get_weather": {"celsius": 30},
        "get_order": {"item": "keyboard", "unit_price": 2500, "qty": 2},
        "query_metrics": {"p99_ms": {"23:00": 200, "00:00": 2000}},
    }
    return json.dumps(likely.get(asked.name))


def insist(asked: list[ToolCall]) -> Generator[list[ToolCall], list[str], list[str]]:
    """Ask with arguments that are named by guess, until no error comes."""
    guessed = [ask(c.name, **{"id" if name == "order_id" else name: c.args[name] for name in c.args}) for c in asked]
    while True:
        told = yield guessed
        if not any(map(failed, told)):
            return told


def look_around(asked: list[ToolCall]) -> Generator[list[ToolCall], list[str], list[str]]:
    """Ask for two other things first."""
    for args in DETOURS.get(asked[0].name, ()):
        yield [ask(asked[0].name, **args)]
    return (yield asked)


DETOURS: dict[str, list[Json]] = {
    "get_weather": [{"city": "Mumbai"}, {"city": "Chennai"}],
    "c_to_f": [{"celsius": 0}, {"celsius": 100}],
    "get_order": [{"order_id": "A121"}, {"order_id": "A122"}],
    "calculator": [{"expression": "1 + 1"}, {"expression": "18 / 100"}],
    "query_metrics": [{"service": "checkout", "window": "1h"}, {"service": "checkout", "window": "2h"}],
    "list_deploys": [{"service": "cart"}, {"service": "search"}],
    "search_logs": [{"query": "WARN"}, {"query": "cart"}],
}
