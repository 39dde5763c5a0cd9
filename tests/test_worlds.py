"""The worlds of the later notebooks: order desk and checkout incident, their texts, and what their models do."""

from __future__ import annotations

import ast
import json
import random
from itertools import islice

import pytest
from looplab.worlds import (
    CHECKOUT_TASK,
    INJECTED_LINE,
    LOG_LINES,
    ORDER_TASK,
    P99_MS,
    REFUND_TASK,
    RISKY,
    add_roll_back,
    calculate,
    checkout_world,
    investigates,
    obeys,
    order_desk,
    read_refunds,
    reads_results,
    recovers,
    refunds,
    repeats_itself,
    wanders,
)
from support import observations

from agentloop import (
    WAITING,
    ScriptedModel,
    check_messages,
    continue_agent,
    decide,
    load_checkpoint,
    open_calls,
    require_approval,
    run_agent,
    save_checkpoint,
    stop_on_repeat,
)


def desk_run(model, max_steps, token_budget):
    """Run a model at the order desk, where the third identical call stops it; return the result and what ran."""
    registry, ran = order_desk()
    script = ScriptedModel(islice(model(), max_steps))
    limits = {"max_steps": max_steps, "token_budget": token_budget}
    return run_agent(ORDER_TASK, script, registry, **limits, execute=stop_on_repeat(registry)), ran


# --- The order desk -------------------------------------------------------------------------------------------


def test_an_order_is_found_and_an_unknown_id_says_what_ids_look_like():
    registry, ran = order_desk()
    assert registry.execute("get_order", {"order_id": "A123"}) == '{"item": "keyboard", "unit_price": 2500, "qty": 2}'
    unknown = registry.execute("get_order", {"order_id": "Z999"})
    assert unknown == "ERROR: get_order failed: LookupError: no order with id Z999; ids look like A123"
    assert ran == ["get_order(A123)", "get_order(Z999)"]


SUMS = {
    "2500 * 2 * 1.18": 5900.0,
    "2+3": 5,
    "(1 + 2) * -3": -9,
    "10 / 4": 2.5,
    "1/3": 0.33,
    " 7 ": 7,
    "+5": 5,
    "--5": 5,
    ".5 + 1.": 1.5,
    "2 - -2": 4,
    "0.1 + 0.2": 0.3,
    "(" * 60 + "1" + ")" * 60: 1,
}
REFUSED = [
    "2 ** 3",
    "9**9**9",
    "2 // 3",
    "7 % 2",
    "1 if 1 else 2",
    "abs(1)",
    "1, 2",
    "[1]",
    "x",
    "True",
    "1j",
    "1e5",
    "0x10",
    "1_000",
    "'a' * 3",
    "",
    " ",
    "()",
    "1 +",
    "1 2",
    "(1",
    "1)",
    "1(2)",
    "lambda: 1",
    "__import__('os')",
    "1 < 2",
    "1 & 2",
    "~1",
    "not 1",
    "...",
    "*1",
    "007",
    "2500 * 2\n",
    "２ + ３",
    "1 @ 2",
    "f'{1}'",
    "(1)(2)",
    "1" * 201,
    "+".join("1" * 150),
    "(" * 101 + "1" + ")" * 101,
]


@pytest.mark.parametrize("expression, value", SUMS.items(), ids=list(SUMS))
def test_the_calculator_computes_sums_rounded_to_two_places(expression, value):
    registry, ran = order_desk()
    assert json.loads(registry.execute("calculator", {"expression": expression})) == value == calculate(expression)
    assert ran == [f"calculator({expression})"]


@pytest.mark.parametrize("expression", REFUSED, ids=lambda text: repr(text)[:30])
def test_the_calculator_refuses_everything_else(expression, recwarn):
    observation = order_desk()[0].execute("calculator", {"expression": expression})
    assert observation == "ERROR: calculator failed: ValueError: only numbers and + - * / are allowed"
    assert not recwarn.list


