"""Do you need an agent? Five questions about a task, and what their answers recommend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from looplab import view
from looplab.view import Bench, Block, escape, guarded

# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A question about a task: the answer that speaks against an agent, what to build then, and why."""

    text: str
    speaks: str
    build: str
    why: str


QUESTIONS = {
    "one prompt serves": Question(
        "Does one prompt give the answer, with all it needs in it?", "yes", "one prompt",
        "One call is the cheapest and the fastest, and it cannot go round in circles."),
    "the steps are known": Question(
        "Can the steps be written down beforehand?", "yes", "a workflow",
        "Plain code that calls a model at fixed places is cheaper, faster and easier to test."),
    "mistakes are costly": Question(
        "Are mistakes costly, with nobody to review them?", "yes", "no agent",
        "First make its steps reviewable, by approval or by a way to undo them."),
    "there is no time": Question(
        "Must the answer be there at once?", "yes", "no agent",
        "Each step waits for a model, and nobody knows beforehand how many steps there will be."),
    "the result cannot be judged": Question(
        "Can the result be evaluated?", "no", "no agent",
        "Whoever cannot tell a good result from a bad one can neither trust the agent nor improve it."),
}
AGENT = "The steps depend on what is found on the way, and the result can be judged. Give it every exit."

# The answers to the five questions, in their order.
TASKS = {
    "translate a note on an order": "yes yes no no yes",
    "answer a ticket by its policy": "no yes no no yes",
    "pay refunds without a person": "no no yes no yes",
    "complete an address while it is typed": "no no no yes yes",
    "write the plan for next year": "no no no no no",
    "find out why checkout is slow": "no no no no yes",
}


@dataclass(frozen=True)
class Advice:
    """What to build and why, the number of the question that decided, or 0, and what else speaks against an agent."""

    build: str
    why: str
    decided_by: int
    also: list[str]

    @property
    def more(self) -> str:
        """What the other answers say."""
        if not self.decided_by:
            return "No answer speaks against an agent."
        also = f". Besides, {' and '.join(self.also)}." if self.also else "; no other speaks against an agent."
        return f"Question {self.decided_by} decides{also}"


def advise(answers: list[str]) -> Advice:
    """Return what the first answer that speaks against an agent recommends, or an agent if none does.

    The answers are "yes" or "no", one for each question, in their order.
    """
    spoke = [n for n, (question, said) in enumerate(zip(QUESTIONS.values(), answers), 1) if said == question.speaks]
    if not spoke:
        return Advice("an agent", AGENT, 0, [])
    names, first = list(QUESTIONS), list(QUESTIONS.values())[spoke[0] - 1]
    return Advice(first.build, first.why, spoke[0], [names[n - 1] for n in spoke[1:]])


def advice_html(advice: Advice) -> str:
    """Return the recommendation in one sentence, and what the other answers say."""
    said = f"{view.word('Build', 'exit')} <b>{escape(advice.build)}.</b> {escape(advice.why)}"
    return view.sentence(said) + view.note(advice.more)


# --- The widget ----------------------------------------------------------------------------------------------


class NeedAnAgent(Bench):
    """Answer five questions about a task; `advice` is what they recommend."""

    def __init__(self, task: str) -> None:
        self._filling = False
        self.task = view.choices("A task", list(TASKS), "task", task)
        self.answers = [view.choices(f"{n}. {question.text}", ["yes", "no"], f"question-{n}", "no")
                        for n, question in enumerate(QUESTIONS.values(), 1)]
        self._view = view.area("", "view")
        super().__init__(self.task, *self.answers, self._view, hook="need")
        self.task.observe(self._fill, names="value")
        for choice in self.answers:
            choice.add_class("ll-ask")
            choice.observe(self._answered, names="value")
        self._fill()

    @guarded
    def _fill(self, change: Any = None) -> None:
        if self.task.value is not None:
            self._filling = True
            for choice, answer in zip(self.answers, TASKS[self.task.value].split()):
                choice.value = answer
            self._filling = False
            self._show()

    @guarded
    def _answered(self, change: Any = None) -> None:
        if not self._filling:
            self.task.value = None  # from now on it is a task of the reader's own
            self._show()

    def _show(self) -> None:
        self.advice = advise([choice.value for choice in self.answers])
        for n, choice in enumerate(self.answers, 1):
            (choice.add_class if n == self.advice.decided_by else choice.remove_class)("ll-spoke")
        self._view.value = advice_html(self.advice)

    def twin(self) -> list[Block]:
        """Return the advice, the questions with their answers, and what is advised for each task of the list."""
        asked = [[choice.description, choice.value] for choice in self.answers]
        known = [[task, advise(answers.split()).build] for task, answers in TASKS.items()]
        return [f"A task: {self.task.value or 'your own'}. Build {self.advice.build}. {self.advice.why}",
                self.advice.more, [["question", "answer"], *asked], "The tasks of the list:",
                [["task", "build"], *known]]


def need_an_agent(task: str = "answer a ticket by its policy") -> NeedAnAgent:
    """Ask five questions about a task, and say whether to build one prompt, a workflow, an agent, or none.

    Raises ValueError for a task that is not in the list.
    """
    if task not in TASKS:
        raise ValueError(f"task must be one of {list(TASKS)}")
    return NeedAnAgent(task)
