"""Costs of runs by formula and by running the loop, a cache that is honest, and chances that multiply."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import product
from typing import Any

import ipywidgets
import pytest

import looplab
from agentloop import fit_messages
from looplab import chances, cost_bench
from looplab.chances import chance_html, chance_plot, chance_svg, points, survivors
from looplab.cost_bench import Costs, cost_html, cost_svg, cost_words
from looplab.costs import Bill, Prices, Shape, StepTokens, bill, run_shape

EVIL = '<img src=x onerror="alert(1)"><b>hi</b>'
PRICES = Prices(3, 15, as_of="2026-11-01")
SHAPES = [Shape(), Shape(20), Shape(10, result=200), Shape(1), Shape(3, 50, 0, 0), Shape(5, 150, 7, 1),
          Shape(4, 0, 1, 1)]


# --- The arithmetic -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [lambda shape: shape.step_tokens(), lambda shape: run_shape(shape)[0]],
                         ids=["by formula", "by running the loop"])
def test_ten_steps_send_49_750_tokens_and_cost_17_cents_and_twenty_send_3_5_times_as_much(count: Any) -> None:
    steps = count(Shape(10, start=1500 + 100, written=150, result=600))
    assert steps[0].prompt == 1600 and {b.prompt - a.prompt for a, b in zip(steps, steps[1:])} == {750}
    ten, twenty, short = bill(steps, PRICES), bill(count(Shape(20)), PRICES), bill(count(Shape(10, result=200)), PRICES)
    assert (ten.sent, ten.written) == (49_750, 1_500)
    assert (round(ten.prompt_usd, 3), round(ten.reply_usd, 4), round(ten.usd, 2)) == (0.149, 0.0225, 0.17)
    assert twenty.sent == 174_500 and round(twenty.sent / ten.sent, 1) == 3.5
    assert short.sent == 31_750 and f"{1 - short.sent / ten.sent:.0%}" == "36%"


@pytest.mark.parametrize("shape", SHAPES)
def test_a_run_of_the_loop_is_counted_as_the_formula_says(shape: Shape) -> None:
    steps, result = run_shape(shape)
    assert steps == shape.step_tokens()
    assert (result.status, result.steps) == ("done", shape.steps)
    assert result.tokens == sum(step.prompt + step.reply for step in steps)


@pytest.mark.parametrize("wrong", [
    {"steps": 0}, {"start": -1}, {"written": -1}, {"result": -1}, {"steps": "3"}, {"start": 1.5},
    {"written": float("nan")},
])
def test_a_run_of_no_steps_or_of_tokens_below_0_or_not_whole_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="1 step or more"):
        Shape(**wrong)


@pytest.mark.parametrize("wrong", [{"prompt": -1}, {"reply": -0.1}, {"cached": -1}, {"to_cache": float("nan")},
                                   {"prompt": float("inf")}, {"prompt": "3"}, {"reply": None}])
def test_a_price_below_0_or_that_is_no_number_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a price is a number, and none can be below 0"):
        replace(PRICES, **wrong)


# --- A cache --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_a_cache_holds_exactly_the_prompt_before_while_the_list_only_grows(shape: Shape) -> None:
    steps = run_shape(shape)[0]
    assert [step.again for step in steps] == [0, *(step.prompt for step in steps)][: len(steps)]


def test_what_a_cache_holds_costs_a_part_of_the_price_and_what_it_is_given_more() -> None:
    steps = [StepTokens(1000, 0, 10), StepTokens(1600, 1000, 10)]
    made = bill(steps, Prices(10, 0, "", cached=0.1, to_cache=1.5), caching=True)
    assert (made.sent, made.cached) == (2600, 1000) and made.usd == pytest.approx((1000 * 0.1 + 1600 * 1.5) * 10 / 1e6)


def test_a_cache_at_the_full_price_changes_nothing_and_in_one_step_it_only_costs() -> None:
    full = replace(PRICES, cached=1, to_cache=1)
    assert bill(Shape().step_tokens(), full, True).usd == pytest.approx(bill(Shape().step_tokens(), full).usd)
    assert bill(Shape(1).step_tokens(), PRICES, True).usd > bill(Shape(1).step_tokens(), PRICES).usd
    assert bill(Shape(2).step_tokens(), PRICES, True).usd < bill(Shape(2).step_tokens(), PRICES).usd


def test_dropping_old_steps_sends_less_and_costs_more_where_there_is_a_cache() -> None:
    whole = run_shape(Shape(20))[0]
    dropped = run_shape(Shape(20), lambda model: lambda messages, specs: model(fit_messages(messages, 6000), specs))[0]
    assert max(step.prompt for step in dropped) <= 6000 and dropped[-1].again == 1600
    assert bill(dropped, PRICES).sent < bill(whole, PRICES).sent and bill(dropped, PRICES).usd < bill(whole, PRICES).usd
    assert bill(dropped, PRICES, True).usd > bill(whole, PRICES, True).usd


# --- The cost explorer ----------------------------------------------------------------------------------------


def every(widget: Any, kind: Any) -> list[Any]:
    found = [widget] if isinstance(widget, kind) else []
    return found + [part for child in getattr(widget, "children", ()) for part in every(child, kind)]


def html_of(bench: Any) -> str:
    return " ".join(area.value for area in every(bench, ipywidgets.HTML))


def test_the_explorer_says_the_numbers_of_ten_steps() -> None:
    bench = looplab.cost_explorer(PRICES)
    assert "send 49,750 input tokens and write 1,500: 0.149 + 0.0225 = 0.172 USD." in html_of(bench)
    assert bench.twin()[2] == "10 steps send 49,750 input tokens and write 1,500: 0.149 + 0.0225 = 0.172 USD."
    assert [row[:2] for row in bench.twin()[3][1:]] == [
        ["as it is", "49,750"], ["with a cache", "49,750"], ["with results cut", "31,750"], ["with both", "31,750"]]


def test_the_explorer_follows_each_of_its_controls() -> None:
    bench = looplab.cost_explorer(PRICES)
    seen = {html_of(bench)}
    for control, value in [("steps", 20), ("start", 2000), ("written", 100), ("result", 500), ("prompt", 2.5),
                           ("reply", 10.0), ("as_of", "2027-01-01"), ("caching", True), ("cached", 0.2),
                           ("to_cache", 1.0), ("trimming", True), ("cut_to", 300)]:
        getattr(bench, control).value = value
        assert html_of(bench) not in seen, control
        seen.add(html_of(bench))
    assert bench.costs == Costs(Shape(20, 2000, 100, 500), Prices(2.5, 10, "2027-01-01", 0.2, 1), True, 300)
    assert bench.costs.chosen == bill(Shape(20, 2000, 100, 300).step_tokens(), bench.costs.prices, True)
    assert "2027-01-01" in html_of(bench) and bench.error_box.value == ""


def test_results_are_cut_and_never_made_longer() -> None:
    assert Costs(Shape(result=100), PRICES, cut_to=200).chosen == Costs(Shape(result=100), PRICES).chosen
    assert Costs(Shape(), PRICES, cut_to=0).chosen.sent == 1600 * 10 + 150 * 45


GRID = [Costs(Shape(steps, start, 150, result), replace(PRICES, prompt=price), caching, cut_to)
        for steps, start, result, price, caching, cut_to in product(
            (1, 10, 40), (0, 1600), (0, 10**6), (0, 3, 10**6), (False, True), (None, 200))]


@pytest.mark.parametrize("costs", GRID[::5], ids=str)
def test_the_bars_are_one_for_each_step_and_stay_within_their_frame(costs: Costs) -> None:
    for part in ElementTree.fromstring(cost_svg(costs)).iter("rect"):
        x, y, width, height = (float(part.get(name, "")) for name in ("x", "y", "width", "height"))
        assert width > 0 and height >= -0.1 and cost_bench.LEFT <= x and x + width <= cost_bench.RIGHT + 0.1
        assert cost_bench.TOP - 0.2 <= y and y + height <= cost_bench.FLOOR + 0.2
    assert "nan" not in cost_html(costs, 200) and "inf" not in cost_html(costs, 200)


@pytest.mark.parametrize("costs", GRID[::7], ids=str)
def test_what_the_steps_cost_adds_up_to_what_the_run_costs(costs: Costs) -> None:
    by_step = costs.by_step(costs.cut_to is not None, costs.caching)
    assert sum(step.usd for step in by_step) == pytest.approx(costs.chosen.usd)
    variants = costs.variants(200)
    assert variants[cost_bench.name_of(costs)] == costs.chosen if costs.cut_to else variants["as it is"]


@pytest.mark.parametrize(("amount", "said"), [
    (0, "0"), (0.14925, "0.149"), (0.0225, "0.0225"), (99.95, "100"), (1250.4, "1,250"), (0.00001234, "1.2e-05"),
    (3, "3"),
])
def test_amounts_have_three_digits(amount: float, said: str) -> None:
    assert cost_bench.usd(amount) == said


def test_one_step_sends_and_ten_send() -> None:
    assert cost_words(Costs(Shape(1), PRICES)).startswith("1 step sends 1,600 input tokens and writes 150:")


# --- Chances --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("chance", "steps", "said"), [(0.95, 10, "60%"), (0.95, 20, "36%"), (0.99, 10, "90%")])
def test_chances_multiply_and_the_simulation_agrees(chance: float, steps: int, said: str) -> None:
    point = points(chance, 1000, 7)[steps]
    assert f"{point.formula:.0%}" == said and point.agrees
    words = chances.chance_words(chance, point)
    assert f"is {said}." in words and "lies between" in words


def test_over_many_seeds_the_simulation_agrees_in_about_95_of_100_and_not_always() -> None:
    held = sum(points(0.95, 100, seed)[10].agrees for seed in range(400))
    assert 0.92 * 400 < held < 0.98 * 400


@pytest.mark.parametrize("chance", chances.CHANCES.values())
def test_a_simulation_is_the_same_each_time_and_fewer_runs_are_whole_after_more_steps(chance: float) -> None:
    whole = survivors(chance, 100, 3)
    survivors.cache_clear()
    assert whole == survivors(chance, 100, 3) == tuple(sorted(whole, reverse=True))
    assert whole[0] == 100 and len(whole) == chances.STEPS + 1 and survivors(chance, 100, 4) != whole


def test_another_chance_than_the_simulated_does_not_agree() -> None:
    assert not replace(points(0.95, 1000, 7)[10], formula=0.9**10).agrees


def test_each_explorer_says_what_its_numbers_may_be() -> None:
    assert "0 to 1,000,000" in html_of(looplab.chance_explorer())
    assert "Each number is from 0 to 1,000,000." in html_of(looplab.cost_explorer(PRICES))


def test_the_chance_explorer_follows_each_of_its_controls() -> None:
    bench = looplab.chance_explorer()
    assert "0.95 to the power of 10 is 60%. Of 1,000 simulated runs" in html_of(bench)
    bench.steps.value = 20
    assert "0.95 to the power of 20 is 36%." in html_of(bench)
    bench.chance.value = "99%"
    assert "0.99 to the power of 20 is 82%." in html_of(bench)
    bench.runs.value, bench.seed.value = 100, 8
    assert bench.points == points(0.99, 100, 8) and bench.error_box.value == ""


def test_where_the_simulation_is_outside_the_explorer_says_so() -> None:
    seed = next(seed for seed in range(100) if not points(0.95, 100, seed)[10].agrees)
    bench = looplab.chance_explorer(runs=100, seed=seed)
    assert "the formula lies outside, as 1 in 20 times it will" in bench.twin()[0]
    assert "outside" in bench._repr_mimebundle_()["text/plain"] and "ll-error" in html_of(bench)


@pytest.mark.parametrize("wrong", [
    {"shape": Shape(41)}, {"shape": Shape(start=10**7)}, {"cut_to": -1}, {"cut_to": 1.5}, {"cut_to": None},
    {"prices": Prices(10**7, 0, "")},
])
def test_what_the_fields_of_the_cost_explorer_cannot_hold_is_refused_and_not_changed(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="1 to 40 steps, and numbers from 0 to 1,000,000"):
        looplab.cost_explorer(**{"prices": PRICES} | wrong)


def test_prices_without_a_date_are_said_to_have_none() -> None:
    assert looplab.cost_explorer(Prices(3, 15, "")).twin()[1].startswith("Prices as of an unknown day,")


@pytest.mark.parametrize("wrong", [
    {"chances": []}, {"chances": [2.0]}, {"chances": [0.9] * 5}, {"steps": [41]}, {"steps": [1.5]}, {"runs": 0},
])
def test_chances_and_steps_that_cannot_be_drawn_are_refused_in_a_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="chance_plot takes"):
        chance_plot(**{"chances": [0.95], "steps": [10], "runs": 100, "seed": 7} | wrong)


@pytest.mark.parametrize("wrong", [{"chance": "2%"}, {"steps": 0}, {"steps": 41}, {"runs": 7}, {"seed": -1},
                                   {"seed": 10**7}])
def test_a_choice_that_is_none_is_a_value_error_that_names_those_there_are(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="chance must be one of .*95%.*steps 1 to 40"):
        looplab.chance_explorer(**wrong)


@pytest.mark.parametrize(("chance", "steps"), [*product((0.9, 0.999), (1, 7, 40))])
def test_the_curve_and_its_points_stay_within_their_frame(chance: float, steps: int) -> None:
    drawn = ElementTree.fromstring(chance_svg(points(chance, 100, 1), steps))
    for dot in drawn.iter("circle"):
        assert chances.LEFT <= float(dot.get("cx", "")) <= chances.RIGHT
        assert chances.TOP <= float(dot.get("cy", "")) <= chances.FLOOR
    assert len([*drawn.iter("circle")]) == len({*chances.SHOWN, steps})


def test_the_plot_of_chances_counts_where_the_simulation_agrees() -> None:
    plot = chance_plot([0.95, 0.99], [1, 10, 20], 100, 7)
    agree = sum(points(chance, 100, 7)[n].agrees for chance in (0.95, 0.99) for n in (1, 10, 20))
    assert plot.png and plot.sentence.endswith(f"In {agree} of 6 places the simulation agrees.")
    assert plot.rows[2][:2] == ["10", "59.9%"] and "0.95 to the power of 20 is 36%" in plot.sentence


# --- Both explorers -------------------------------------------------------------------------------------------

EXPLORERS = {"costs": lambda: looplab.cost_explorer(PRICES), "chances": lambda: looplab.chance_explorer()}


@pytest.mark.parametrize("name", EXPLORERS)
def test_the_static_twin_is_the_same_each_time_and_plain(name: str) -> None:
    first, second = (EXPLORERS[name]()._repr_mimebundle_() for _ in range(2))
    assert first["text/plain"] == second["text/plain"] and first["text/html"] == second["text/html"]
    assert not re.search("class=|style=|<svg", first["text/html"])


@pytest.mark.parametrize("name", EXPLORERS)
def test_every_control_has_a_name_and_no_slider_runs_while_it_is_dragged(name: str) -> None:
    bench = EXPLORERS[name]()
    kinds = (ipywidgets.RadioButtons, ipywidgets.BoundedIntText, ipywidgets.BoundedFloatText, ipywidgets.Checkbox,
             ipywidgets.Text)
    assert len(every(bench, kinds)) >= 4 and all(control.description for control in every(bench, kinds))
    assert not any(slider.continuous_update for slider in every(bench, ipywidgets.IntSlider))


def test_what_is_typed_as_a_day_is_escaped() -> None:
    bench = looplab.cost_explorer(PRICES)
    bench.as_of.value = EVIL
    shown = html_of(bench)
    assert "<img" not in shown and "<b>hi" not in shown and "&lt;img" in shown
    assert "<img" not in bench._repr_mimebundle_()["text/html"]


def test_the_chosen_row_is_in_bold() -> None:
    assert cost_html(Costs(Shape(), PRICES, True), 200).count("<b>") > 0
    assert "<b>with a cache</b>" in cost_html(Costs(Shape(), PRICES, True), 200)
    assert "<b>15</b>" in chance_html(0.95, points(0.95, 100, 1), 15)
    assert Bill(1, 2, 3, 0.5, 0.25).usd == 0.75
