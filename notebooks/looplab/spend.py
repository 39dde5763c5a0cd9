"""What each step of a run cost by the loop's own estimate, and why the run ended, in words."""

from __future__ import annotations

from dataclasses import dataclass

from agentloop import AgentResult, Json, count_tokens
from looplab.view import plural

ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
NO_ANSWER = {
    "truncated": "The reply was cut off, so it is no answer and its calls do not run.",
    "refused": "The model refused to reply, so this is no answer and nothing runs.",
    "empty_reply": "The model replied with nothing, which is no answer.",
    "repeated_call": "The same call came again after the same result, and was not run.",
}


@dataclass(frozen=True)
class Step:
    """One step of a run: the tokens of its prompt and of its reply, the sum so far, and the messages it added."""

    prompt: int
    reply: int
    spent: int
    message: Json
    observations: list[str]


def steps_of(messages: list[Json], specs: list[Json]) -> list[Step]:
    """Return the steps of a run whose replies brought no usage of their own."""
    steps: list[Step] = []
    spent = 0
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            prompt, reply = next_prompt(messages[:i], specs), count_tokens(message)
            spent += prompt + reply
            steps.append(Step(prompt, reply, spent, message, []))
        elif message["role"] == "tool":
            steps[-1].observations.append(message["content"])
    return steps


def next_prompt(messages: list[Json], specs: list[Json]) -> int:
    """Estimate the tokens of the prompt that these messages make."""
    return count_tokens(specs) + count_tokens(messages)


def exit_reason(result: AgentResult, specs: list[Json], max_steps: int, token_budget: int,
                still_asks: str = "The model still asks") -> str:
    """Say why a run ended, with its numbers."""
    spent = f"{result.tokens:,} of {token_budget:,} tokens are spent"
    if result.tokens > token_budget:
        spent = f"{result.tokens:,} tokens, more than the budget of {token_budget:,}, are spent"
    if result.status == "step_limit":
        allowed = "1 is" if max_steps == 1 else f"{max_steps} are"
        return f"{still_asks} for tools after {plural(result.steps, 'step')}, and {allowed} allowed. {spent}."
    if result.status == "token_budget":
        prompt = next_prompt(result.messages, specs)
        return (f"{result.tokens:,} tokens are spent and the next prompt needs about {prompt:,}: "
                f"together {result.tokens + prompt:,}, and the budget is {token_budget:,}.")
    if result.status == "done":
        which = f"The {ORDINALS[result.steps - 1]} reply" if result.steps <= len(ORDINALS) else f"Reply {result.steps}"
        taken = f"in {result.steps} of {plural(max_steps, 'step')}"
        return f"{which} asks for no tool, so it is the answer. {spent} {taken}."
    return f"{NO_ANSWER.get(result.status, 'The run was stopped from outside the loop.')} {spent}."
