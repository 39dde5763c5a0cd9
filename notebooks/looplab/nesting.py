"""A family of runs: the list of a parent beside the list of a sub-agent, and what of the one came into the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentloop import count_tokens
from looplab import view
from looplab.view import Bench, Block, escape, guarded, plural

HEIGHT = 420  # pixels of each list
WIDTH = 90  # characters of a message in the twin

# --- State ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Nested:
    """A job that was given away: its path, like "main.2.1", its parent, and where in the parent's list it stands.

    `places` are the indexes of the reply that asks for it, and of its observation, where there is one.
    """

    path: str
    job: Any
    parent: Any
    places: tuple[int, ...]


def nested_in(job: Any, path: str = "main") -> list[Nested]:
    """Return all jobs that were given away below a job, each before those below it."""
    found = []
    for number, inner in enumerate(job.jobs, 1):
        same = sum(other.task == inner.task for other in job.jobs[:number])
        found.append(Nested(f"{path}.{number}", inner, job, places_of(job.messages, inner.task, same)))
        found += nested_in(inner, f"{path}.{number}")
    return found


def places_of(messages: list[Any], task: str, number: int) -> tuple[int, ...]:
    """Return where the call that gives this task away for the `number`th time stands, and its observation."""
    for i, message in enumerate(messages):
        for asked in view.calls_of(message):
            number -= asked["args"] == {"task": task}  # one with more arguments was refused
            if number == 0:
                seen = [j for j, other in enumerate(messages) if other.get("tool_call_id") == asked["id"]]
                return (i, *seen[:1])
    return ()


def told(nested: Nested) -> tuple[str, str]:
    """Say who gave what away, and how much of the sub-agent's list came back."""
    job, spent = nested.job, nested.job.purse.spent
    kept = f"{plural(len(job.messages), 'message')} of {tokens_of(job.messages):,} tokens"
    back = "nothing came back yet"
    if len(nested.places) == 2:
        back = f"one observation of {count_tokens(nested.parent.messages[nested.places[1]]):,} came back"
    ends = f"{nested.path} ended with {job.status} and spent {spent:,} tokens"
    return nested.path.rpartition(".")[0], f" gave this away: {ends}. {kept} stay in its list; {back}."


def tokens_of(messages: list[Any]) -> int:
    """Return the tokens of a list; an empty one has none."""
    return count_tokens(messages) if messages else 0


def family_table(job: Any) -> list[list[str]]:
    """Return a row for each run of a family: path, task, exit, the size of its list, what its purse has paid."""
    rows = [["run", "task", "exit", "messages", "list", "spent, with those below"]]
    for path, each in [("main", job), *((nested.path, nested.job) for nested in nested_in(job))]:
        size, spent = f"{tokens_of(each.messages):,}", f"{each.purse.spent:,}"
        rows.append([path, view.cut(each.task, 48), each.status, str(len(each.messages)), size, spent])
    return rows


# --- HTML and widget -----------------------------------------------------------------------------------------


def list_html(name: str, job: Any, lit: tuple[int, ...] = ()) -> str:
    """Return a run's list under its name, with its exit at the end."""
    shown = view.message_list(job.messages, lit, end=(job.status, ""), label=f"message list of {name}", height=HEIGHT)
    return f'<p class="ll-head">{escape(name)}: {tokens_of(job.messages):,} tokens</p>{shown}'


class NestedRuns(Bench):
    """Choose a run that was given away, and see its list beside its parent's."""

    def __init__(self, job: Any) -> None:
        if not hasattr(job, "jobs") or not hasattr(job, "purse"):
            raise ValueError("nested_runs takes a job, with its messages, its purse and the jobs that it gave away")
        self.job, self.nested = job, nested_in(job)
        paths = [nested.path for nested in self.nested]
        self.choice = view.choices("Sub-agent", paths, "choice", paths[0] if paths else None)
        self._say, self._left, self._right = view.area("", "say"), view.area("", "parent"), view.area("", "inner")
        columns = view.columns(view.column("ll-seat-a", self._left), view.column("ll-seat-b", self._right))
        super().__init__(self.choice, self._say, columns, hook="nested")
        self.choice.layout.display = "" if len(paths) > 1 else "none"
        self.choice.observe(self._show, names="value")
        self._show()

    @property
    def current(self) -> Nested | None:
        """The job that is shown, or None if nothing was given away."""
        return next((nested for nested in self.nested if nested.path == self.choice.value), None)

    @guarded
    def _show(self, change: Any = None) -> None:
        now = self.current
        if now is None:
            self._say.value = view.sentence("Nothing was given away.")
            self._left.value = list_html("main", self.job)
            return
        parent, said = told(now)
        self._say.value = view.sentence(f"{view.word(parent, 'assistant')}{escape(said)}")
        self._left.value = list_html(parent, now.parent, now.places)
        self._right.value = list_html(now.path, now.job)

    def twin(self) -> list[Block]:
        """Return the family as a table, and the two lists that are shown."""
        now = self.current
        blocks: list[Block] = [family_table(self.job)]
        if now is None:
            return ["Nothing was given away.", *blocks, message_lines(self.job.messages)]
        parent, said = told(now)
        lists: list[Block] = [f"The list of {parent}:", message_lines(now.parent.messages),
                              f"The list of {now.path}:", message_lines(now.job.messages)]
        return [f"{parent}{said}", *blocks, *lists]


def message_lines(messages: list[Any]) -> list[str]:
    """Return each message on a line, cut."""
    return [view.cut(view.message_text(message), WIDTH) for message in messages]


def nested_runs(job: Any) -> NestedRuns:
    """Show a family of runs: each list that a job gave away beside the list it came from, and what came back."""
    return NestedRuns(job)
