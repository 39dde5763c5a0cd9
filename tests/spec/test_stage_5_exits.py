"""Stage 5: the loop is forced to stop, by a limit of steps and by a budget of tokens, and says why."""

from __future__ import annotations

import json
from typing import Any

from .candidate import Candidate
from .play import HAPPY_PATH, LOOK_UP, NEVER_DONE, Play, final, play
from .world import ANSWER, TASK, WEATHER, build_registry

AMPLE = 1_000_000


def estimate(value: Any) -> int:
    """Estimate tokens by the rule that count_tokens states."""
    return max(1, len(json.dumps(value, ensure_ascii=False)) // 4)


def costs(mine: Candidate, run: Play) -> list[tuple[int, int]]:
    """Return what each step of a run cost: its prompt, specs and all messages before it, and its reply."""
    specs = mine.attempt("specs()", lambda: build_registry(mine, WEATHER, []).specs()).returned()
    messages = run.messages
    replies = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    return [(estimate(specs) + estimate(messages[:place]), estimate(messages[place])) for place in replies]


def test_the_file_has_the_names_of_stage_5(mine: Candidate) -> None:
    mine.require("ToolCall", "ModelReply", "ToolRegistry", "AgentResult", "count_tokens", "run_agent")


def test_a_result_holds_status_answer_steps_tokens_and_messages(mine: Candidate) -> None:
    made = mine.use("AgentResult", "done", "Hello.", 1, 20, [])
    made.has(status="done", answer="Hello.", steps=1, tokens=20, messages=[])


def test_tokens_are_estimated_as_a_quarter_of_the_characters_of_the_json(mine: Candidate) -> None:
    mine.use("count_tokens", "x" * 38).gives(10)
    mine.use("count_tokens", "x" * 41).gives(10)
    mine.use("count_tokens", [{"role": "user", "content": "Hello."}]).gives(9)


def test_letters_that_are_not_ascii_count_as_one_character(mine: Candidate) -> None:
    mine.use("count_tokens", "ü" * 38).gives(10)


def test_nothing_counts_as_less_than_one_token(mine: Candidate) -> None:
    mine.use("count_tokens", "").gives(1)
    mine.use("count_tokens", []).gives(1)


def test_a_finished_run_counts_its_model_calls_as_steps(mine: Candidate) -> None:
    play(mine, *HAPPY_PATH).ends(status="done", answer=ANSWER, steps=3)
    play(mine, final("Hello.")).ends(status="done", answer="Hello.", steps=1)


def test_tokens_are_the_prompt_and_the_reply_of_every_step(mine: Candidate) -> None:
    run = play(mine, *HAPPY_PATH)
    steps = costs(mine, run)
    expected = sum(prompt + reply for prompt, reply in steps)
    sums = " + ".join(f"({prompt} + {reply})" for prompt, reply in steps)
    tokens = run.trial.field("tokens")
    in_words = f"tokens = {expected}, which is (prompt + reply) of each step: {sums}"
    run.trial.expect(tokens == expected, in_words, f"tokens = {tokens}")


def test_a_model_that_never_finishes_is_called_max_steps_times(mine: Candidate) -> None:
    run = play(mine, *NEVER_DONE, max_steps=5)
    run.shows(2, 4, 6, 8, 10)
    run.ends(status="step_limit", steps=5)


def test_a_run_has_at_most_eight_steps_unless_told_otherwise(mine: Candidate) -> None:
    run = play(mine, *NEVER_DONE, token_budget=AMPLE)
    run.shows(2, 4, 6, 8, 10, 12, 14, 16)
    run.ends(status="step_limit", steps=8)


def test_the_calls_of_the_last_step_are_run_and_answered(mine: Candidate) -> None:
    run = play(mine, *HAPPY_PATH, max_steps=1)
    run.runs("get_weather")
    run.holds({"role": "system"}, {"role": "user"}, {"role": "assistant"}, {"role": "tool", "tool_call_id": "c1"})


def test_the_answer_may_come_with_the_last_step(mine: Candidate) -> None:
    play(mine, *HAPPY_PATH, max_steps=3).ends(status="done", answer=ANSWER, steps=3)


def test_one_step_too_few_stops_the_run(mine: Candidate) -> None:
    play(mine, *HAPPY_PATH, max_steps=2).ends(status="step_limit", steps=2)


def test_a_run_that_the_step_limit_stopped_returns_its_messages(mine: Candidate) -> None:
    run = play(mine, *HAPPY_PATH, max_steps=2)
    run.holds(
        {"role": "system"},
        {"role": "user", "content": TASK},
        {"role": "assistant", "content": LOOK_UP},
        {"role": "tool", "tool_call_id": "c1", "content": '{"city": "Pune", "celsius": 30}'},
        {"role": "assistant"},
        {"role": "tool", "tool_call_id": "c2", "content": "86.0"},
    )


def test_a_stopped_run_has_no_answer(mine: Candidate) -> None:
    full = play(mine, *HAPPY_PATH, token_budget=AMPLE).trial.field("tokens")
    for limit in ({"max_steps": 1}, {"max_steps": 2}, {"token_budget": full // 2}):
        run = play(mine, *HAPPY_PATH, **limit)
        answer = run.trial.field("answer")
        run.trial.expect(answer in (None, ""), "no answer, for the model gave none", f"the answer `{answer}`")


def test_a_budget_of_exactly_the_full_cost_finishes(mine: Candidate) -> None:
    full = play(mine, *HAPPY_PATH, token_budget=AMPLE).trial.field("tokens")
    play(mine, *HAPPY_PATH, token_budget=full).ends(status="done", answer=ANSWER, steps=3, tokens=full)


def test_half_the_full_cost_stops_early_with_no_more_than_half_spent(mine: Candidate) -> None:
    half = play(mine, *HAPPY_PATH, token_budget=AMPLE).trial.field("tokens") // 2
    run = play(mine, *HAPPY_PATH, token_budget=half)
    run.ends(status="token_budget")
    tokens = run.trial.field("tokens")
    run.trial.expect(tokens <= half, f"tokens of at most {half}, half the full cost", f"tokens = {tokens}")


def test_a_budget_that_just_covers_the_next_prompt_lets_the_call_happen(mine: Candidate) -> None:
    (prompt, reply), (next_prompt, _), _ = costs(mine, play(mine, *HAPPY_PATH, token_budget=AMPLE))
    run = play(mine, *HAPPY_PATH, token_budget=prompt + reply + next_prompt)
    run.shows(2, 4)
    run.ends(status="token_budget", steps=2)


def test_a_budget_one_token_short_of_the_next_prompt_stops_before_the_call(mine: Candidate) -> None:
    (prompt, reply), (next_prompt, _), _ = costs(mine, play(mine, *HAPPY_PATH, token_budget=AMPLE))
    run = play(mine, *HAPPY_PATH, token_budget=prompt + reply + next_prompt - 1)
    run.shows(2)
    run.ends(status="token_budget", steps=1, tokens=prompt + reply)


def test_a_budget_below_the_first_prompt_makes_no_model_call(mine: Candidate) -> None:
    (prompt, _), *_ = costs(mine, play(mine, *HAPPY_PATH, token_budget=AMPLE))
    run = play(mine, *HAPPY_PATH, token_budget=prompt - 1)
    run.shows()
    run.ends(status="token_budget", steps=0, tokens=0)
    run.holds({"role": "system"}, {"role": "user", "content": TASK})


def test_a_run_that_the_budget_stopped_returns_its_messages(mine: Candidate) -> None:
    (prompt, reply), *_ = costs(mine, play(mine, *HAPPY_PATH, token_budget=AMPLE))
    run = play(mine, *HAPPY_PATH, token_budget=prompt + reply)
    run.holds({"role": "system"}, {"role": "user"}, {"role": "assistant"}, {"role": "tool", "tool_call_id": "c1"})


def test_the_budget_is_4000_tokens_unless_told_otherwise(mine: Candidate) -> None:
    (prompt, _), *_ = costs(mine, play(mine, final("Hello."), task="x"))
    fills_the_budget = "x" * (1 + 4 * (4000 - prompt))
    play(mine, final("Hello."), task=fills_the_budget).ends(status="done")
    play(mine, final("Hello."), task=fills_the_budget + "xxxx").ends(status="token_budget", steps=0)


def test_a_budget_stops_a_model_that_never_finishes(mine: Candidate) -> None:
    run = play(mine, *NEVER_DONE, max_steps=len(NEVER_DONE) + 1, token_budget=1500)
    run.ends(status="token_budget")


def test_the_system_text_tells_the_model_to_use_the_tools_unless_told_otherwise(mine: Candidate) -> None:
    run = play(mine, final("Hello."))
    system = {"role": "system", "content": "Use the tools to answer the user."}
    run.holds(system, {"role": "user"}, {"role": "assistant"})


def test_a_system_text_that_is_given_is_the_first_message(mine: Candidate) -> None:
    run = play(mine, final("Hello."), system="Be brief.")
    run.holds({"role": "system", "content": "Be brief."}, {"role": "user", "content": TASK}, {"role": "assistant"})
