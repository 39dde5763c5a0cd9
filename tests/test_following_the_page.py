"""Whoever follows notebook 10 to a real client needs to ask nothing: its lines run as they are printed.

The addresses alone are exchanged, for that of a provider on this machine.
"""

from __future__ import annotations

import gc
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from looplab.provider import KEY, PORT, Provider, Refusal, by_turn, in_order, serving
from looplab.weave import NOTEBOOKS

from agentloop import WEATHER_TASK, json_text_model, run_agent, weather_script, weather_world

PAGE = NOTEBOOKS / "10_real_models.ipynb"
LOCAL = r"http://127\.0\.0\.1:\d+"


def source_of(cell_id: str, page: Path = PAGE) -> str:
    """Return the source of a cell."""
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    return next("".join(cell["source"]) for cell in cells if cell["id"] == cell_id)


def code_of(cell_id: str, language: str = "python") -> str:
    """Return the code that a text cell shows."""
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", source_of(cell_id), re.MULTILINE | re.DOTALL))


LINES = code_of("with-key") + code_of("with-server")
HEAD, *MODELS = re.split(r"^(?=model = )", LINES, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(Provider(by_turn(weather_script()))) as address:
        yield address


@pytest.fixture(autouse=True)
def keys_are_in_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{url}/v1")


@pytest.fixture(autouse=True)
def clients_are_let_go() -> Iterator[None]:
    """Drop the clients that a test made, as the page does, without a close; their sockets are warned of then."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_the_page_shows_a_line_for_each_of_three_providers_and_three_servers() -> None:
    assert [re.findall(r"(\w+)\(", line) for line in MODELS] == [
        ["anthropic_model", "Anthropic"],
        ["anthropic_model", "AnthropicBedrock"],
        *[["openai_model", "OpenAI"]] * 4,
    ]


def test_the_lines_for_servers_of_ones_own_differ_in_address_key_and_name_alone() -> None:
    lines = {re.sub(r'base_url="[^"]*", api_key="[^"]*", |"[^"]*"\)$', "", line.strip()) for line in MODELS[2:]}
    assert len(lines) == 1


def test_the_page_names_the_port_and_the_key_of_the_provider_and_the_package_that_it_needs() -> None:
    shown = code_of("on-this-machine")
    assert f'base_url="http://127.0.0.1:{PORT}", api_key="{KEY}"' in shown
    commands = [code_of(cell_id, "console") for cell_id in ("with-key", "on-this-machine", "real-head")]
    assert "".join(commands).splitlines() == [
        ".venv/bin/python -m pip install -e '.[wire]'",
        ".venv/bin/python -m looplab.provider",
        ".venv/bin/python -m pip install -e '.[local]'",
        ".venv/bin/python -m looplab.small_model",
    ]


@pytest.mark.parametrize("line", MODELS, ids=lambda line: re.search(r'"([^"]*)"\)', line)[1])
def test_each_line_as_printed_makes_a_model_that_answers(line: str, url: str) -> None:
    pytest.importorskip("anthropic"), pytest.importorskip("openai")
    names: dict[str, object] = {}
    exec(HEAD + re.sub(LOCAL, url, line).replace('api_key="none"', f'api_key="{KEY}"'), names)
    result = run_agent(WEATHER_TASK, names["model"], weather_world()[0])  # type: ignore[arg-type]
    assert (result.status, result.answer) == ("done", "It is 86.0 F in Pune.")


@pytest.mark.parametrize(("package", "made", "line"), [
    ("anthropic", "Anthropic", MODELS[0]), ("openai", "OpenAI", MODELS[2])])
def test_the_retries_as_printed_wait_out_what_may_pass_with_either_package(
        package: str, made: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anthropic"), pytest.importorskip("openai")
    slept: list[float] = []
    lines = code_of("with-retries").replace("from anthropic", f"from {package}")
    without_waiting = lines.replace("with_retries(model,", "with_retries(model, sleep=slept.append, jitter=float,")
    assert without_waiting.count("slept") == 1
    provider = Provider(in_order([Refusal(429), Refusal(529), Refusal(500), *weather_script()]))
    with serving(provider) as address, ExitStack() as clients:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        names: dict[str, Any] = {"slept": slept}
        exec(HEAD, names)
        names["made"] = lambda client=names[made], **options: clients.enter_context(client(**options))
        exec(line.replace(f"{made}(", "made(") + without_waiting, names)
        result = run_agent(WEATHER_TASK, names["model"], weather_world()[0])
    assert result.status == "done" and slept == [1, 2, 4]


def test_the_line_for_a_model_that_only_writes_text_runs_with_a_real_client(url: str) -> None:
    openai = pytest.importorskip("openai")
    line = next(line for line in source_of("complete").splitlines() if line.startswith("complete = "))
    names: dict[str, object] = {"client": openai.OpenAI(max_retries=0)}
    exec(line, names)
    result = run_agent(WEATHER_TASK, json_text_model(names["complete"]), weather_world()[0])  # type: ignore[arg-type]
    assert (result.status, result.answer) == ("done", "It is 86.0 F in Pune.")


def test_the_program_for_this_machine_prints_the_answer(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("anthropic")
    exec(re.sub(LOCAL, url, code_of("on-this-machine")), {})
    assert capsys.readouterr().out == "done | It is 86.0 F in Pune.\n"