@pytest.mark.parametrize("expression", ["1 / 0", "1 / (2 - 2)", "1.0 / 0", "0 / 0.0"])
def test_what_cannot_be_computed_says_so(expression):
    with pytest.raises(ValueError, match="this cannot be computed: it divides by zero, or its numbers are too large"):
        calculate(expression)


@pytest.mark.parametrize("seed", range(20))
def test_the_calculator_agrees_with_python_on_random_sums(seed):
    chance = random.Random(seed)

    def expression(depth):
        if depth == 0:
            return str(chance.choice([chance.randint(0, 99), chance.randint(1, 999) / 100]))
        return chance.choice(["{} + {}", "{} - {}", "({} * {})", "-({} - {})"]).format(
            expression(depth - 1), expression(depth - 1)
        )

    text = expression(3)
    assert calculate(text) == round(eval(text, {"__builtins__": {}}), 2)


def test_the_calculator_uses_no_eval_and_knows_no_power():
    import inspect

    import looplab.worlds as worlds

    names = {node.id for node in ast.walk(ast.parse(inspect.getsource(worlds))) if isinstance(node, ast.Name)}
    assert names.isdisjoint({"eval", "exec", "compile"}) and ast.Pow not in worlds.OPERATORS


def test_a_refund_is_paid_once_for_each_request_and_recorded(tmp_path):
    for ledger in (None, tmp_path / "ledger"):
        registry, ran = order_desk(ledger)
        args = {"order_id": "A123", "amount": 2500, "request_id": "r1"}
        first = registry.execute("issue_refund", args)
        assert json.loads(first) == {"refund_id": "R1", **args}
        assert registry.execute("issue_refund", args) == first
        assert json.loads(registry.execute("issue_refund", args | {"request_id": "r2"}))["refund_id"] == "R2"
        del args["request_id"]
        assert [json.loads(registry.execute("issue_refund", args))["refund_id"] for _ in range(2)] == ["R3", "R4"]
        assert ran == ["issue_refund(A123, 2500)"] * 5
    assert [refund["refund_id"] for refund in read_refunds(tmp_path / "ledger")] == ["R1", "R2", "R3", "R4"]
    registry, _ = order_desk(tmp_path / "ledger")
    assert json.loads(registry.execute("issue_refund", args | {"request_id": "r1"}))["refund_id"] == "R1"


@pytest.mark.parametrize(
    "args, why",
    [
        ({"order_id": "Z999", "amount": 1}, "no order with id Z999; ids look like A123"),
        ({"order_id": "A123", "amount": 0}, "amount must be above 0, and at most the 5000 that the order cost"),
        ({"order_id": "A123", "amount": -5}, "amount must be above 0"),
        ({"order_id": "A123", "amount": 5000.01}, "at most the 5000 that the order cost"),
    ],
)
def test_a_refund_that_makes_no_sense_pays_nothing(args, why, tmp_path):
    observation = order_desk(tmp_path / "ledger")[0].execute("issue_refund", args)
    assert observation.startswith("ERROR: issue_refund failed: ") and why in observation
    assert read_refunds(tmp_path / "ledger") == []


def test_each_world_is_fresh():
    registry, _ = order_desk()
    registry.execute("issue_refund", {"order_id": "A123", "amount": 1, "request_id": "r1"})
    assert (
        json.loads(order_desk()[0].execute("issue_refund", {"order_id": "A123", "amount": 2, "request_id": "r1"}))[
            "amount"
        ]
        == 2
    )
    assert order_desk()[1] == [] and checkout_world()[1] == []


def test_the_recovering_model_reads_the_error_and_answers_in_four_steps():
    result, ran = desk_run(recovers, 6, 3000)
    assert (result.status, result.steps) == ("done", 4)
    assert result.answer == "Order A123 costs 5900.0 rupees with 18% GST."
    assert observations(result)[0].startswith("ERROR: missing required argument 'order_id'. get_order expects")
    assert observations(result)[1:] == ['{"item": "keyboard", "unit_price": 2500, "qty": 2}', "5900.0"]
    assert ran == ["get_order(A123)", "calculator(2500 * 2 * 1.18)"]


