"""Whoever follows notebook 10 to a real client needs to ask nothing: its lines run as they are printed.

The addresses alone are exchanged, for that of a provider on this machine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from looplab.provider import KEY, PORT, Provider, by_turn, serving
from looplab.weave import NOTEBOOKS

from agentloop import WEATHER_TASK, run_agent, weather_script, weather_world

PAGE = NOTEBOOKS / "10_real_models.ipynb"
LOCAL = r"http://127\.0\.0\.1:\d+"


def code_of(cell_id: str, language: str = "python", page: Path = PAGE) -> str:
    """Return the code that a text cell shows."""
    cells = json.loads(page.read_text(encoding="utf-8"))["cells"]
    source = next("".join(cell["source"]) for cell in cells if cell["id"] == cell_id)
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", source, re.MULTILINE | re.DOTALL))


HEAD, *MODELS = re.split(r"^(?=model = )", code_of("with-key"), flags=re.MULTILINE)


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
    commands = code_of("on-this-machine", "console").splitlines()
    assert commands == [".venv/bin/python -m pip install -e '.[wire]'", ".venv/bin/python -m looplab.provider"]


@pytest.mark.parametrize("line", MODELS, ids=lambda line: re.search(r'"([^"]*)"\)', line)[1])
def test_each_line_as_printed_makes_a_model_that_answers(line: str, url: str) -> None:
    pytest.importorskip("anthropic"), pytest.importorskip("openai")
    names: dict[str, object] = {}
    exec(HEAD + re.sub(LOCAL, url, line).replace('api_key="none"', f'api_key="{KEY}"'), names)
    result = run_agent(WEATHER_TASK, names["model"], weather_world()[0])  # type: ignore[arg-type]
    assert (result.status, result.answer) == ("done", "It is 86.0 F in Pune.")


def test_the_program_for_this_machine_prints_the_answer(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("anthropic")
    exec(re.sub(LOCAL, url, code_of("on-this-machine")), {})
    assert capsys.readouterr().out == "done | It is 86.0 F in Pune.\n"
