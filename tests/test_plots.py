"""Plots say in words what they draw, count as the loop counts, and leave nothing of matplotlib behind."""

import io
import json
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, pairwise

import matplotlib
import nbformat
import numpy as np
import pytest
from looplab import plots
from looplab.clinic import plot_of
from looplab.faults import FAULTS
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from nbclient import NotebookClient
from PIL import Image, ImageColor

from agentloop import Run, ScriptedModel, asks, call, count_tokens, final, run_agent, trace_rows, weather_world

EVIL = "$\\frac{$ <script>alert('&\"')</script> \ud800 \x00 日本 \n\t \N{PILE OF POO}"


def ask_on(steps, **limits):
    """Run a model that asks for the weather, again and again, and finishes at `steps`."""
    registry, _ = weather_world()
    script = [asks(call(f"c{n}", "get_weather", city="Pune")) for n in range(1, steps)]
    limits = {"max_steps": 10**6, "token_budget": 10**9} | limits
    return run_agent("How hot is Pune?", ScriptedModel([*script, final("30 C")]), registry, **limits)


SPECS = weather_world()[0].specs()


def every_plot():
    whole, by_budget, by_steps = ask_on(12), ask_on(12, token_budget=900), ask_on(12, max_steps=5)
    return [
        plots.lines("Two", [1, 2, 3], {"a": [1, 2, 3], "b": [2, 2.5]}, "Both grow.", limits={"most": 4}),
        plots.bars("Parts", [1, 2], {"a": [1, 2], "b": [3, 4]}, "Both grow.", limits={"most": 9}, walls={"end": 2}),
        plots.spend_by_step(whole, SPECS),
        plots.spend_by_step(by_budget, SPECS, token_budget=900, max_steps=8),
        plots.spend_by_step(by_steps, SPECS, token_budget=2000, max_steps=5),
        plots.spend_by_step(ask_on(2, token_budget=1), SPECS, token_budget=1),
        plots.spend_by_step(ask_on(40), SPECS),
        plots.spend_of_runs([ask_on(n) for n in (1, 2, 4, 8)], SPECS),
        plots.worked_example([1000, 1500, 2000], token_budget=3000),
        plots.measured([ask_on(n) for n in (1, 2, 4, 8)]),
    ]


PLOTS = every_plot()


# --- Runs as numbers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", [{}, {"max_steps": 3}, {"token_budget": 900}, {"token_budget": 1}])
def test_steps_are_counted_as_the_loop_and_its_trace_count_them(limits):
    result = ask_on(6, **limits)
    steps = plots.steps_of(result, SPECS)
    assert [str(step.spent) for step in steps] == [row[3] for row in trace_rows(result, SPECS)]
    assert (steps[-1].spent if steps else 0) == result.tokens
    assert [step.number for step in steps] == list(range(1, result.steps + 1))
    assert all(b.spent - a.spent == b.prompt + b.reply for a, b in pairwise(steps))


@pytest.mark.parametrize("start, more, steps", [
    (1000, 500, 8), (1600, 750, 10), (1600, 750, 20), (300, 100, 1), (200, 60, 120),
])
def test_a_fixed_run_sends_what_the_formula_says(start, more, steps):
    result, specs = plots.fixed_run(start, more, steps)
    prompts = [step.prompt for step in plots.steps_of(result, specs)]
    assert prompts == [start + more * i for i in range(steps)]
    assert sum(prompts) == steps * start + more * steps * (steps - 1) // 2
    assert result.status == "done" and result.steps == steps


def test_a_fixed_run_too_small_for_its_own_messages_is_refused():
    with pytest.raises(ValueError, match="a fixed run needs"):
        plots.fixed_run(10, 500, 8)
    with pytest.raises(ValueError, match="a fixed run needs"):
        plots.fixed_run(1000, 1, 8)


# --- Words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.title)
def test_a_plot_says_its_sentence_and_lists_its_data_as_text_and_as_html(plot):
    bundle = plot._repr_mimebundle_()
    assert bundle["text/plain"].startswith(f"{plot.title}. {plot.sentence}\n") and plot.sentence.endswith(".")
    assert len(bundle["text/plain"].splitlines()) == 1 + len(plot.rows) <= 16
    for row, line in zip(plot.rows, bundle["text/plain"].splitlines()[1:], strict=True):
        assert all(cell in line and f">{cell}<" in plot.html for cell in row)
    assert plot.sentence in plot.html and "style" not in plot.html and "class" not in plot.html


