"""The adapters over HTTP: the providers' own Python clients, and a provider on this machine."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from adapter_cases import (
    ANTHROPIC,
    BEDROCK,
    JSON_TEXT,
    MANTLE,
    OPENAI,
    AdapterCases,
    Link,
    ToolCallingCases,
    model_of,
)
from looplab.provider import KEY, SAID, Provider, Refusal, in_order, serving
from support import run

from agentloop import (
    WEATHER_TASK,
    Json,
    ModelReply,
    Trace,
    Usage,
    anthropic_model,
    asks,
    call,
    final,
    from_anthropic,
    openai_model,
    redact_secrets,
    run_agent,
    to_anthropic,
    weather_script,
    weather_world,
    with_retries,
)

NEEDED = "the clients of the providers are not installed: pip install -e '.[wire]'"
anthropic = pytest.importorskip("anthropic", reason=NEEDED)
openai = pytest.importorskip("openai", reason=NEEDED)

WRONG_KEY = "sk-not-the-key-0123456789"
CLIENTS: dict[str, Callable[[str, str], Any]] = {
    ANTHROPIC: lambda url, key: anthropic.Anthropic(base_url=url, api_key=key, max_retries=0),
    BEDROCK: lambda url, key: anthropic.AnthropicBedrock(
        base_url=url, api_key=key, aws_region="us-east-1", max_retries=0),
    MANTLE: lambda url, key: anthropic.AnthropicBedrockMantle(base_url=url, api_key=key, max_retries=0),
    OPENAI: lambda url, key: openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0),
}
CLIENTS[JSON_TEXT] = CLIENTS[OPENAI]
KINDS = [ANTHROPIC, BEDROCK, MANTLE, OPENAI, JSON_TEXT]
MAY_PASS = (
    *(anthropic.RateLimitError, anthropic.InternalServerError, anthropic.APIConnectionError),
    *(openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError),
)


@pytest.fixture(scope="session")
def provider() -> Provider:
    return Provider(in_order([]))


@pytest.fixture(scope="session")
def url(provider: Provider) -> Iterator[str]:
    with serving(provider) as address:
        yield address


@pytest.fixture(scope="session")
def link_of(provider: Provider, url: str) -> Iterator[Callable[..., Link]]:
    """Return what links an adapter to the provider, with the right key if no other is given; a client is made once."""
    with ExitStack() as clients:
        made: dict[tuple[str, str], Link] = {}

        def link_of(kind: str, key: str = KEY) -> Link:
            if (kind, key) not in made:
                client = clients.enter_context(CLIENTS[kind](url, key))
                made[kind, key] = Link(kind, provider, model_of(kind, client))
            return made[kind, key]

        yield link_of


@pytest.fixture(params=KINDS)
def any_link(request: pytest.FixtureRequest, link_of: Callable[..., Link]) -> Link:
    return link_of(request.param)


class TestJsonTextOnTheWire(AdapterCases):
    @pytest.fixture
    def link(self, link_of: Callable[..., Link]) -> Link:
        return link_of(JSON_TEXT)


class TestAdaptersOnTheWire(ToolCallingCases):
    @pytest.fixture(params=[ANTHROPIC, BEDROCK, MANTLE, OPENAI])
    def link(self, request: pytest.FixtureRequest, link_of: Callable[..., Link]) -> Link:
        return link_of(request.param)


GO = {"role": "user", "content": "go"}
TEXT = {"type": "text", "text": "Hurry."}


def uses(*ids: str, name: str = "t") -> Json:
    return {"role": "assistant", "content": [
        {"type": "tool_use", "id": call_id, "name": name, "input": {}} for call_id in ids]}


def gives(*ids_or_blocks: str | Json) -> Json:
    return {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": part, "content": "1"} if isinstance(part, str) else part
        for part in ids_or_blocks]}


REFUSED_BY_ANTHROPIC = [
    ({"messages": [GO, uses("a"), GO]}, "without `tool_result` blocks immediately after: a"),
    ({"messages": [GO, uses("a", "b"), gives("a"), gives("b")]}, "without `tool_result` blocks immediately after: b"),
    ({"messages": [GO, uses("a"), gives(TEXT, "a")]}, "without `tool_result` blocks immediately after: a"),
    ({"messages": [GO, uses("a"), gives("a", {"type": "text", "text": " "})]}, "must be non-empty"),
    ({"messages": [GO, uses("a", name="functions.t"), gives("a")]}, "tool_use.name: string should match"),
    ({"messages": [GO, GO]}, "roles must alternate"),
    ({"messages": [uses("a"), gives("a")]}, 'first message must use the "user" role'),
    ({"messages": [GO], "tools": [{"name": "get weather", "input_schema": {"type": "object"}}]}, "tools.0.name"),
    ({"messages": [GO], "tools": [{"name": "t", "input_schema": {"properties": {}}}]}, "type: must be 'object'"),
]


@pytest.mark.parametrize("kind", [ANTHROPIC, BEDROCK, MANTLE])
def test_what_anthropic_refuses_is_a_400_of_its_own_clients(kind: str, url: str) -> None:
    with CLIENTS[kind](url, KEY) as client:
        for request, said in REFUSED_BY_ANTHROPIC:
            with pytest.raises(anthropic.BadRequestError) as caught:
                client.messages.create(model="m", max_tokens=9, **request)
            assert caught.value.status_code == 400 and said in str(caught.value.body)


def asked(*ids: str, name: str = "t", **rest: Any) -> Json:
    return {"role": "assistant", "content": "", "tool_calls": [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}} for call_id in ids]} | rest


def result_of(call_id: str) -> Json:
    return {"role": "tool", "tool_call_id": call_id, "content": "1"}


REFUSED_BY_OPENAI = [
    ({"messages": [GO, asked("a"), GO]}, "did not have response messages: a"),
    ({"messages": [GO, asked("a", "b"), result_of("a"), GO, result_of("b")]}, "did not have response messages: b"),
    ({"messages": [GO, result_of("a"), asked("a")]}, "must be a response to a preceding message"),
    ({"messages": [GO, asked("a", content=None), result_of("a")]}, "expected a string, got null"),
    ({"messages": [GO, asked("a", name="functions.t"), result_of("a")]}, "string does not match pattern"),
    ({"messages": [GO, asked("a", tool_calls=[])]}, "expected an array with minimum length 1"),
    ({"messages": [GO], "tools": [{"type": "function", "function": {"name": "t", "parameters": {}}}]}, "type: must be"),
]


def test_what_openai_refuses_is_a_400_of_its_own_client(url: str) -> None:
    with CLIENTS[OPENAI](url, KEY) as client:
        for request, said in REFUSED_BY_OPENAI:
            with pytest.raises(openai.BadRequestError) as caught:
                client.chat.completions.create(model="m", **request)
            assert caught.value.status_code == 400 and said in str(caught.value.body)


def test_a_rate_limit_and_an_overload_are_waited_out(any_link: Link) -> None:
    slept: list[float] = []
    patient = with_retries(any_link.model, on=MAY_PASS, sleep=slept.append, jitter=lambda: 0)
    busy = [Refusal(429), Refusal(529), Refusal(503)]
    any_link.provider.answer = in_order([*busy, *weather_script()])
    registry, ran = weather_world()
    assert run(patient, registry).answer == "It is 86.0 F in Pune."
    assert slept == [1, 2, 4] and ran == ["get_weather(Pune)", "c_to_f(30)"]


def test_a_provider_that_stays_busy_ends_the_run_with_its_last_error(any_link: Link) -> None:
    slept: list[float] = []
    patient = with_retries(any_link.model, on=MAY_PASS, waits=(1, 2), sleep=slept.append, jitter=lambda: 0)
    any_link.provider.answer = in_order([Refusal(429)] * 9)
    with pytest.raises((anthropic.RateLimitError, openai.RateLimitError)) as caught:
        run(patient)
    assert slept == [1, 2] and vars(caught.value)["result"].status == "interrupted"


@pytest.mark.parametrize(("status", "name"), [
    (400, "BadRequestError"), (401, "AuthenticationError"), (403, "PermissionDeniedError"), (404, "NotFoundError"),
])
def test_what_the_provider_refuses_is_not_asked_again(any_link: Link, status: int, name: str) -> None:
    slept: list[float] = []
    patient = with_retries(any_link.model, on=MAY_PASS, sleep=slept.append)
    any_link.provider.requests.clear()
    any_link.provider.answer = in_order([Refusal(status, "so it is"), *weather_script()])
    with pytest.raises((getattr(anthropic, name), getattr(openai, name)), match="so it is"):
        run(patient)
    assert slept == [] and len(any_link.provider.requests) == 1


def test_a_400_is_never_asked_again_whatever_is_said_to_be_worth_a_retry(any_link: Link) -> None:
    slept: list[float] = []
    patient = with_retries(any_link.model, on=(Exception,), sleep=slept.append)
    any_link.provider.answer = in_order([Refusal(400), *weather_script()])
    with pytest.raises((anthropic.BadRequestError, openai.BadRequestError)):
        run(patient)
    assert slept == []


def test_a_server_that_is_not_there_is_asked_again() -> None:
    with serving(Provider(in_order([]))) as address:
        pass
    slept: list[float] = []
    for kind in KINDS:
        with CLIENTS[kind](address, KEY) as client:
            model = model_of(kind, client)
            patient = with_retries(model, on=MAY_PASS, waits=(1,), sleep=slept.append, jitter=lambda: 0)
            with pytest.raises((anthropic.APIConnectionError, openai.APIConnectionError)):
                run(patient)
    assert slept == [1] * len(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_is_in_no_output_no_exception_and_no_saved_trace(
        kind: str, link_of: Callable[..., Link], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture,
        tmp_path: Path) -> None:
    caplog.set_level("DEBUG")
    trace, link = Trace(), link_of(kind)
    link.provider.answer = in_order(weather_script())
    registry, _ = weather_world()
    result = run_agent("How hot is Pune?", trace.model(link.model), registry, execute=trace.execute(registry))
    trace.save(tmp_path / "trace.jsonl", result, redact_secrets)
    with pytest.raises((anthropic.APIStatusError, openai.APIStatusError)) as caught:
        run(link_of(kind, WRONG_KEY).model)
    raised = [str(caught.value), repr(caught.value), *traceback.format_exception(caught.value), str(vars(caught.value))]
    told = [*capfd.readouterr(), caplog.text, (tmp_path / "trace.jsonl").read_text(encoding="utf-8"), str(result)]
    for text in raised + told:
        assert WRONG_KEY not in text and KEY not in text


BROKEN_KEYS = [f"{WRONG_KEY}\n", f" {WRONG_KEY}", f"{WRONG_KEY[:9]}\n{WRONG_KEY[9:]}", f"{WRONG_KEY}\x00"]


def assert_hidden(secret: str, error: BaseException) -> None:
    """Assert that no part of a secret is in what would be printed of an error."""
    printed = "".join([str(error), repr(error), *traceback.format_exception(error)])
    assert secret[:9] not in printed and secret[9:] not in printed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("key", BROKEN_KEYS)
def test_a_key_that_cannot_be_sent_is_refused_when_the_model_is_made_and_not_shown(
        kind: str, key: str, url: str) -> None:
    with CLIENTS[kind](url, key) as client, pytest.raises(ValueError, match="the client's api_key") as caught:
        anthropic_model(client, "m") if kind in (ANTHROPIC, BEDROCK, MANTLE) else openai_model(client, "m")
    assert_hidden(WRONG_KEY, caught.value)


@pytest.mark.parametrize("key", BROKEN_KEYS[:3])  # no environment can hold the last
@pytest.mark.parametrize(("variable", "client", "name"), [
    ("ANTHROPIC_API_KEY", anthropic.Anthropic, "api_key"),
    ("ANTHROPIC_AUTH_TOKEN", anthropic.Anthropic, "auth_token"),
    ("AWS_BEARER_TOKEN_BEDROCK", anthropic.AnthropicBedrock, "api_key"),
    ("OPENAI_API_KEY", openai.OpenAI, "api_key"),
])
def test_so_is_one_from_the_environment(
        key: str, variable: str, client: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for other in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "OPENAI_API_KEY"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv(variable, key)
    with pytest.raises(ValueError, match=f"the client's {name}") as caught:
        (openai_model if client is openai.OpenAI else anthropic_model)(client(max_retries=0), "m")
    assert_hidden(WRONG_KEY, caught.value)


@pytest.mark.parametrize("value", BROKEN_KEYS)
@pytest.mark.parametrize("make", [
    lambda headers: anthropic_model(anthropic.Anthropic(api_key=KEY, default_headers=headers), "m"),
    lambda headers: openai_model(openai.OpenAI(api_key=KEY, default_headers=headers), "m"),
    lambda headers: openai_model(openai.OpenAI(api_key=KEY, organization=headers["x-token"]), "m"),
])
def test_so_is_a_secret_in_a_header(value: str, make: Callable[[dict[str, str]], object]) -> None:
    with pytest.raises(ValueError, match="the client's header '(x-token|OpenAI-Organization)'") as caught:
        make({"x-token": value})
    assert_hidden(WRONG_KEY, caught.value)


UNSENDABLE_KEYS = [*BROKEN_KEYS[:1], *BROKEN_KEYS[2:], f"{WRONG_KEY}é", f"\u200b{WRONG_KEY}"]
MADE_BY_A_FUNCTION: dict[str, Callable[[str, str], Any]] = {
    ANTHROPIC: lambda url, key: anthropic.Anthropic(
        base_url=url, max_retries=0, credentials=lambda **_: anthropic.AccessToken(key)),
    OPENAI: lambda url, key: openai.OpenAI(base_url=f"{url}/v1", api_key=lambda: key, max_retries=0),
}
MADE_BY_A_FUNCTION[JSON_TEXT] = MADE_BY_A_FUNCTION[OPENAI]


@pytest.mark.parametrize("kind", list(MADE_BY_A_FUNCTION))
@pytest.mark.parametrize("key", UNSENDABLE_KEYS)
def test_a_key_that_a_function_makes_and_that_cannot_be_sent_is_in_no_exception(
        kind: str, key: str, provider: Provider, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)
    provider.requests.clear()
    with MADE_BY_A_FUNCTION[kind](url, key) as client, pytest.raises(ValueError, match="quotes a key") as caught:
        run(model_of(kind, client))
    assert_hidden(WRONG_KEY, caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None and provider.requests == []


def test_a_key_that_the_provider_quotes_is_in_no_exception_and_the_status_stays(any_link: Link) -> None:
    slept: list[float] = []
    patient = with_retries(any_link.model, on=MAY_PASS, waits=(1, 2), sleep=slept.append, jitter=lambda: 0)
    any_link.provider.answer = in_order([Refusal(429, f"too many requests for {KEY}")] * 3)
    with pytest.raises((anthropic.RateLimitError, openai.RateLimitError), match="quotes a key") as caught:
        run(patient)
    assert caught.value.status_code == 429 and slept == [1, 2]
    assert KEY not in "".join([*traceback.format_exception(caught.value), str(vars(caught.value))])


def test_the_newer_client_for_bedrock_speaks_the_format_of_anthropic_with_the_bare_id(
        provider: Provider, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert anthropic.AnthropicBedrockMantle(api_key="k").base_url.host == "bedrock-mantle.us-east-1.api.aws"
    provider.requests.clear()
    provider.answer = in_order(weather_script())
    with CLIENTS[MANTLE](url, KEY) as client:
        model = anthropic_model(client, "anthropic.claude-sonnet-5")
        assert run_agent(WEATHER_TASK, model, weather_world()[0]).answer == "It is 86.0 F in Pune."
    assert {request["model"] for request in provider.requests} == {"anthropic.claude-sonnet-5"}


def test_a_wrong_address_is_told_by_the_clients(url: str) -> None:
    for wrong in (anthropic.Anthropic(base_url=f"{url}/v1", api_key=KEY, max_retries=0),
                  openai.OpenAI(base_url=url, api_key=KEY, max_retries=0)):
        make = openai_model if isinstance(wrong, openai.OpenAI) else anthropic_model
        with wrong, pytest.raises((anthropic.NotFoundError, openai.NotFoundError), match="whose base_url does"):
            run(make(wrong, "m"))


def test_a_key_that_a_function_makes_is_used(provider: Provider, url: str) -> None:
    provider.answer = in_order(weather_script())
    with openai.OpenAI(base_url=f"{url}/v1", api_key=lambda: f"{KEY}\n".strip(), max_retries=0) as client:
        assert run(openai_model(client, "m"), weather_world()[0]).answer == "It is 86.0 F in Pune."


def test_a_model_told_not_to_think_runs_on_the_wire_and_one_told_to_think_is_refused_when_it_is_made(
        provider: Provider, url: str) -> None:
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        with pytest.raises(ValueError, match="thoughts must be sent back, and are not kept"):
            anthropic_model(client, "m", thinking={"type": "enabled", "budget_tokens": 1024})
        provider.answer = in_order(weather_script())
        model = anthropic_model(client, "m", thinking={"type": "disabled"})
        assert run(model, weather_world()[0]).answer == "It is 86.0 F in Pune."
        assert provider.requests[-1]["thinking"] == {"type": "disabled"}


def test_thoughts_that_were_not_kept_are_refused_on_the_wire(provider: Provider, url: str) -> None:
    provider.answer = in_order(weather_script())
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        def thinks(messages: list[Json], specs: list[Json]) -> ModelReply:
            asked = to_anthropic(messages, specs) | {"thinking": {"type": "enabled", "budget_tokens": 1024}}
            return from_anthropic(client.messages.create(model="m", max_tokens=2048, **asked))

        with pytest.raises(anthropic.BadRequestError, match="the thinking blocks must come back") as caught:
            run(thinks, weather_world()[0])
    assert vars(caught.value)["result"].steps == 1


@pytest.mark.parametrize("kind", [ANTHROPIC, BEDROCK, OPENAI])
def test_an_async_client_and_one_of_the_other_kind_are_sentences(kind: str) -> None:
    make, other = (openai_model, anthropic_model) if kind == OPENAI else (anthropic_model, openai_model)
    with CLIENTS[kind]("http://127.0.0.1:9", KEY) as client:
        name = type(client).__name__
        with pytest.raises(ValueError, match=f"{name} has no '(chat|messages)'; anthropic_model takes"):
            other(client, "m")
    more = {"aws_region": "us-east-1"} if kind == BEDROCK else {}
    to_await = getattr(openai if kind == OPENAI else anthropic, f"Async{name}")(api_key=KEY, **more)
    with pytest.raises(ValueError, match="must be awaited; take the client without Async in its name"):
        run(make(to_await, "m"))


@pytest.mark.parametrize(("kind", "body", "said"), [
    (OPENAI, {"error": {"message": "insufficient credits", "code": 402}}, "no choices.*insufficient credits"),
    (ANTHROPIC, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "no content.*Overl"),
    (ANTHROPIC, {"id": "m", "type": "message", "role": "assistant", "content": None}, "no content.*Message"),
    (OPENAI, {"error": f"{KEY} has no credits"}, "is not shown, because it quotes a key"),
])
def test_an_answer_of_200_without_a_reply_says_what_came(
        kind: str, body: Json, said: str, link_of: Callable[..., Link]) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        link_of(kind).run([body])
    assert KEY not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("kind", [ANTHROPIC, OPENAI])
def test_a_key_of_any_letters_that_the_provider_quotes_is_in_no_exception(
        kind: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("pa$$w0rd!2024#Tr0ub4&dor", "user:pass:word:secret", 'ab"cd\\efgh'):
        monkeypatch.setitem(SAID, 401, f"{key} is no key")
        with CLIENTS[kind](url, key) as client, pytest.raises(Exception, match="quotes a key") as caught:
            run(model_of(kind, client))
        printed = "".join([*traceback.format_exception(caught.value), str(vars(caught.value))])
        assert key not in printed and key not in printed.replace("\\\\", "\\")


def test_two_ids_with_half_a_surrogate_pair_stay_two_on_the_wire(link_of: Callable[..., Link]) -> None:
    for kind in (ANTHROPIC, OPENAI):
        pune, delhi = (call(i, "get_weather", city=city) for i, city in (("a\ud800", "Pune"), ("a\ud801", "Delhi")))
        registry, ran = weather_world()
        assert link_of(kind).run([asks(pune, delhi), final("ok")], registry).answer == "ok"
        assert ran == ["get_weather(Pune)", "get_weather(Delhi)"]


def test_a_large_max_tokens_wants_a_timeout_of_the_clients_own(provider: Provider, url: str) -> None:
    provider.answer = in_order(weather_script())
    with anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0) as client:
        with pytest.raises(ValueError, match="Streaming is required"):
            run(anthropic_model(client, "m", max_tokens=64_000))
        patient = client.with_options(timeout=3600)
        assert run(anthropic_model(patient, "m", max_tokens=64_000), weather_world()[0]).status == "done"


def test_tokens_of_the_cache_are_counted_on_the_wire(link_of: Callable[..., Link]) -> None:
    link = link_of(ANTHROPIC)
    used = {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 3}
    said = {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}], "usage": used}
    link.provider.answer = in_order([said | {"id": "m", "model": "m", "stop_reason": "end_turn"}])
    assert link.model([{"role": "user", "content": "go"}], []).usage == Usage(102, 3)


@pytest.mark.parametrize("message", [
    {"role": "assistant", "content": [{"type": "text", "text": "It is "}, {"type": "text", "text": "86."}]},
    {"content": "It is 86.", "tool_calls": []},
])
def test_a_content_in_parts_is_its_text_on_the_wire(link_of: Callable[..., Link], message: Any) -> None:
    assert link_of(OPENAI).run([{"choices": [{"message": message}]}]).answer == "It is 86."


def test_a_call_without_a_function_is_an_unknown_tool_on_the_wire(link_of: Callable[..., Link]) -> None:
    asked = {"choices": [{"message": {"tool_calls": [{"id": "a", "type": "function", "function": None}]}}]}
    result = link_of(OPENAI).run([asked, {"choices": [{"message": {"content": "Hot."}}]}])
    assert result.answer == "Hot." and result.messages[3]["content"].startswith("ERROR: unknown tool ''.")


def test_an_answer_without_usage_is_borne_on_the_wire(link_of: Callable[..., Link]) -> None:
    said = {"id": "m", "type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}]}
    assert link_of(ANTHROPIC).run([said | {"model": "m", "stop_reason": "end_turn"}]).answer == "ok"


def test_what_a_compatible_server_leaves_out_is_borne_on_the_wire(link_of: Callable[..., Link]) -> None:
    link = link_of(OPENAI)
    asked = {"type": "function", "function": {"name": "get_weather", "arguments": '"{\\"city\\": \\"Pune\\"}"'}}
    bare = {"choices": [{"message": {"role": "assistant", "tool_calls": [asked, asked]}}]}
    result = link.run([bare, {"choices": [{"message": {"content": "Hot.", "tool_calls": None}}]}])
    assert result.answer == "Hot."
    assert [c["args"] for c in result.messages[2]["tool_calls"]] == [{"city": "Pune"}] * 2
