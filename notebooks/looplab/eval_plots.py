"""The plot of an eval: a small picture for each agent, a bar for each task, all on one scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from looplab.evals import Score
from looplab.plots import EDGE, MUTED, PALETTE, SPENT, Cell, Plot, show

WRONG = PALETTE["error"]


def small_multiples(results: Mapping[str, Sequence[Score]]) -> Plot:
    """Draw the tokens of each task for two to four agents: filled where the task is right, hollow where it is wrong.

    Raises ValueError for another number of agents, and if their tasks are not the same.
    """
    tasks = [[score.task for score in scores] for scores in results.values()]
    if not 2 <= len(results) <= 4 or not tasks[0] or any(row != tasks[0] for row in tasks):
        raise ValueError("small_multiples takes two to four agents, each with a score for the same tasks")
    most = max(score.tokens for scores in results.values() for score in scores)
    worlds = [(world, len(list(group))) for world, group in groupby(tasks[0], lambda task: task.world)]

    def draw(figure: Figure) -> None:
        rows = -(-len(results) // 2)
        figure.set_size_inches(7, 1.9 * rows)
        for place, (name, scores) in enumerate(results.items(), 1):
            ax = figure.add_subplot(rows, 2, place)
            ax.set_title(f"{name}: {sum(score.right for score in scores)} of {len(scores)} right")
            for x, score in enumerate(scores):
                ax.bar(x, score.tokens, .8, color=SPENT if score.right else "none", linewidth=1.2,
                       edgecolor=SPENT if score.right else WRONG, hatch="" if score.right else "//////")
            ax.set_ylim(0, 1.08 * most)
            ax.set_xlim(-.8, len(scores) - .2)
            ax.yaxis.set_major_locator(MaxNLocator(3, integer=True))
            ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: show(value)))
            ax.xaxis.set_major_locator(FixedLocator([]))
            left = 0
            for world, count in worlds:
                ax.axvline(left - .5, color=EDGE, linewidth=.6)
                ax.annotate(world, (left - .4, 0), (0, -12), textcoords="offset points", color=MUTED, fontsize=8.5,
                            annotation_clip=False)
                left += count

    cells: list[list[Cell]] = [["task", *results]]
    cells += [[row[0].task.name, *(f"{score.tokens:,}{'' if score.right else ' wrong'}" for score in row)]
              for row in zip(*results.values())]
    ends = [f"{name} is right on {sum(s.right for s in scores)} and spends {sum(s.tokens for s in scores):,}"
            for name, scores in results.items()]
    return Plot("Tokens of each task; hatched is wrong", f"Of {len(tasks[0])} tasks {'; '.join(ends)} tokens.", cells,
                draw)
