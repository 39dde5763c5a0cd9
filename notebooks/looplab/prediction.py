"""Predict, then run: a guess comes before the truth, and the truth is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agentloop import describe
from looplab import view
from looplab.view import Bench, Block, escape, guarded


def compare(guess: Any, truth: Any) -> tuple[bool, str]:
    """Return whether a guess is what the run says, and a sentence about it; they are compared as they are written."""
    if str(guess) == str(truth):
        return True, f"You guessed {guess}, and so says the run."
    return False, f"You guessed {guess}; the run says {truth}."


class Prediction(Bench):
    """A question with a button for each option. The answer is computed when one was pressed, and not shown before."""

    def __init__(self, question: str, options: Sequence[Any], answer: Any, why: str) -> None:
        self._question, self._options, self._answer, self._why = question, list(options), answer, why
        self.guess: Any = None
        self._say = view.area(view.sentence(f"<b>Predict.</b> {escape(question)}"), "question")
        self._truth = view.area("", "truth")
        self.buttons = [view.button(str(option), f"option-{i}", self._pressed) for i, option in enumerate(options, 1)]
        super().__init__(self._say, view.controls(*self.buttons), self._truth, hook="predict")
        self._show("Guess first; then the run says what is so.")

    def _pressed(self, button: Any) -> None:
        self.choose(self._options[self.buttons.index(button)])

    @guarded
    def choose(self, guess: Any) -> None:
        """Take a guess, run, and say whether the run agrees with it."""
        try:
            truth = self._answer() if callable(self._answer) else self._answer
        except Exception as error:
            self._show(f"The run could not be made: {describe(error)}")
            return
        self.guess = guess
        agrees, said = compare(guess, truth)
        self._show(f"{said} {self._why}".strip(), "Right." if agrees else "Not so.")
        for button, option in zip(self.buttons, self._options):
            button.disabled = True
            if str(option) in (str(guess), str(truth)):
                button.add_class("ll-sel" if str(option) == str(truth) else "ll-guess")

    def _show(self, text: str, first: str = "") -> None:
        bold = f"<b>{first}</b> " if first else ""
        self._truth.value = f'<p class="ll-truth" role="status">{bold}{escape(text)}</p>'

    def twin(self) -> list[Block]:
        """Return the question and the options, never the answer."""
        return [f"Predict. {self._question}", [str(option) for option in self._options]]


def predict(question: str, options: Sequence[Any], answer: Callable[[], Any] | Any, why: str = "") -> Prediction:
    """Ask for a guess before a run, then say whether the run agrees with it.

    `answer` is what a run gave, or a function that makes the run when the guess was taken. `why` is shown after it.
    Raises ValueError for an answer that is none of the options.
    """
    names = [str(option) for option in options]
    if len(set(names)) < max(2, len(names)):
        raise ValueError("a prediction needs at least two different options")
    if not callable(answer) and str(answer) not in names:
        raise ValueError(f"the answer {answer!r} is none of the options: {', '.join(names)}")
    return Prediction(question, options, answer, why)
