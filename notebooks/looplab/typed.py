"""Read the JSON that a person types, and say in plain words what keeps it from being JSON."""

import json
import re
from typing import Any

from agentloop import to_json
from looplab.view import mark, with_code, word

CLOSERS = {"{": "}", "[": "]"}


class NotJson(ValueError):
    """A text that is not JSON yet; its sentence says what to change, with code between backticks."""


def read_json(text: str) -> Any:
    """Return the value that `text` holds, or raise NotJson.

    Stricter than json.loads, as the loop is: NaN, infinity and more than 100 levels are not JSON here. Nor is half
    of a surrogate pair, which cannot be shown.
    """
    try:
        value = json.loads(text)
        to_json(value).encode("utf-8")
    except (ValueError, TypeError, RecursionError) as error:
        raise NotJson(what_is_wrong(text, getattr(error, "pos", None))) from None
    return value


def what_is_wrong(text: str, position: int | None = None) -> str:
    """Say in one sentence what is wrong with a text that is not JSON; `position` is where reading stopped.

    In our own words: those of the interpreter differ from version to version.
    """
    bare, missing, in_text = outline(text)
    end = bare.rstrip()
    if not end:
        return "nothing is typed. An object without members is written `{}`."
    if position and is_whole(text[:position]):
        return f"it is whole before character {position + 1}, and nothing may follow."
    if in_text:
        return 'a `"` is missing at the end of a text.'
    if "'" in bare:
        return 'text stands in double quotes, as in `"Pune"`.'
    if re.search(r"\b(True|False|None)\b", bare):
        return "JSON writes `true`, `false` and `null`."
    if re.search(r"\b(NaN|Infinity)\b", bare):
        return "`NaN` and `Infinity` are not JSON."
    if comma := re.search(r",\s*([}\]])", bare):
        return f"there is a comma too many before `{comma[1]}`."
    if re.search(r"[^\W\d]\w*", re.sub(r"\b(true|false|null)\b|(?<=\d)[eE]", "", bare)):
        return 'text stands in double quotes, as in `"Pune"`.'
    if missing and end[-1] in ":,{[":
        return f"it breaks off; the end must be `{missing[-1]}`."
    if missing:
        return f"a `{missing[-1]}` or `,` is missing at the end."
    if position is None:
        return "JSON has no such number, character or depth."
    return f"it cannot be read from character {position + 1} on."


def is_whole(text: str) -> bool:
    """Return whether a text is JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def outline(text: str) -> tuple[str, list[str], bool]:
    """Return `text` with its strings emptied, the closing brackets it lacks, and whether it ends inside a string."""
    bare, missing, in_text, escaped = "", [], False, False
    for char in text:
        if in_text:
            in_text, escaped = escaped or char != '"', not escaped and char == "\\"
            continue
        bare += char
        in_text = char == '"'
        if char in CLOSERS:
            missing.append(CLOSERS[char])
        elif missing and char == missing[-1]:
            missing.pop()
    return bare, missing, in_text


def trouble(words: str, sentence: str) -> str:
    """Return a line of HTML under a field that says what is wrong with what was typed."""
    return f'<p class="ll-note ll-bad">{mark("error")} {word(words, "error")} {with_code(sentence)}</p>'
