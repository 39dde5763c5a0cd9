"""The progress of an eval: a bar that grows by a square for each task that has run."""

from __future__ import annotations

from collections.abc import Sequence

from looplab import view
from looplab.evals import Score
from looplab.view import Bench, Block, escape, guarded, plural


def progress_words(total: int, scores: Sequence[Score]) -> tuple[str, str]:
    """Return how far an eval has come, and what the last task gave."""
    far = f"{len(scores):,} of {plural(total, 'task')} have run"
    if not scores:
        return f"{far}.", ""
    right = sum(score.right for score in scores)
    return f"{far}, {right:,} right.", f"The last, {scores[-1].task.name}, is {scores[-1].verdict}."


def squares(total: int, scores: Sequence[Score]) -> str:
    """Return a square for each task: filled if it was right, the mark of an error if it was wrong, else hollow."""
    done = ['<i class="ll-on"></i>' if score.right else view.mark("error") for score in scores]
    hollow = ["<i></i>"] * max(0, total - len(scores))
    said = " ".join(progress_words(total, scores))
    return f'<div class="ll-pips ll-wrapped" role="img" aria-label="{escape(said)}">{"".join([*done, *hollow])}</div>'


def progress_html(total: int, scores: Sequence[Score]) -> str:
    """Return the sentence and the squares."""
    far, last = progress_words(total, scores)
    return f"{view.sentence(f'<b>{escape(far)}</b> {escape(last)}')}{squares(total, scores)}"


class ProgressBar(Bench):
    """Shows how far an eval has come; call it with each score, or give it to evaluate as `watch`."""

    def __init__(self, total: int) -> None:
        self.total, self.scores = total, list[Score]()
        self._view = view.area("", "view")
        super().__init__(self._view, hook="progress")
        self._show()

    def __call__(self, score: Score) -> None:
        self.scores.append(score)
        self._show()

    @guarded
    def _show(self) -> None:
        self._view.value = progress_html(self.total, self.scores)

    def twin(self) -> list[Block]:
        """Return how far it has come, and a mark for each task."""
        marks = "".join("■" if score.right else "△" for score in self.scores).ljust(self.total, "□")
        said = " ".join(progress_words(self.total, self.scores)).strip()
        return [said, f"{marks} (filled is right, a triangle is wrong, hollow has not run)"]


def progress_bar(total: int) -> ProgressBar:
    """Return a bar for so many tasks; raise ValueError for less than one."""
    if total < 1:
        raise ValueError("a progress bar is for one task or more")
    return ProgressBar(total)
