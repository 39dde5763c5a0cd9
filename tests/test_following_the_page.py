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
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from looplab.provider import (
    CLIENTS,
    KEY,
    Provider,
    Refusal,
    after_refusals,
    by_turn,
    in_order,
    programs,
    read_statuses,
    serving,
)
from looplab.weave import NOTEBOOKS
from support import takes, tool

from agentloop import (
    WEATHER_TASK,
    Json,
    ToolRegistry,
    anthropic_model,
    asks,
    call,
    json_text_model,
    openai_model,
    run_agent,
    weather_script,
    weather_world,
    with_retries,
)

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
    monkeypatch.setenv("ANTHROPIC_BEDROCK_MANTLE_BASE_URL", url)
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
        ["anthropic_model", "AnthropicBedrockMantle"],
        *[["openai_model", "OpenAI"]] * 4,
    ]


def test_the_lines_for_servers_of_ones_own_differ_in_address_key_and_name_alone() -> None:
    lines = {re.sub(r'base_url="[^"]*", api_key="[^"]*", |"[^"]*"\)$', "", line.strip()) for line in MODELS[2:]}
    assert len(lines) == 1


def test_the_page_names_the_key_of_the_provider_and_the_package_that_it_needs() -> None:
    assert f"no key other than `{KEY}`" in source_of("on-this-machine")
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
    of_both = code_of("with-retries")
    lines = "\n".join(line for line in of_both.splitlines() if "Error" not in line or "with_retries" in line
                      or line.startswith(f"from {package} import"))
    without_waiting = lines.replace("with_retries(model,", "with_retries(model, sleep=slept.append, jitter=float,")
    assert without_waiting.count("slept") == 1 and of_both.count("import APIConnectionError") == 2
    provider = Provider(in_order([Refusal(429), Refusal(529), Refusal(500), *weather_script()]))
    with serving(provider) as address, ExitStack() as clients:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
        names: dict[str, Any] = {"slept": slept}
        exec(HEAD, names)
        names["made"] = lambda client=names[made], **options: clients.enter_context(client(**options))
        exec(line.replace(f"{made}(", "made(") + without_waiting, names)
        result = run_agent(WEATHER_TASK, names["model"], weather_world()[0])
    assert result.status == "done" and slept == [5, 20, 60]


def test_the_errors_of_the_other_package_catch_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    anthropic, openai = pytest.importorskip("anthropic"), pytest.importorskip("openai")
    provider = Provider(in_order([Refusal(429), *weather_script()]))
    others = (anthropic.RateLimitError, anthropic.InternalServerError, anthropic.APIConnectionError)
    with serving(provider) as address, openai.OpenAI(base_url=f"{address}/v1", max_retries=0) as client:
        model = with_retries(openai_model(client, "m"), on=others)
        with pytest.raises(openai.RateLimitError):
            run_agent(WEATHER_TASK, model, weather_world()[0])
    assert len(provider.requests) == 1


def test_a_client_that_may_retry_waits_as_retry_after_says_within_a_bound_and_asks_again_at_408_and_409() -> None:
    for package in ("anthropic", "openai"):
        made = pytest.importorskip(package)
        with (made.Anthropic if package == "anthropic" else made.OpenAI)() as client:
            assert client._parse_retry_after_header({"retry-after": "7"}) == 7
            answers = [SimpleNamespace(headers={}, status_code=status) for status in (408, 409, 429, 500, 529, 400)]
            assert [client._should_retry(answer) for answer in answers] == [True] * 5 + [False]
            long = {"retry-after": "9" * 9}
            waited = client._calculate_retry_timeout(1, SimpleNamespace(get_max_retries=lambda most: most), long)
            refuses = not client._should_retry(SimpleNamespace(headers=long, status_code=429))
            assert waited < float(long["retry-after"]) and refuses is (package == "openai")


def test_what_a_missing_key_looks_like_is_what_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    anthropic, openai = pytest.importorskip("anthropic"), pytest.importorskip("openai")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name)
    said = [re.escape(text) for text in re.findall(r"says `([^`]*)`", source_of("with-key"))]
    with pytest.raises(openai.OpenAIError, match=said[0]):
        openai.OpenAI()
    with anthropic.Anthropic() as client, pytest.raises(TypeError, match=said[1]):
        run_agent(WEATHER_TASK, anthropic_model(client, "m"), weather_world()[0])
    if not find_spec("botocore"):
        with anthropic.AnthropicBedrockMantle() as client, pytest.raises(ModuleNotFoundError, match="botocore"):
            run_agent(WEATHER_TASK, anthropic_model(client, "m"), weather_world()[0])


def test_the_older_client_for_bedrock_as_printed_answers_with_the_id_of_an_inference_profile() -> None:
    anthropic = pytest.importorskip("anthropic")
    line, profile = re.search(r"`(AnthropicBedrock\([^`]*)`.*`(us\.[^`]*)`", source_of("with-key")).groups()
    with eval(line, vars(anthropic)) as client:
        assert run_agent(WEATHER_TASK, anthropic_model(client, profile), weather_world()[0]).status == "done"


def test_the_lines_for_a_model_that_knows_no_tools_run_after_the_imports_above(url: str) -> None:
    pytest.importorskip("openai"), pytest.importorskip("anthropic")
    names: dict[str, Any] = {}
    exec(HEAD + re.sub(LOCAL, url, code_of("with-text")).replace('api_key="none"', f'api_key="{KEY}"'), names)
    result = run_agent(WEATHER_TASK, names["model"], weather_world()[0])
    assert (result.status, result.answer) == ("done", "It is 86.0 F in Pune.")