def test_the_worked_example_says_22_000_and_not_8_000():
    result, specs = plots.fixed_run()
    plot = plots.worked_example([step.prompt for step in plots.steps_of(result, specs)])
    assert plot.sentence == "8 steps send 22,000 input tokens, not 8,000: 2.8 times."
    assert plot.rows[-1] == ["8", "22,000", "8,000"]


def test_a_plot_of_one_run_says_its_exit_and_the_prompt_that_was_not_sent():
    result = ask_on(12, token_budget=900)
    unsent = count_tokens(SPECS) + count_tokens(result.messages)
    plot = plots.spend_by_step(result, SPECS, token_budget=900)
    assert f"3 steps spent {result.tokens} of 900 tokens" in plot.sentence
    assert plot.sentence.endswith(f"the next one needs about {unsent}. Exit: token_budget.")
    assert plot.rows[-1] == ["not sent", str(unsent), "–", f"{result.tokens + unsent:,}"]


def test_a_plot_of_a_run_that_took_no_step_says_so():
    plot = plots.spend_by_step(ask_on(2, token_budget=1), SPECS, token_budget=1)
    assert plot.sentence.startswith("0 steps spent 0 of 1 tokens") and len(plot.rows) == 2


def test_runs_of_growing_length_cost_more_for_each_step():
    results = [ask_on(n) for n in (1, 2, 4, 8, 16)]
    plot = plots.spend_of_runs(results, SPECS)
    assert [row[2] for row in plot.rows[1:]] == [f"{result.tokens:,}" for result in results]
    each = [int(row[1]) for row in plot.rows[1:]]
    assert each == sorted(set(each))
    assert plot.sentence.startswith("2 times the steps cost 3.")


def test_what_is_measured_once_grows_with_the_steps_and_what_is_measured_again_with_their_square():
    plot = plots.measured([ask_on(n) for n in (8, 16, 32, 64)])
    again, once = ([int(row[i].replace(",", "")) for row in plot.rows[1:]] for i in (1, 2))
    assert all(1.7 < b / a < 2.1 for a, b in pairwise(once)) and all(3 < b / a < 4.1 for a, b in pairwise(again))
    assert plot.sentence.endswith(f"{again[-1]:,}: {again[-1] / once[-1]:.1f} times.")


def test_measured_again_are_the_lists_that_the_model_was_shown_and_once_is_what_the_reference_adds_up():
    model = ScriptedModel([asks(call("c1", "get_weather", city="Zürich")), final("No data.")])
    result = run_agent("How hot is Zürich?", model, weather_world()[0])
    again = sum(len(json.dumps(shown, ensure_ascii=False)) for shown in model.seen)
    once = Run(result, None).chars - len(", ") * len(result.messages)
    assert plots.measured([result]).rows[1] == ["2", f"{again:,}", f"{once:,}"]


def test_runs_to_measure_are_in_the_order_of_their_steps():
    for results in ([], [ask_on(4), ask_on(2)], [ask_on(2), ask_on(2)]):
        with pytest.raises(ValueError, match="measured takes"):
            plots.measured(results)


def test_a_long_table_is_thinned_and_keeps_its_last_row():
    plot = plots.lines("Long", range(1, 101), {"a": list(range(1, 101))}, "It is long.")
    assert len(plot.rows) <= 14 and plot.rows[-1] == ["100", "100"]


@pytest.mark.parametrize("cell, text", [(22000, "22,000"), (2.75, "2.8"), (3.0, "3"), ("a\nb", "a b")])
def test_numbers_have_commas_and_at_most_one_decimal(cell, text):
    assert plots.show(cell) == text


@pytest.mark.parametrize("series, problem", [
    ({}, "one to four"), ({name: [1] for name in "abcde"}, "one to four"),
    ({"a": []}, "'a' has 0 values for 2 places"), ({"a": [1, 2, 3]}, "'a' has 3 values for 2 places"),
])
def test_what_cannot_be_drawn_is_refused_in_one_sentence(series, problem):
    for draw in (plots.lines, plots.bars):
        with pytest.raises(ValueError, match=problem):
            draw("Title", [1, 2], series, "It says so.")


def test_a_run_without_a_step_has_no_prompts_to_draw():
    with pytest.raises(ValueError, match="worked_example takes"):
        plots.worked_example([])


