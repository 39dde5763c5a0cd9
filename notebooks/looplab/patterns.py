"""What the comparison of patterns in notebook 11 needs beside the patterns: a meter that every model goes through."""

from __future__ import annotations

from collections.abc import Callable

from agentloop import Json, Model, ModelReply, count_tokens, record_reply


class Meter:
    """Counts what models cost, at the models: their calls, and the tokens of each by the loop's estimate.

    A loop counts what goes through it; a pattern may also ask a model beside the loop.
    """

    def __init__(self) -> None:
        self.calls = self.tokens = 0

    def model(self, model: Model) -> Model:
        """Return `model`, whose calls are counted."""

        def counted(messages: list[Json], specs: list[Json]) -> ModelReply:
            reply = model(messages, specs)
            self.calls += 1
            self.tokens += count_tokens(specs) + count_tokens(messages) + count_tokens(record_reply(reply, set()))
            return reply

        return counted

    def ask(self, model: Model) -> Callable[[str], str]:
        """Return a function that asks `model` one question, without tools, and returns its text."""
        counted = self.model(model)

        def ask(question: str) -> str:
            return counted([{"role": "user", "content": question}], []).content

        return ask