def test_the_provider_started_as_the_page_says_shows_retries_and_a_cut_reply() -> None:
    anthropic = pytest.importorskip("anthropic")
    statuses, limit = re.search(r"`--first ([\d,]+)`.*`max_tokens=(\d+)`", source_of("on-this-machine")).groups()
    provider = Provider(after_refusals(read_statuses(statuses), by_turn(weather_script())))
    slept: list[float] = []
    with serving(provider) as address, anthropic.Anthropic(base_url=address, max_retries=0) as client:
        on = (anthropic.RateLimitError, anthropic.InternalServerError)
        patient = with_retries(anthropic_model(client, "any"), on=on, sleep=slept.append, jitter=float)
        assert run_agent(WEATHER_TASK, patient, weather_world()[0]).status == "done" and slept == [1, 2]
        short = anthropic_model(client, "any", max_tokens=int(limit))
        assert run_agent(WEATHER_TASK, short, weather_world()[0]).status == "truncated"


def test_the_line_for_a_model_that_only_writes_text_runs_with_a_real_client(url: str) -> None:
    openai = pytest.importorskip("openai")
    line = next(line for line in source_of("complete").splitlines() if line.startswith("complete = "))
    names: dict[str, object] = {"client": openai.OpenAI(max_retries=0)}
    exec(line, names)
    result = run_agent(WEATHER_TASK, json_text_model(names["complete"]), weather_world()[0])  # type: ignore[arg-type]
    assert (result.status, result.answer) == ("done", "It is 86.0 F in Pune.")


def test_each_program_that_the_provider_prints_runs_when_it_is_pasted(
        url: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("anthropic"), pytest.importorskip("openai")
    for title, program in zip(CLIENTS, programs(url), strict=True):
        exec(program, {})
        assert f"# {title}\n" in program and capsys.readouterr().out == "It is 86.0 F in Pune.\n"


def test_a_script_of_ones_own_is_served_by_the_lines_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("anthropic")
    exec(code_of("on-this-machine"), {})
    assert capsys.readouterr().out == "POST /v1/messages 200\n" * 2 + "It has 4 letters.\n"


def test_several_calls_in_json_text_are_refused_and_none_is_left_out() -> None:
    openai = pytest.importorskip("openai")
    script = [asks(call("c1", "ping"), call("c2", "ping"))]
    with serving(Provider(by_turn(script))) as url, openai.OpenAI(
            base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        def complete(messages: list[Json]) -> str:
            return str(client.chat.completions.create(model="any", messages=messages).choices[0].message.content)

        with pytest.raises(openai.BadRequestError, match="JSON text makes one call in a reply; the script's makes 2"):
            run_agent("Ping twice.", json_text_model(complete), ToolRegistry())


def test_a_task_of_ones_own_against_the_weather_script_is_told_of_an_unknown_tool(url: str) -> None:
    anthropic = pytest.importorskip("anthropic")
    registry = tool(lambda word: len(word), takes(word="string"), name="count")
    with anthropic.Anthropic(base_url=url, max_retries=0) as client:
        result = run_agent("How long is tree?", anthropic_model(client, "any"), registry)
    assert "ERROR: unknown tool 'get_weather'" in result.messages[3]["content"]


def test_a_log_at_level_info_shows_a_key_in_the_address_and_no_other(
        url: str, caplog: pytest.LogCaptureFixture) -> None:
    openai = pytest.importorskip("openai")
    assert "at INFO a key in the address, as `default_query` puts it there" in source_of("key-file")
    caplog.set_level("INFO")
    with openai.OpenAI(max_retries=0, default_query={"key": "zq-secret"}) as client:
        run_agent(WEATHER_TASK, openai_model(client, "any"), weather_world()[0])
    assert "key=zq-secret" in caplog.text and KEY not in caplog.text


def test_what_the_page_says_of_keys_names_and_thoughts_is_so(url: str) -> None:
    anthropic, openai = pytest.importorskip("anthropic"), pytest.importorskip("openai")
    assert "a word as key: not empty, and without white space" in source_of("with-server")
    with openai.OpenAI(api_key="no key") as client, pytest.raises(ValueError, match="white space"):
        openai_model(client, "any")
    with pytest.raises(openai.OpenAIError, match="api_key"), openai.OpenAI(api_key="", max_retries=0) as client:
        run_agent(WEATHER_TASK, openai_model(client, "any"), weather_world()[0])
    status, name = re.search(r"wrong one with (\d+), a `(\w+)`", source_of("with-key")).groups()
    with serving(Provider(in_order([Refusal(int(status))]))) as address:
        with anthropic.Anthropic(base_url=address, max_retries=0) as client:
            with pytest.raises(getattr(anthropic, name)):
                run_agent(WEATHER_TASK, anthropic_model(client, "any"), weather_world()[0])
    for cell_id, make in (("with-key", anthropic_model), ("with-server", openai_model)):
        options = re.search(r"`((?:thinking|extra_body)=.*?)`", source_of(cell_id))[1]
        client = SimpleNamespace(messages=None, chat=None)
        assert callable(eval(f"make(client, 'm', {options})", {"make": make, "client": client}))
