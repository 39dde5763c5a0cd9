"""Skills and sub-agents, as they stand in the notebook: their limits are tried with many scripts, and each failure."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from looplab import plots
from looplab.nesting import family_table, nested_in, nested_runs, places_of
from looplab.returns import SKILLS, clerk, depot, log_lines, results_of, searcher
from looplab.weave import NOTEBOOKS, read_cells
from looplab.worlds import order_desk, schema
from support import assert_closed, raises

from agentloop import (
    Json,
    Model,
    ModelReply,
    ScriptedModel,
    Stop,
    ToolRegistry,
    Usage,
    asks,
    call,
    count_tokens,
    final,
    record_reply,
)

NOTEBOOK = NOTEBOOKS / "15_skills_and_sub_agents.ipynb"
CELLS = "imports read-skills catalogue add-skills naive purse pays job summary sub-agents".split()


def run_cells(*ids: str) -> SimpleNamespace:
    """Run cells of the notebook, and return the names that they define."""
    cells = {cell.id: cell for cell in read_cells(NOTEBOOK)}
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell_id in ids:
        exec(compile(cells[cell_id].source, str(cells[cell_id]), "exec"), names)
    return SimpleNamespace(**names)


nb = run_cells(*CELLS)
TASK = "Find the parcel."


def family(main: Model, sub: Model, budget: int = 100_000, depth: int = 1,
           tools: Callable[[], ToolRegistry] = depot, max_steps: int = 12) -> Any:
    """Run a job whose sub-agents all have the same model, and return it."""
    job, registry = nb.Job(TASK, nb.Purse(budget)), ToolRegistry()
    nb.add_sub_agents(registry, job, sub, tools, depth)
    nb.run_job(job, main, registry, "", max_steps)
    return job


def gives_away(*tasks: str) -> ScriptedModel:
    """A parent that gives these tasks away, one in each step, and then is done."""
    return ScriptedModel([*(asks(call("", "delegate", task=task)) for task in tasks), final("Told.")])


def says(text: str, **more: Any) -> Model:
    """A sub-agent that replies at once."""
    return lambda messages, specs: ModelReply(text, **more)


def below(job: Any) -> Iterator[Any]:
    """Yield each job of a family, the main one first."""
    yield job
    for inner in job.jobs:
        yield from below(inner)


# --- The purse -----------------------------------------------------------------------------------------------


class Restless:
    """A model that does anything: it works, gives tasks away, answers at length.

    `prompt` and `reply` are the tokens of its last call: the estimate before it, and what the reply really had.
    """

    def __init__(self, chance: Random, counts: bool) -> None:
        self.chance, self.counts = chance, counts
        self.prompt = self.reply = 0

    def __call__(self, messages: list[Json], specs: list[Json]) -> ModelReply:
        words = "word " * self.chance.choice([0, 1, 5, 40, 300])
        work, give = call("", "work", size=self.chance.randint(0, 600)), call("", "delegate", task=f"Do {words}")
        calls = self.chance.choice([[work], [work], [work], [give], [give], [give, work, give], []])
        self.prompt = count_tokens(specs) + count_tokens(messages)
        self.reply = count_tokens(record_reply(ModelReply(words, calls), set()))
        if not self.counts:
            return ModelReply(words, calls)
        self.reply *= 2
        return ModelReply(words, calls, Usage(self.chance.randint(0, self.prompt), self.reply))


def workshop() -> ToolRegistry:
    """A registry whose tool returns as much as it is asked for."""
    registry = ToolRegistry()
    registry.register("work", "Work.", schema(size="integer"), lambda size: "x" * size)
    return registry


def strict_purse(model: Restless) -> Any:
    """Return Purse, which asserts its promise at each payment, in the purse that pays and in all above it."""

    class Strict(nb.Purse):  # type: ignore[misc]
        def share(self, part: float = 0.5) -> Any:
            return Strict(super().share(part).budget, self)

        def pay(self, tokens: int) -> None:
            assert model.prompt <= self.budget - self.spent, "it started a call that it cannot pay"
            super().pay(tokens)
            assert self.spent - self.budget <= model.reply, "it was passed by more than its last reply"

    return Strict


@pytest.mark.parametrize("counts", [False, True], ids=["estimated", "counted by a provider"])
def test_a_share_starts_no_call_that_it_cannot_pay_and_is_passed_by_at_most_its_last_reply(counts: bool) -> None:
    passed = deep = stopped = 0
    for seed in range(80):
        chance = Random(seed)
        model = Restless(chance, counts)
        job, registry = nb.Job(TASK, strict_purse(model)(chance.choice([200, 1000, 5000, 20_000]))), workshop()
        nb.add_sub_agents(registry, job, model, workshop, depth=chance.choice([1, 2, 3]))
        nb.run_job(job, model, registry, "", 12)
        for each in below(job):
            assert_closed(each.messages)
            passed += each.purse.left < 0
            deep += any(inner.jobs for inner in each.jobs)
            stopped += each.status == "token_budget"
    assert passed > 20 and deep > 20 and stopped > 20, "the scripts must try what the test is about"


def test_what_a_sub_agent_spends_is_gone_from_every_purse_above_and_the_loop_counts_its_own() -> None:
    job = family(gives_away("a", "b"), says("On shelf 31."))
    own = [step.prompt + step.reply for step in plots.steps_of(as_result(job), specs_with_delegate())]
    assert job.purse.spent == sum(own) + sum(inner.purse.spent for inner in job.jobs)
    assert all(inner.purse.spent > 0 for inner in job.jobs) and len(job.jobs) == 2


def as_result(job: Any) -> Any:
    return SimpleNamespace(messages=job.messages)


def specs_with_delegate() -> list[Json]:
    registry = ToolRegistry()
    nb.add_sub_agents(registry, nb.Job(TASK, nb.Purse(1)), searcher)
    return registry.specs()


def test_usage_replaces_the_estimate_in_what_is_paid() -> None:
    job = family(gives_away("a"), says("On shelf 31.", usage=Usage(700, 30)))
    assert job.jobs[0].purse.spent == 730


def test_two_shares_that_are_out_at_once_never_spend_what_is_not_there() -> None:
    purse = nb.Purse(1000)
    first, second = purse.share(), purse.share()
    first.pay(450)
    second.pay(480)
    assert (purse.left, first.left, second.left) == (70, 50, 20)
    second.pay(60)
    assert (purse.left, first.left, purse.share().budget) == (10, 10, 5)
    first.pay(30)
    assert purse.left == -20 and purse.share().budget == 0


def test_however_many_sub_agents_are_asked_something_remains_for_the_parent() -> None:
    greedy = searcher_without_end()
    job = family(gives_away("a", "b", "c"), greedy, budget=20_000)
    assert job.status == "done" and [inner.status for inner in job.jobs] == ["token_budget"] * 3
    budgets = [inner.purse.budget for inner in job.jobs]
    assert budgets == sorted(budgets, reverse=True) and budgets[0] < 10_000


def searcher_without_end() -> Model:
    def model(messages: list[Json], specs: list[Json]) -> ModelReply:
        return asks(call("", "read_log", page=1 + len(messages) % 6))

    return model


def test_a_sub_agent_without_any_tokens_makes_no_call_and_fails_with_a_sentence() -> None:
    job, model = nb.Job(TASK, nb.Purse(0)), ScriptedModel([])
    registry = ToolRegistry()
    nb.add_sub_agents(registry, job, model)
    observation = registry.execute("delegate", {"task": "a"})
    assert observation.startswith("ERROR: delegate failed: ToolFailure: it ended with token_budget at step 0")
    assert model.seen == [] and job.jobs[0].purse.spent == 0


# --- Its failure is an observation ---------------------------------------------------------------------------

FAILURES: dict[str, tuple[Model, str]] = {
    "the step limit": (lambda m, s: asks(call("", "read_log", page=1)), "it ended with step_limit at step 10"),
    "a reply that is cut off": (says("On sh", stop_reason="truncated"), "it ended with truncated at step 1"),
    "a refusal": (says("", stop_reason="refused"), "it ended with refused"),
    "an empty reply": (says("", stop_reason="empty_reply"), "it ended with empty_reply"),
    "an exception": (raises(ConnectionError("is down")), "ConnectionError: is down"),
    "a Stop of a wrapper": (raises(Stop("deadline", "it is late")), "it ended with deadline at step 0"),
    "sys.exit": (raises(SystemExit(2)), "SystemExit: 2"),
    "no reply at all": (lambda m, s: "On shelf 31.", "must return a ModelReply"),  # type: ignore[dict-item,return-value]
    "an empty answer": (says(""), "its answer has 0 tokens"),
    "an answer of spaces": (says(" \n "), "its answer has 0 tokens"),
    "an answer that is too long": (says("word " * 60), "its answer has 75 tokens, and 1 to 60 are a summary"),
}


@pytest.mark.parametrize("how", FAILURES)
def test_whatever_becomes_of_a_sub_agent_is_an_observation_and_its_parent_goes_on(how: str) -> None:
    model, words = FAILURES[how]
    job = family(gives_away("a"), model)
    (observation,) = [m["content"] for m in job.messages if m["role"] == "tool"]
    assert observation.startswith("ERROR: delegate failed: ") and words in observation
    assert job.status == "done" and job.messages[-1]["content"] == "Told."
    assert_closed(job.messages)


def test_a_summary_that_begins_like_an_error_is_a_result() -> None:
    job = family(gives_away("a"), says("ERROR: 7 is what the log says."))
    assert job.messages[3]["content"] == '"ERROR: 7 is what the log says."'


def test_a_call_that_waits_for_approval_is_not_run_and_its_parent_reads_so() -> None:
    result = SimpleNamespace(status="waiting_for_approval", steps=2, answer=None)
    with pytest.raises(nb.ToolFailure, match="waiting_for_approval at step 2; ask for less"):
        nb.summary_of(result)


def test_ctrl_c_passes_and_both_lists_are_kept_and_closed() -> None:
    def pressed(messages: list[Json], specs: list[Json]) -> ModelReply:
        if len(messages) == 4:
            signal.raise_signal(signal.SIGINT)
        return searcher(messages, specs)

    job, registry = nb.Job(TASK, nb.Purse(50_000)), ToolRegistry()
    nb.add_sub_agents(registry, job, pressed)
    with pytest.raises(KeyboardInterrupt) as raised:
        nb.run_job(job, gives_away("a"), registry, "")
    assert vars(raised.value)["result"].messages == job.messages
    assert job.messages[-1]["content"] == "ERROR: interrupted; it may have taken effect"
    assert [each.status for each in below(job)] == ["interrupted"] * 2
    for each in below(job):
        assert_closed(each.messages)
    assert len(job.jobs[0].messages) == 4


# --- A list of its own, a depth, a summary -------------------------------------------------------------------


def test_a_sub_agent_has_a_list_of_its_own_and_only_its_summary_comes_back() -> None:
    job = family(gives_away("Find the parcel of order A123."), searcher)
    (inner,) = job.jobs
    assert [m["role"] for m in inner.messages[:2]] == ["system", "user"]
    assert inner.messages[1]["content"] == "Find the parcel of order A123."
    assert len(job.messages) == 5 and len(results_of(inner.messages, "read_log")) == 5
    assert "lines" not in "".join(m["content"] for m in job.messages)
    assert job.messages[3]["content"] == f'"{inner.messages[-1]["content"]}"'


def test_two_sub_agents_know_nothing_of_each_other() -> None:
    job = family(gives_away("first", "second"), says("On shelf 31."))
    assert [[m["content"] for m in inner.messages[1:]] for inner in job.jobs] == [
        ["first", "On shelf 31."], ["second", "On shelf 31."]]


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_no_job_is_given_away_below_the_depth_and_there_the_tool_is_not_shown(depth: int) -> None:
    shown: list[int] = []

    def asks_another(messages: list[Json], specs: list[Json]) -> ModelReply:
        shown.append("delegate" in [spec["name"] for spec in specs])
        return asks(call("", "delegate", task="Let somebody else do this."))

    job = family(asks_another, asks_another, budget=30_000, depth=depth, max_steps=3)
    paths = [nested.path.count(".") for nested in nested_in(job)]
    assert max(paths, default=0) == depth
    deepest = [each for each in below(job) if not each.jobs and each.messages]
    assert any("ERROR: unknown tool 'delegate'" in m["content"] for each in deepest for m in each.messages)
    assert 0 in shown and (1 in shown) is (depth > 0)


def test_a_sub_agent_gets_the_tools_it_is_given_and_no_other() -> None:
    pays_out = asks(call("c1", "issue_refund", order_id="A123", amount=1))
    job = family(gives_away("a"), ScriptedModel([pays_out, final("It was refused.")]))
    assert "ERROR: unknown tool 'issue_refund'. Available tools: ['read_log']" in job.jobs[0].messages[3]["content"]


# --- Skills --------------------------------------------------------------------------------------------------


def test_a_wrong_name_of_a_skill_gives_an_error_that_lists_the_names() -> None:
    registry, skills = ToolRegistry(), nb.read_skills(SKILLS)
    nb.add_skills(registry, skills)
    for name in ("returns", "", "../skills/process-a-return", "process-a-return.md"):
        observation = registry.execute("load_skill", {"name": name})
        assert observation.startswith(f"ERROR: load_skill failed: LookupError: no skill {name!r}; there are ")
        assert all(known in observation for known in skills)
    assert len(skills) == 5


def test_the_catalogue_holds_a_line_for_each_skill_and_loading_gives_the_rest_of_its_file() -> None:
    registry, skills = ToolRegistry(), nb.read_skills(SKILLS)
    nb.add_skills(registry, skills)
    lines = nb.catalogue(skills).splitlines()
    assert len(lines) == 1 + len(skills)
    for name, line in zip(skills, lines[1:]):
        text = (SKILLS / f"{name}.md").read_text(encoding="utf-8")
        assert line == f"- {name}: {text.splitlines()[0]}" and "Load it when" in line
        assert registry._tools["load_skill"][1](name=name) == text.partition("\n\n")[2]


@pytest.mark.parametrize("text", ["", "Only a line.", "Only a line.\n\n \n", "Two\nlines.\n\nText.", " \n\nText."])
def test_a_file_that_is_no_skill_is_refused_with_its_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "odd.md").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="odd.md must be a line that says when to load it"):
        nb.read_skills(tmp_path)


GOOD = "Load it when asked.\n\nDo it — at once.\n"


@pytest.mark.parametrize("content", [
    GOOD.encode("utf-8"), GOOD.encode("utf-8-sig"), GOOD.replace("\n", "\r\n").encode("utf-8-sig"),
], ids=["plain", "with a mark", "with a mark, and of Windows"])
def test_a_skill_is_read_with_or_without_a_mark_at_its_beginning_and_with_any_line_ends(
        content: bytes, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_bytes(content)
    assert nb.read_skills(tmp_path) == {"good": nb.Skill("Load it when asked.", "Do it — at once.\n")}


@pytest.mark.parametrize("content", [GOOD.encode("utf-16"), GOOD.encode("cp1252"), b"A line.\n\n\x80"],
                         ids=["UTF-16", "of Windows", "a broken end"])
def test_a_file_that_is_no_utf_8_is_refused_with_its_name(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_bytes(GOOD.encode("utf-8"))
    (tmp_path / "odd.md").write_bytes(content)
    with pytest.raises(ValueError, match="^odd.md cannot be read as UTF-8: UnicodeDecodeError$"):
        nb.read_skills(tmp_path)


def test_a_folder_that_is_missing_or_is_a_file_and_a_file_that_is_a_folder_are_said_in_a_sentence(
        tmp_path: Path) -> None:
    (tmp_path / "file").write_text(GOOD, encoding="utf-8")
    for name in ("missing", "file"):
        with pytest.raises(ValueError, match=f"^there is no folder {name}, so there are no skills$"):
            nb.read_skills(tmp_path / name)
    (tmp_path / "odd.md").mkdir()
    with pytest.raises(ValueError, match="^odd.md cannot be read as UTF-8: "):
        nb.read_skills(tmp_path)
    (tmp_path / "odd.md").rmdir()
    assert nb.read_skills(tmp_path) == {}


def test_with_each_of_the_two_the_main_list_is_shorter_and_the_answer_is_the_same() -> None:
    skills, sizes, paid = nb.read_skills(SKILLS), {}, set()
    files = [file.read_text(encoding="utf-8") for file in sorted(SKILLS.glob("*.md"))]
    for skill in (False, True):
        for sub_agent in (False, True):
            job, (registry, ran) = nb.Job("What do I get for it?", nb.Purse(100_000)), order_desk()
            if skill:
                nb.add_skills(registry, skills)
            if sub_agent:
                nb.add_sub_agents(registry, job, searcher)
            else:
                nb.add_log(registry)
            nb.run_job(job, clerk, registry, nb.catalogue(skills) if skill else "\n".join(files), 20)
            sizes[skill, sub_agent] = count_tokens(job.messages)
            paid.add(ran[-1])
    assert paid == {"issue_refund(A123, 2250.0)"}
    assert sizes[False, False] > sizes[True, False] > sizes[False, True] > sizes[True, True]


def test_the_parcel_stands_once_in_the_log() -> None:
    lines = [line for page in range(1, 7) for line in log_lines(page)]
    assert sum("A123" in line for line in lines) == 1 and len(set(lines)) == len(lines)


# --- The view of a family ------------------------------------------------------------------------------------


def a_family() -> Any:
    """A job with two sub-agents, the second of which has one of its own."""
    sub = ScriptedModel([final("One."), asks(call("", "delegate", task="c")), final("Two."), final("Three.")])
    return family(gives_away("same", "same"), sub, depth=2)


def test_each_job_stands_under_its_path_beside_the_call_that_gave_it_away() -> None:
    job = a_family()
    nested = nested_in(job)
    assert [each.path for each in nested] == ["main.1", "main.2", "main.2.1"]
    assert [each.places for each in nested] == [(2, 3), (4, 5), (2, 3)]
    assert nested[2].parent is job.jobs[1]
    assert places_of(job.messages, "never asked", 1) == ()


def test_a_call_that_was_refused_is_not_taken_for_the_one_that_gave_the_same_task_away() -> None:
    refused = asks(call("", "delegate", task="same", extra=1))
    job = family(ScriptedModel([refused, asks(call("", "delegate", task="same")), final("Done.")]),
                 ScriptedModel([final("One.")]))
    assert [each.places for each in nested_in(job)] == [(4, 5)]


def test_the_view_shows_the_list_of_the_chosen_job_and_lights_what_came_of_it() -> None:
    view = nested_runs(a_family())
    assert view.choice.options == ("main.1", "main.2", "main.2.1")
    assert "main.1 ended with done" in view._say.value and view._left.value.count("ll-new") == 2
    view.choice.value = "main.2.1"
    assert "message list of main.2" in view._left.value and "message list of main.2.1" in view._right.value
    assert "Two." in view._right.value and view.error_box.layout.display == "none"


def test_the_table_of_a_family_has_a_row_for_each_run_and_sums_nothing_twice() -> None:
    job = a_family()
    rows = family_table(job)
    assert [row[0] for row in rows[1:]] == ["main", "main.1", "main.2", "main.2.1"]
    assert rows[1][5] == f"{job.purse.spent:,}" and rows[1][2] == "done"


def test_the_twin_says_in_plain_words_what_the_view_shows() -> None:
    bundle = nested_runs(a_family())._repr_mimebundle_()
    assert "class=" not in bundle["text/html"] and "style=" not in bundle["text/html"]
    for part in ("main gave this away: main.1 ended with done", "The list of main.1:", "1. system: "):
        assert part in bundle["text/plain"] and (part in bundle["text/html"] or part.startswith("1."))


def test_every_value_of_a_family_is_escaped() -> None:
    evil = "<img src=x onerror=alert(1)>"
    job = family(gives_away(evil), says(evil))
    view = nested_runs(job)
    shown = view._say.value + view._left.value + view._right.value + view._repr_mimebundle_()["text/html"]
    assert "<img" not in shown and "&lt;img" in shown


def test_a_job_that_gave_nothing_away_and_what_is_no_job_get_a_sentence() -> None:
    alone = nb.Job(TASK, nb.Purse(1))
    assert "Nothing was given away." in nested_runs(alone)._repr_mimebundle_()["text/plain"]
    assert "Nothing was given away." in nested_runs(alone)._say.value
    with pytest.raises(ValueError, match="nested_runs takes a job"):
        nested_runs([])


def test_a_sub_agent_that_was_broken_off_is_shown_as_far_as_it_came() -> None:
    job = nb.Job(TASK, nb.Purse(100))
    job.jobs.append(nb.Job("a", job.purse.share()))
    assert "interrupted" in nested_runs(job)._repr_mimebundle_()["text/plain"]