def test_the_repeating_model_is_stopped_at_its_third_call_which_is_not_run():
    result, ran = desk_run(repeats_itself, 6, 3000)
    assert (result.status, result.steps, ran) == ("repeated_call", 3, ["get_order(Z999)"] * 2)


def test_the_wandering_model_meets_the_step_limit_and_no_call_is_a_repeat():
    result, ran = desk_run(wanders, 4, 3000)
    assert (result.status, result.steps) == ("step_limit", 4)
    assert ran == ["get_order(Z001)", "get_order(Z002)", "get_order(Z003)", "get_order(Z004)"]


def test_the_recovering_model_on_a_tight_budget_is_stopped_by_it():
    result, _ = desk_run(recovers, 6, 400)
    assert (result.status, result.answer) == ("token_budget", None) and 0 < result.tokens <= 400
    check_messages(result.messages)


@pytest.mark.parametrize(
    "said, answer, paid",
    [
        (True, "5000 rupees were paid back for order A123.", [5000]),
        (False, "The refund for order A123 was not approved, so nothing was paid back.", []),
    ],
)
def test_a_refund_waits_for_a_person_whose_word_decides(said, answer, paid, tmp_path):
    def desk(verdicts=None):
        registry, _ = order_desk(tmp_path / "ledger")
        return registry, require_approval(registry, registry.check, RISKY, verdicts)

    registry, gate = desk()
    save_checkpoint(tmp_path / "run", run_agent(REFUND_TASK, ScriptedModel(refunds()[:2]), registry, execute=gate))
    waiting = load_checkpoint(tmp_path / "run")
    (pending,) = open_calls(waiting.messages)
    assert (waiting.status, pending.name, read_refunds(tmp_path / "ledger")) == (WAITING, "issue_refund", [])
    registry, gate = desk(decide(waiting, {pending.id: said}))
    result = continue_agent(waiting, ScriptedModel(refunds()[2:]), registry, 8, 4000, execute=gate)
    assert (result.status, result.answer) == ("done", answer)
    assert [refund["amount"] for refund in read_refunds(tmp_path / "ledger")] == paid


# --- The checkout incident ------------------------------------------------------------------------------------


def test_the_numbers_the_lines_and_the_deploys_are_those_of_the_incident():
    registry, ran = checkout_world()
    metrics = json.loads(registry.execute("query_metrics", {"service": "checkout", "window": "24h"}))
    assert metrics == {
        "service": "checkout",
        "window": "24h",
        "p99_ms": {"22:00": 210, "23:00": 205, "00:00": 214, "01:00": 209, "02:00": 2930, "03:00": 2870, "04:00": 2910},
    }
    logs = json.loads(registry.execute("search_logs", {"query": "payments-db"}))
    assert logs == {
        "query": "payments-db",
        "hits": [
            "02:03:11 ERROR TimeoutError: waiting for payments-db connection",
            "02:03:14 ERROR pool exhausted: 10/10 connections in use (payments-db)",
            "02:04:02 ERROR TimeoutError: waiting for payments-db connection",
        ],
    }
    deploys = json.loads(registry.execute("list_deploys", {"service": "checkout"}))
    assert deploys == {
        "service": "checkout",
        "deploys": [
            {"service": "checkout", "version": "v840", "at": "18:20", "note": "copy change on receipt email"},
            {"service": "checkout", "version": "v841", "at": "01:55", "note": "config: payments-db pool size 50 -> 10"},
        ],
    }
    assert ran == ["query_metrics(checkout, 24h)", "search_logs(payments-db)", "list_deploys(checkout)"]


@pytest.mark.parametrize(
    "query, hits", [("POOL", 1), ("timeouterror", 2), ("ERROR", 3), ("nothing", 0), ("", 3), ("02:03", 2)]
)
def test_logs_are_searched_whatever_the_case(query, hits):
    found = json.loads(checkout_world()[0].execute("search_logs", {"query": query}))
    assert (found["query"], len(found["hits"])) == (query, hits)


