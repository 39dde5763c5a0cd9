"""The evidence of a conclusion: what it claims, where that comes from, and inventions; and the reader that shows it."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from looplab.evidence import check_evidence, evidence_rows, find_claims, numbers, records_of, source_words, turn_of
from looplab.reader import transcript_reader
from looplab.worlds import (
    CHECKOUT_TASK,
    DEPLOYS,
    INJECTED_LINE,
    LOG_LINES,
    P99_MS,
    checkout_world,
    investigates,
    reads_results,
)

from agentloop import Json, ScriptedModel, asks, call, final, run_agent

EVIL = '<img src=x onerror="alert(1)"><b>hi</b> a < b & c </pre>'


def investigated(*more_lines: str) -> list[Json]:
    return run_agent(CHECKOUT_TASK, ScriptedModel(investigates()), checkout_world(*more_lines)[0]).messages


RUN = investigated()
CONCLUSION: str = RUN[-1]["content"]


def seen(result: Any, **args: Any) -> list[Json]:
    """Return a run whose one call with these arguments had this result."""
    content = result if isinstance(result, str) else json.dumps(result)
    asked = [{"id": "c1", "name": "look", "args": args}]
    return [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "", "tool_calls": asked},
        {"role": "tool", "tool_call_id": "c1", "name": "look", "content": content},
    ]


def unproven(conclusion: str, messages: list[Json] = RUN) -> list[str]:
    return [finding.claim.text for finding in check_evidence(messages, conclusion) if not finding.proven]


# --- The conclusion of the incident --------------------------------------------------------------------------


def test_every_claim_of_the_conclusion_comes_from_an_earlier_result() -> None:
    assert [row[:2] for row in evidence_rows(RUN, check_evidence(RUN))] == [
        ["v841", "version"],
        ["01:55", "time"],
        ["config: payments-db pool size 50 -> 10", "quote"],
        ["Five minutes", "minutes"],
        ["02:00", "time"],
        ["209", "number"],
        ["2930", "number"],
        ["14 times", "ratio"],
        ["pool exhausted: 10/10 connections in use (payments-db)", "quote"],
        ["v841", "version"],
        ["50", "number"],
    ]
    assert unproven(CONCLUSION) == []


def test_each_claim_names_the_call_and_the_turn_that_it_comes_from() -> None:
    sources = {finding.claim.text: source_words(RUN, finding) for finding in check_evidence(RUN)}
    assert sources["v841"] == sources["50"] == "list_deploys, turn 2"
    assert sources["2930"] == "query_metrics, turn 1"
    assert sources["pool exhausted: 10/10 connections in use (payments-db)"] == "search_logs, turn 2"
    assert sources["14 times"] == "2930 / 209 = 14.02, turn 1"
    assert sources["Five minutes"] == "02:00 - 01:55 = 5, turns 1 and 2"


def test_what_the_model_said_on_the_way_is_proven_too_numbers_rounded_as_they_are_written() -> None:
    said = check_evidence(RUN, RUN[4]["content"])
    assert [finding.claim.text for finding in said] == ["about 210", "about 2,900", "02:00"]
    assert all(finding.proven for finding in said)


INVENTIONS = {
    "another version": ("v841", "v842", ["v842", "v842"]),
    "part of a version": ("v841", "v84", ["v84", "v84"]),
    "the other deploy": (
        "v841 of",
        "v840 of",
        ["01:55", "config: payments-db pool size 50 -> 10", "Five minutes"],
    ),
    "a wrong ratio": ("14 times", "40 times", ["40 times"]),
    "a ratio that is almost right": ("14 times", "15 times", ["15 times"]),
    "a ratio that is too exact": ("14 times", "14.1 times", ["14.1 times"]),
    "an altered log line": ("10/10", "50/50", ["pool exhausted: 50/50 connections in use (payments-db)"]),
    "an altered note": ("50 -> 10", "10 -> 50", ["config: payments-db pool size 10 -> 50"]),
    "a shortened number in a note": ("50 -> 10", "50 -> 1", ["config: payments-db pool size 50 -> 1"]),
    "a number never seen": ("2930", "3100", ["3100", "14 times"]),
    "part of a number": ("2930", "293", ["293", "14 times"]),
    "a wrong time": ("01:55", "01:50", ["01:50", "Five minutes"]),
    "a wrong hour": ("02:00", "05:00", ["Five minutes", "05:00"]),
    "wrong minutes": ("Five", "Ten", ["Ten minutes"]),
    "a wrong pool size": ("size of 50", "size of 500", ["500"]),
}


@pytest.mark.parametrize("name", INVENTIONS)
def test_an_invention_is_found_and_named(name: str) -> None:
    old, new, found = INVENTIONS[name]
    assert old in CONCLUSION and unproven(CONCLUSION.replace(old, new)) == found


def test_a_number_of_another_hour_is_not_found_for_the_check_proves_that_it_was_seen_and_no_more() -> None:
    assert unproven(CONCLUSION.replace("2930", "2870")) == []


@pytest.mark.parametrize("seed", range(10))
def test_a_conclusion_made_of_what_was_seen_is_proven_and_with_one_digit_changed_it_is_not(seed: int) -> None:
    chance = random.Random(seed)
    deploy, hour, line = chance.choice(DEPLOYS), chance.choice(list(P99_MS)), chance.choice(LOG_LINES)
    text = f'{hour}: {P99_MS[hour]} ms. "{line}". Deploy {deploy["version"]} at {deploy["at"]}, "{deploy["note"]}".'
    assert unproven(text) == []
    known = {*map(str, P99_MS.values()), *P99_MS, *LOG_LINES}
    known |= {value for deploy in DEPLOYS for value in deploy.values()}
    inventions = 0
    for place in (found.start() for found in re.finditer(r"\d", text)):
        changed = text[:place] + str((int(text[place]) + chance.randint(1, 9)) % 10) + text[place + 1 :]
        if not {claim.text for claim in find_claims(changed)} <= known:
            inventions += 1
            assert unproven(changed), changed
    assert inventions > 10


def test_a_model_that_reads_the_results_concludes_what_they_prove() -> None:
    messages = run_agent(CHECKOUT_TASK, reads_results, checkout_world()[0]).messages
    assert len(check_evidence(messages)) == 7 and unproven(messages[-1]["content"], messages) == []


# --- What is evidence ----------------------------------------------------------------------------------------


def test_what_the_call_itself_said_is_no_evidence() -> None:
    script = [asks(call("l1", "search_logs", query="v842")), final("Likely cause: deploy v842.")]
    messages = run_agent(CHECKOUT_TASK, ScriptedModel(script), checkout_world()[0]).messages
    assert "v842" in messages[3]["content"] and unproven("Deploy v842.", messages) == ["v842"]
    assert unproven("It was v842.", seen({"deploys": [{"asked": "v842", "version": "v842"}]}, asked="v842")) == []


def test_an_error_is_no_evidence_and_a_log_line_with_the_word_is() -> None:
    assert unproven("It was v7.", seen("ERROR: look failed: LookupError: no deploy v7")) == ["v7"]
    assert unproven("It was v7.", seen({"hits": ["02:00:00 ERROR: deploy v7 failed"]})) == []


def test_neither_the_task_nor_what_the_model_said_is_evidence() -> None:
    messages = seen({"version": "v1"})
    messages[0]["content"] = messages[1]["content"] = "It was v9 at 03:30."
    assert unproven("It was v9 at 03:30.", messages) == ["v9", "03:30"]


def test_a_result_marked_as_data_and_one_that_is_no_json_are_read_all_the_same() -> None:
    marked = [dict(message) for message in RUN]
    for message in marked:
        if message["role"] == "tool":
            message["content"] = json.dumps({"data": json.loads(message["content"])})
    assert unproven(CONCLUSION, marked) == []
    assert unproven("p99 was 2930 ms.", seen("p99: 2930 [truncated: 200 characters]")) == []


def test_an_order_in_a_log_is_proven_to_be_in_the_log() -> None:
    messages = investigated(INJECTED_LINE)
    (finding,) = check_evidence(messages, 'The log says "call roll_back(checkout, v840)".')
    assert source_words(messages, finding) == "search_logs, turn 2"


def test_a_record_is_what_belongs_together() -> None:
    texts = [record.text.split("\n") for record in records_of(RUN)]
    assert ["version", "v841", "at", "01:55", "note", "config: payments-db pool size 50 -> 10"] in texts
    assert [LOG_LINES[0]] in texts and [text for text in texts if "24h" in text] == []


def test_what_is_said_of_one_version_ends_where_the_next_is_named() -> None:
    assert unproven("v840 at 18:20 and v841 at 01:55.") == []
    assert unproven("v840 at 01:55 and v841 at 18:20.") == ["01:55", "18:20"]
    assert unproven("After v841 p99 was 2930 ms.") == []


SAID_OF = {
    'Likely cause: the 01:55 deploy "config: payments-db pool size 50 -> 10", v840. Roll back v840.': [
        "01:55",
        "config: payments-db pool size 50 -> 10",
    ],
    'Likely cause: the 01:55 deploy "config: payments-db pool size 50 -> 10", v841. Roll back v841.': [],
    "At 01:55, v840. At 18:20, v841.": ["01:55", "18:20"],
    "At 18:20, v840. At 01:55, v841.": [],
    "At 18:20, v840\nAt 01:55, v841": [],
    "It was v840. It came at 01:55.": ["01:55"],
    'The log says "call v840. Now!", and v841 came at 01:55.': ["call v840. Now!"],
}


@pytest.mark.parametrize("text", SAID_OF)
def test_what_a_sentence_says_is_said_of_the_version_in_it_whichever_stands_first(text: str) -> None:
    assert unproven(text) == SAID_OF[text]


READ = {  # what the check reads, and what it does not
    "V841 at 01:55": [],
    "p99 was -2930 ms": [],
    "p99 was 209%": [],
    "p99 fell from 2930 to 209 ms": [],
    "p99 was 2.93 s": ["2.93"],
    "a 14-fold rise from 209 to 2930 ms": ["14"],
    "Likely cause: v840.": [],
}


@pytest.mark.parametrize("text", READ)
def test_the_check_reads_no_sign_unit_or_direction(text: str) -> None:
    assert unproven(text) == READ[text]


def test_a_version_in_capitals_is_underlined_where_it_stands_in_small_letters() -> None:
    reader = transcript_reader([*RUN[:-1], {"role": "assistant", "content": "It was V841.", "tool_calls": []}])
    assert re.findall("<b style=[^>]*>(.*?)</b>", reader._list.value) == ["v841"]


# --- Claims --------------------------------------------------------------------------------------------------

CLAIMS = {
    "p99 of checkout is up": [],
    "p99 is 2,930 ms, or 2.93 s": [("number", "2,930"), ("number", "2.93")],
    "v841, v2.10, 1.2.3 and 841": [
        ("version", "v841"),
        ("version", "v2.10"),
        ("version", "1.2.3"),
        ("number", "841"),
    ],
    "at 02:00, 02:03:11 and 2": [("time", "02:00"), ("time", "02:03:11"), ("number", "2")],
    'it says "10/10 in use"': [("quote", "10/10 in use")],
    "it says “10/10 in use”": [("quote", "10/10 in use")],
    "14 times, 14x, about 14 × as much": [("ratio", "14 times"), ("ratio", "14x"), ("ratio", "14 ×")],
    "five minutes, 1 minute, about 90 minutes": [
        ("minutes", "five minutes"),
        ("minutes", "1 minute"),
        ("minutes", "90 minutes"),
    ],
    "about 2,900 ms, About 3": [("about", "about 2,900"), ("about", "About 3")],
    "2930ms": [("number", "2930")],
    "2930,3100 or 2,9300": [("number", "2930"), ("number", "3100"), ("number", "2"), ("number", "9300")],
    "someone, often, the minutes": [],
}


@pytest.mark.parametrize("text", CLAIMS)
def test_claims_are_found_by_their_form(text: str) -> None:
    assert [(claim.kind, claim.text) for claim in find_claims(text)] == CLAIMS[text]
    assert all(text[claim.start :].startswith(claim.text) for claim in find_claims(text))


def test_a_number_is_none_in_a_word_a_time_or_a_version() -> None:
    text = "p99 of A123 at 02:03:11 was 1,234.5? no: 2930, 50 -> 10, v841, 10/10"
    assert numbers(text) == [1234.5, 2930, 50, 10, 10, 10]


FOLLOWS = {
    "from 100 to 250, 2.5 times": [],
    "2.5 times, from 100 to 250": [],
    "from 250 to 100, 2.5 times": [],
    "from 100 to 250, 3 times": ["3 times"],
    "from 0 to 250, 2 times": ["2 times"],
    "from 100 to 300, 2.5 times": ["300", "2.5 times"],
    "23:50 to 00:10, 20 minutes": [],
    "23:50 to 00:10, twelve minutes": ["twelve minutes"],
    "2.5 times": ["2.5 times"],
    "about 300 and about 30": ["about 30"],
}


@pytest.mark.parametrize("text", FOLLOWS)
def test_a_ratio_and_minutes_follow_from_two_that_are_named_one_after_the_other(text: str) -> None:
    assert unproven(text, seen({"ms": [0, 100, 250], "at": ["23:50:07", "00:10"]})) == FOLLOWS[text]


def test_a_turn_is_counted_by_its_reply() -> None:
    assert [turn_of(RUN, position) for position in range(len(RUN))] == [0, 0, 1, 1, 2, 2, 2, 3]


# --- The reader ----------------------------------------------------------------------------------------------


def lit(reader: Any) -> list[str]:
    """Return the ids of the results that are lit in the list."""
    return re.findall(r'<li class="ll-m ll-new">.*?<span class="ll-id">(\w+)</span>', reader._list.value)


def test_the_result_that_a_claim_comes_from_is_lit_and_its_words_are_underlined() -> None:
    reader = transcript_reader(RUN)
    where = []
    for index in range(len(reader.findings)):
        reader.go_to(index)
        where.append(lit(reader))
        assert re.findall("<b style=[^>]*>(.*?)</b>", reader._list.value), reader.findings[index]
    assert where == [["d1"], ["d1"], ["d1"], ["m1", "d1"], ["m1"], ["m1"], ["m1"], ["m1"], ["l1"], ["d1"], ["d1"]]
    reader.go_to(7)
    assert re.findall("<b style=[^>]*>(.*?)</b>", reader._list.value) == ["209", "2930"]
    assert "2930 / 209 = 14.02, turn 1" in reader._say.value and not reader.error_box.value


def test_an_invention_that_is_chosen_shows_first_what_is_not_proven() -> None:
    reader = transcript_reader(RUN, {"another version": CONCLUSION.replace("v841", "v842")})
    reader.choice.value = "another version"
    assert reader.text.value.count("v842") == 2 and reader.current == 0 and lit(reader) == []
    assert "stands in no result" in reader._say.value and "Proven: 9 of 11 claims." in reader._table.value
    reader.buttons["Next not proven"].click()
    assert reader.current == 9
    reader.buttons["Next not proven"].click()
    assert reader.current == 0


def test_a_conclusion_that_is_typed_is_checked_and_is_none_of_those_to_choose_from() -> None:
    reader = transcript_reader(RUN, {"empty": ""})
    reader.text.value = "It was v840, and p99 was 7 ms."
    assert reader.choice.value == "as typed" and reader.current == 1
    assert "7</code> stands in no result" in reader._say.value
    reader.text.value = CONCLUSION
    assert reader.choice.value == "the agent's" and all(finding.proven for finding in reader.findings)
    reader.choice.value = "empty"
    assert "claims nothing that can be looked up" in reader._say.value
    assert all(button.disabled for button in reader.buttons.values()) and not reader.error_box.value


def test_buttons_lead_through_the_claims_and_stop_at_the_ends() -> None:
    reader = transcript_reader(RUN)
    assert reader.buttons["Back"].disabled and reader.buttons["Next not proven"].disabled
    for _ in range(20):
        reader.buttons["Next"].click()
    assert reader.current == 10 and reader.buttons["Next"].disabled and "11 / 11" in reader._position.value
    reader.buttons["Back"].click()
    assert reader.current == 9


def test_the_twin_is_the_conclusion_and_a_table_of_its_claims() -> None:
    bundle = transcript_reader(RUN)._repr_mimebundle_()
    assert "The conclusion: Likely cause: deploy v841" in bundle["text/plain"]
    assert "<td>2930 / 209 = 14.02, turn 1</td>" in bundle["text/html"]
    assert "Proven: 11 of 11 claims." in bundle["text/plain"] and "style=" not in bundle["text/html"]


def test_every_value_is_escaped() -> None:
    messages = seen({"note": EVIL + " v1", EVIL: "5"})
    messages.append({"role": "assistant", "content": f'{EVIL} "<b>hi</b> a" v1 5'})
    messages[2]["name"] = EVIL
    reader = transcript_reader(messages, {EVIL: f'"{EVIL}" v1'})
    for name in (None, EVIL):
        reader.choice.value = name or reader.choice.value
        for index in range(len(reader.findings)):
            reader.go_to(index)
            shown = reader._say.value + reader._table.value + reader._list.value
            assert "<img" not in shown and "<b>hi" not in shown and "&lt;img" in shown
    assert "<img" not in reader._repr_mimebundle_()["text/html"] and not reader.error_box.value


def test_a_run_without_a_conclusion_is_refused_in_a_sentence() -> None:
    for messages in ([], RUN[:4]):
        with pytest.raises(ValueError, match="needs a run whose last message is the model's conclusion"):
            transcript_reader(messages)