def test_runs_that_do_not_grow_are_refused():
    no_step = ask_on(2, token_budget=1)
    for results in ([ask_on(2)], [ask_on(4), ask_on(2)], [ask_on(2), ask_on(2)], [no_step, ask_on(2)]):
        with pytest.raises(ValueError, match="two or more runs"):
            plots.spend_of_runs(results, SPECS)


# --- Pictures ------------------------------------------------------------------------------------------------


def test_a_plot_has_the_same_bytes_each_time():
    assert [plot.png for plot in every_plot()] == [plot.png for plot in PLOTS]


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.title)
def test_a_plot_is_drawn_on_paper_in_colours_of_the_palette_and_blends_of_two(plot):
    image = Image.open(io.BytesIO(plot.png)).convert("RGB")
    assert image.size == (770, 330)
    colours = sorted(image.getcolors(10**6), reverse=True)
    assert colours[0][1] == ImageColor.getrgb(plots.PAPER)
    names = ["ink", "muted", "line", "edge", "assistant", "tool", "error", "exit", "spent", "track"]
    used = [ImageColor.getrgb(colour) for colour in [plots.PAPER, *(plots.PALETTE[name] for name in names)]]
    foreign = [c for n, c in colours if n >= 30 and not any(is_blend(c, a, b) for a, b in combinations(used, 2))]
    assert foreign == []


def is_blend(colour, a, b):
    """Say whether a colour lies between two others, as at the soft edge of a line."""
    along = [y - x for x, y in zip(a, b)]
    share = sum((c - x) * d for c, x, d in zip(colour, a, along)) / sum(d * d for d in along)
    return -.02 <= share <= 1.02 and all(abs(x + share * d - c) < 6 for x, d, c in zip(a, along, colour))


@pytest.mark.parametrize("plot", PLOTS, ids=lambda plot: plot.title)
def test_nothing_is_drawn_at_the_edge(plot):
    image = Image.open(io.BytesIO(plot.png)).convert("RGB")
    inside = image.crop((8, 8, 762, 322))
    paper = Image.new("RGB", image.size, plots.PAPER)
    paper.paste(inside, (8, 8))
    assert paper.tobytes() == image.tobytes()


def rooms_of(plot):
    """Return the picture of a plot as pixels, and for each of its axes where they begin and end, and their floor."""
    pixels = np.asarray(Image.open(io.BytesIO(plot.png)).convert("RGB"))
    edge = (pixels == ImageColor.getrgb(plots.EDGE)).all(axis=2)
    found = []
    for y in np.flatnonzero(edge.sum(axis=1) > 150):
        ends = np.flatnonzero(np.diff(np.concatenate([[0], edge[y].astype(int), [0]])))
        found += [(left, right, y) for left, right in zip(ends[::2], ends[1::2]) if right - left > 150]
    return pixels, found


def over_the_ticks(plot):
    """Return how many pixels in the colour of an exit lie where the numbers of an axis stand."""
    pixels, found = rooms_of(plot)
    exits = (pixels == ImageColor.getrgb(plots.EXIT)).all(axis=2)
    assert found and exits.any()
    return sum(int(exits[floor - 150 : floor + 20, max(0, left - 45) : left - 3].sum()) for left, _, floor in found)


@pytest.mark.parametrize("status", ["done", "interrupted", "waiting_for_approval", "token_budget"])
@pytest.mark.parametrize(("steps", "most"), [(1, None), (1, 8), (2, 20), (8, 8)])
def test_the_flag_of_an_exit_lies_over_no_number_of_an_axis(status, steps, most):
    result = replace(ask_on(steps), status=status)
    assert over_the_ticks(plots.spend_by_step(result, SPECS, token_budget=90_000, max_steps=most)) == 0


@pytest.mark.parametrize("status", ["done", "interrupted", "waiting_for_approval"])
@pytest.mark.parametrize("count", [1, 2])
def test_nor_does_it_where_runs_stand_side_by_side(status, count):
    result = replace(ask_on(1), status=status)
    assert over_the_ticks(plots.rooms({f"run {i}": (result, 8, 4000) for i in range(count)}, SPECS)) == 0


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault.number in (6, 7, 12, 14, 19, 20)],
                         ids=lambda fault: fault.name)
def test_nor_does_it_in_the_clinic(fault):
    assert over_the_ticks(plot_of(fault)) == 0


