"""What a run costs: its tokens by formula and by running the loop, prices with a date, and a cache that is honest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, takewhile
from math import inf

from agentloop import AgentResult, Json, Model, ModelReply, ToolCall, ToolRegistry, Usage, run_agent


@dataclass(frozen=True)
class Prices:
    """USD per million tokens, and the day on which they were looked up.

    `cached` is the part of the prompt price that is paid for what a cache holds, `to_cache` the part that is paid for
    what it is given to hold, which may be more than 1. Raises ValueError for what is no number, or below 0.
    """

    prompt: float
    reply: float
    as_of: str
    cached: float = 0.1
    to_cache: float = 1.25

    def __post_init__(self) -> None:
        for price in (self.prompt, self.reply, self.cached, self.to_cache):
            if not isinstance(price, int | float) or not 0 <= price < inf:
                raise ValueError(f"a price is a number, and none can be below 0: {price!r}")


@dataclass(frozen=True)
class StepTokens:
    """The tokens of one step: of the prompt, of its beginning that was sent with the step before, and of the reply."""

    prompt: int
    again: int
    reply: int


@dataclass(frozen=True)
class Shape:
    """A run in which each step writes and reads the same number of tokens.

    `start` is the system prompt with the tool definitions, and the task. Raises ValueError for less than 1 step, for a
    number below 0, and for one that is not whole.
    """

    steps: int = 10
    start: int = 1600
    written: int = 150
    result: int = 600

    def __post_init__(self) -> None:
        numbers = (self.steps, self.start, self.written, self.result)
        if not all(isinstance(number, int) for number in numbers) or self.steps < 1 or min(numbers) < 0:
            raise ValueError("a run has 1 step or more, and no tokens below 0, all in whole numbers")

    def step_tokens(self) -> list[StepTokens]:
        """Return the tokens of each step, by formula: a prompt is the one before, the reply to it, and the result."""
        prompts = [self.start + step * (self.written + self.result) for step in range(self.steps)]
        return [StepTokens(prompt, again, self.written) for prompt, again in zip(prompts, [0, *prompts])]


@dataclass(frozen=True)
class Bill:
    """What a run sends and writes, how much of what it sends a cache holds, and what it costs in USD."""

    sent: int
    cached: int
    written: int
    prompt_usd: float
    reply_usd: float

    @property
    def usd(self) -> float:
        """The whole cost."""
        return self.prompt_usd + self.reply_usd


def bill(steps: Sequence[StepTokens], prices: Prices, caching: bool = False) -> Bill:
    """Return what the steps of a run cost.

    With caching, the beginning of a prompt that was sent before costs `prices.cached` of the prompt price, and the rest
    `prices.to_cache`. It is assumed that the cache holds it until the next step, which a slow tool may prevent.
    """
    sent, written = sum(step.prompt for step in steps), sum(step.reply for step in steps)
    cached = sum(step.again for step in steps) if caching else 0
    weighted = cached * prices.cached + (sent - cached) * (prices.to_cache if caching else 1)
    return Bill(sent, cached, written, weighted * prices.prompt / 1e6, written * prices.reply / 1e6)


# --- By running the loop ----------------------------------------------------------------------------------------


class WordCounter:
    """A model whose provider counts a word as a token, and knows what it was sent the last time.

    It asks for the next page until the last step, in which it answers; `taken` are the tokens of its steps.
    """

    def __init__(self, shape: Shape) -> None:
        self.taken: list[StepTokens] = []
        self._shape, self._before = shape, list[str]()

    def __call__(self, messages: list[Json], specs: list[Json]) -> ModelReply:
        texts = [spec["description"] for spec in specs] + [message["content"] for message in messages]
        known = takewhile(lambda pair: pair[0] == pair[1], zip(texts, self._before))
        tokens = StepTokens(count_words(texts), count_words(text for text, _ in known), self._shape.written)
        self._before = texts
        self.taken.append(tokens)
        step = len(self.taken)
        calls = [ToolCall("", "read", {})] if step < self._shape.steps else []
        return ModelReply(words(self._shape.written, step), calls, Usage(tokens.prompt, tokens.reply))


def words(amount: int, first: object = "the") -> str:
    """Return a text of so many words, of four characters each with the blank, which the loop takes for a token too."""
    return " ".join([str(first), *["the"] * (amount - 1)]) if amount else ""


def count_words(texts: Iterable[str]) -> int:
    """Return the number of words in all texts."""
    return sum(len(text.split()) for text in texts)


def run_shape(shape: Shape, wrap: Callable[[Model], Model] | None = None) -> tuple[list[StepTokens], AgentResult]:
    """Run the loop on messages of a shape; return the tokens of each step as the provider counts them, and the run.

    `wrap` is put around the model: it sees what the loop sends, the provider what is left of it.
    """
    task, pages = min(100, shape.start), count(1)
    tools = min(100, shape.start - task)
    counter, registry = WordCounter(shape), ToolRegistry()
    registry.register("read", words(tools), {}, lambda: None)
    result = run_agent(words(task), wrap(counter) if wrap else counter, registry, words(shape.start - task - tools),
                       shape.steps, 10**9, execute=lambda call: words(shape.result, next(pages)))
    return counter.taken, result
