"""The tools of the weather task, on a registry of the file under test, with a log of what really ran."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .candidate import Candidate, Trial

Json = dict[str, Any]

TASK = "How hot is Pune in Fahrenheit?"
ANSWER = "It is 86.0 F in Pune."
WEATHER = ("get_weather", "c_to_f")

CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CELSIUS: Json = {"type": "object", "properties": {"celsius": {"type": "number"}}, "required": ["celsius"]}
NOTHING: Json = {"type": "object"}
TOOLS = {
    "get_weather": ("Temperature of a city. Use it when the user asks about weather.", CITY),
    "c_to_f": ("Celsius to Fahrenheit. Use it when the user wants Fahrenheit.", CELSIUS),
    "ping": ("Say pong. Use it to see whether tools run.", NOTHING),
}


def build_registry(mine: Candidate, names: Sequence[str], ran: list[str]) -> Any:
    """Return a registry of the file under test with some of the tools; each writes its name into `ran` when it runs."""
    celsius_by_city = {"Pune": 30, "Delhi": 35}

    def get_weather(city: str) -> Json:
        ran.append("get_weather")
        return {"city": city, "celsius": celsius_by_city[city]}

    def c_to_f(celsius: float) -> float:
        ran.append("c_to_f")
        return celsius * 9 / 5 + 32

    def ping() -> str:
        ran.append("ping")
        return "pong"

    functions: dict[str, Callable[..., Any]] = {"get_weather": get_weather, "c_to_f": c_to_f, "ping": ping}
    registry = mine.ToolRegistry()
    for name in names:
        registry.register(name, *TOOLS[name], functions[name])
    return registry


def execute(mine: Candidate, name: Any, args: Any, tools: Sequence[str] = WEATHER) -> tuple[Trial, list[str]]:
    """Run one call on a registry with these tools; return what came of it, and the tools that really ran."""
    ran: list[str] = []
    tried = f"execute({name!r}, {args!r}) of a registry with {', '.join(tools) or 'no tools'}"
    return mine.attempt(tried, lambda: build_registry(mine, tools, ran).execute(name, args)), ran