@pytest.mark.parametrize("series", [
    {"a": [1500, 1600, 1700, 1800], "b": [500, 900, 1300, 1600, 1900, 2200, 2500]},
    {"no guard": list(range(1, 13)), "tell": [1, *[2] * 11], "stop": [1, 2, 2]},
    {"flat": [5] * 3, "up": [1, 3, 5, 7, 9], "down": [9, 7, 5, 3, 1]},
    {"one": [4], "another": [1, 2, 3, 4, 5, 6, 7]},
    {"neither": [1520, 1580, 1920, 2260, 2590, 2930, 3270, 3320, 3386], "both": [530, 840, 910, 1000, 1050, 1127],
     "a skill": [530, 840, 910, 1240, 1580, 1920, 2260, 2590, 2650, 2715],
     "a sub-agent": [1510, 1580, 1670, 1730, 1798]},
])
def test_no_label_of_a_line_lies_over_a_line_or_another_label(series):
    with matplotlib.rc_context(plots.RC):
        figure = Figure(layout="constrained")
        ax, x = plots._axes(figure, "Lines"), range(1, 1 + max(map(len, series.values())))
        plots._draw_lines(ax, x, series)
        plots._finish(ax, x, "step", {}, {})
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        labels = [label.get_window_extent().padded(-2) for label in ax.texts]
        dense = [np.linspace(1, len(values), 200) for values in series.values()]
        heights = [np.interp(places, x[: len(values)], values) for places, values in zip(dense, series.values())]
        points = ax.transData.transform(np.stack([np.concatenate(dense), np.concatenate(heights)], axis=1))
    assert [tuple(point) for label in labels for point in points if label.contains(*point)] == []
    assert not any(one.overlaps(other) for one, other in combinations(labels, 2))


@pytest.mark.parametrize(("max_steps", "token_budget"), [(5, 3000), (10, 900), (8, 900), (4, 850), (6, 200)])
def test_in_a_room_no_words_lie_over_others(max_steps, token_budget):
    run = ask_on(12, max_steps=max_steps, token_budget=token_budget), max_steps, token_budget
    with matplotlib.rc_context(plots.RC):
        figure = Figure(layout="constrained")
        plots.rooms({"one": run, "another": run}, SPECS)._draw(figure)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        labels = [[label.get_window_extent().padded(-2) for label in ax.texts] for ax in figure.axes]
    assert len(labels) == 2
    assert not [one for room in labels for one, other in combinations(room, 2) if one.overlaps(other)]


def test_long_text_is_cut_in_the_picture_and_whole_in_the_words():
    for draw in (plots.lines, plots.bars):
        plot = draw("t" * 999, [1, 2], {"n" * 999: [1, 2]}, "s" * 999, x_name="x" * 999, limits={"l" * 999: 3})
        assert plot.png and "n" * 999 in plot.text and "n" * 999 in plot.html


def test_evil_text_is_drawn_as_text_and_escaped_in_html():
    for draw in (plots.lines, plots.bars):
        plot = draw(EVIL, [1, 2], {EVIL: [1, 2]}, EVIL, x_name=EVIL, limits={EVIL: 3}, walls={EVIL: 2})
        assert plot.png and "<script" not in plot.html and "&lt;script&gt;" in plot.html
        assert len(plot.text.splitlines()) == 4
        plot.text.encode("utf-8")


def test_drawing_opens_no_pyplot_figure_and_leaves_the_settings_as_they_were():
    before = dict(matplotlib.rcParams)
    assert plots.lines("Two", [1, 2], {"a": [1, 2]}, "It grows.").png
    assert dict(matplotlib.rcParams) == before
    program = ("import sys; from looplab import plots; plots.lines('A', [1, 2], {'a': [1, 2]}, 'It grows.').png;"
               "print('matplotlib.pyplot' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert done.stdout.split() == [b"False"], done.stderr


def test_a_notebook_shows_the_picture_and_under_it_sentence_and_table():
    cell = nbformat.v4.new_code_cell("from looplab import plots\nplots.worked_example([1000, 1500])")
    book = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(book, record_timing=False).execute()
    first, second = book.cells[0].outputs
    assert list(first["data"]) == ["image/png", "text/plain"]
    assert list(second["data"]) == ["text/html", "text/plain"]
    assert second["data"]["text/plain"] == "2 steps send 2,500 input tokens, not 2,000: 1.2 times."