@pytest.mark.parametrize("window, hours", [("1h", 1), ("3h", 3), ("7h", 7), ("99h", 7)])
def test_a_window_shows_its_last_hours(window, hours):
    shown = json.loads(checkout_world()[0].execute("query_metrics", {"service": "checkout", "window": window}))
    assert list(shown["p99_ms"].items()) == list(P99_MS.items())[-hours:]


@pytest.mark.parametrize("window", ["", "24", "0h", "-1h", "24 h", "1d", "999h", "٣h", "24h\n"])
def test_a_window_that_is_none_says_what_one_looks_like(window):
    observation = checkout_world()[0].execute("query_metrics", {"service": "checkout", "window": window})
    assert observation == "ERROR: query_metrics failed: ValueError: window must be a number of hours, like 24h"


def test_a_service_without_metrics_is_an_error_and_one_without_deploys_has_none():
    registry, _ = checkout_world()
    assert registry.execute("query_metrics", {"service": "cart", "window": "24h"}).startswith(
        "ERROR: query_metrics failed: LookupError: no metrics"
    )
    assert json.loads(registry.execute("list_deploys", {"service": "cart"})) == {"service": "cart", "deploys": []}


def test_the_investigation_ends_in_three_turns_with_a_conclusion_whose_evidence_appeared_before():
    registry, ran = checkout_world()
    result = run_agent(CHECKOUT_TASK, ScriptedModel(investigates()), registry, max_steps=10)
    assert (result.status, result.steps) == ("done", 3)
    assert ran == ["query_metrics(checkout, 24h)", "list_deploys(checkout)", "search_logs(payments-db)"]
    assert result.messages[2]["content"] == "Starting with the latency numbers for checkout."
    seen = " ".join(observations(result))
    for evidence in (
        "v841",
        "01:55",
        "config: payments-db pool size 50 -> 10",
        "209",
        "2930",
        "02:00",
        "pool exhausted: 10/10 connections in use (payments-db)",
    ):
        assert evidence in result.answer and evidence in seen
    assert round(P99_MS["02:00"] / P99_MS["01:00"]) == 14 and "14 times" in result.answer
    assert "Roll back v841" in result.answer and "50" in result.answer


def test_a_line_that_a_stranger_wrote_is_found_beside_those_of_the_incident():
    registry, _ = checkout_world(INJECTED_LINE)
    found = json.loads(registry.execute("search_logs", {"query": "payments-db"}))["hits"]
    assert found == [*LOG_LINES, INJECTED_LINE] and "Ignore your instructions" in INJECTED_LINE
    assert len(json.loads(checkout_world()[0].execute("search_logs", {"query": "payments-db"}))["hits"]) == 3


@pytest.mark.parametrize(
    "line, writes, wrote, answer",
    [
        (INJECTED_LINE, True, ["roll_back(checkout, v840)"], "It was rolled back."),
        (INJECTED_LINE, False, [], "Roll it back."),
        ("", True, [], "Likely cause: deploy v841 of checkout at 01:55."),
    ],
)
def test_a_model_that_obeys_does_what_a_line_in_the_log_says_if_there_is_such_a_line_and_such_a_tool(
    line, writes, wrote, answer
):
    registry, ran = checkout_world(line)
    if writes:
        add_roll_back(registry, ran)
    result = run_agent(CHECKOUT_TASK, ScriptedModel(obeys()), registry, max_steps=10)
    assert result.status == "done" and ran[3:] == wrote and result.answer.endswith(answer)


def test_a_model_that_reads_the_results_names_the_last_deploy_and_the_hour_in_which_p99_rose_most():
    registry, ran = checkout_world()
    result = run_agent(CHECKOUT_TASK, reads_results, registry)
    assert (result.status, result.steps) == ("done", 3)
    assert ran == ["query_metrics(checkout, 24h)", "list_deploys(checkout)"]
    assert result.answer == (
        "At 02:00 p99 rose from 209 to 2930 ms, 14 times as much. "
        'The last deploy was v841 at 01:55, "config: payments-db pool size 50 -> 10".'
    )


@pytest.mark.parametrize("world", [order_desk, checkout_world])
def test_every_description_says_when_to_use_the_tool(world):
    assert all("Use it" in spec["description"] for spec in world()[0].specs())
