"""Write every picture of figures/: `python -m looplab.figures`. The same bytes each time.

A picture is SVG on paper, since it cannot follow a reader's theme. Its words stand beside it as .alt.txt, and in the
file as <desc>. Colours and marks are those of the widgets.
"""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterable
from math import cos, radians, sin
from pathlib import Path

from agentloop import WEATHER_TASK, Json, ScriptedModel, run_agent, weather_script, weather_world
from looplab.plots import PALETTE, PAPER, fixed_run, steps_of
from looplab.view import PAINT, SHAPES, call_text, escape, json_text

FOLDER = Path(__file__).parents[2] / "figures"

UI = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"
CODE = "Menlo, Consolas, DejaVu Sans Mono, monospace"
WEIGHT = 2  # of every line that means something
DASHES = "5 4"


# --- Drawing -------------------------------------------------------------------------------------------------


def tag(name: str, content: str | None = None, /, **attributes: object) -> str:
    """Write an element: tag("rect", x=4, stroke_width=2); numbers are rounded, and what is None is left out."""
    given = {key.replace("_", "-"): value for key, value in attributes.items() if value is not None}
    inside = "".join(f' {key}="{number(v) if isinstance(v, float) else escape(v)}"' for key, v in given.items())
    return f"<{name}{inside}/>" if content is None else f"<{name}{inside}>{content}</{name}>"


def number(value: float) -> str:
    """Write a number with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def words(x: float, y: float, text: str, colour: str = "ink", size: int = 15, bold: bool = False,
          anchor: str = "start", code: bool = False) -> str:
    """Write one line of text whose baseline begins, ends or has its middle at (x, y)."""
    return tag("text", escape(text), x=float(x), y=float(y), fill=PALETTE.get(colour, colour), font_size=size,
               font_weight=600 if bold else None, text_anchor=None if anchor == "start" else anchor,
               font_family=CODE if code else None)


def mark(role: str, x: float, y: float, size: float, hollow: bool = False, colour: str = "") -> str:
    """Draw the mark of a role with its middle at (x, y); a hollow flag is a wrapper's exit."""
    shape = SHAPES[role].format(**PAINT | ({"fill": 'fill="none"'} if hollow else {}))
    place = f"translate({number(x - size / 2)} {number(y - size / 2)}) scale({size / 12:.3f})"
    return tag("g", shape.replace("currentColor", colour or PALETTE[role]), transform=place)


def line(d: str, colour: str, dashed: bool = False) -> str:
    """Draw a path as a line."""
    return tag("path", d=d, fill="none", stroke=PALETTE[colour], stroke_width=WEIGHT,
               stroke_dasharray=DASHES if dashed else None)


def head(x: float, y: float, angle: float, colour: str) -> str:
    """Draw an arrow head with its tip at (x, y) that points to `angle`, clockwise from up."""
    turn = f"translate({number(x)} {number(y)}) rotate({number(angle)})"
    return tag("path", d="M0 0L4.5 11H-4.5Z", fill=PALETTE[colour], transform=turn)


def arrow(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    """Draw a straight arrow along one axis."""
    angle = {(1, 0): 90, (-1, 0): 270, (0, 1): 180, (0, -1): 0}[(to_x > x) - (to_x < x), (to_y > y) - (to_y < y)]
    back_x, back_y = to_x - 8 * sin(radians(angle)), to_y + 8 * cos(radians(angle))
    return line(f"M{number(x)} {number(y)}L{number(back_x)} {number(back_y)}", colour) + head(to_x, to_y, angle, colour)


def paper(width: int, height: int, title: str, description: str, parts: Iterable[str]) -> str:
    """Write the whole file: paper with a hairline and round corners, and the parts on it."""
    ground = tag("rect", x=0.5, y=0.5, width=width - 1, height=height - 1, rx=8, fill=PAPER, stroke=PALETTE["line"])
    content = [tag("title", escape(title)), tag("desc", escape(description)), ground, *parts]
    return tag("svg", "\n" + "\n".join(content) + "\n", xmlns="http://www.w3.org/2000/svg", width=width, height=height,
               viewBox=f"0 0 {width} {height}", role="img", font_family=UI) + "\n"


# --- The loop and its exits ----------------------------------------------------------------------------------


def cycle() -> tuple[str, str]:
    """Draw the loop as a circle with its exits; return the picture and its alt text."""
    alt = ("A circle read clockwise, with the message list in its middle: system, user, assistant, tool; it grows, and "
           "nothing in it is edited. The task enters at the left. Before each model call two limits are checked, and a "
           "run leaves there as step_limit or token_budget. At the top the model decides. If its reply holds no call, "
           "the run leaves as done. Otherwise the tool runs, once for each call, in order; here a wrapper may stop the "
           "run, as repeated_call, deadline, waiting_for_approval and others, drawn hollow and dashed. Then the "
           "observation returns, a result or a text that starts with ERROR, and the circle starts again. Every run "
           "leaves by exactly one exit.")
    x, y, r = 364, 218, 132
    left, right = x - 196, x + 196  # where the text of the exits ends and begins

    def at(angle: float) -> tuple[float, float]:
        return x + r * sin(radians(angle)), y - r * cos(radians(angle))

    def arc(start: float, end: float, colour: str) -> str:
        (from_x, from_y), (to_x, to_y), (back_x, back_y) = at(start), at(end), at(end - 4)
        d = f"M{number(from_x)} {number(from_y)}A{r} {r} 0 0 1 {number(back_x)} {number(back_y)}"
        return line(d, colour) + head(to_x, to_y, end + 90 - 2.4, colour)

    def gate(gate_y: float, side: int, hollow: bool = False) -> str:
        gate_x = x + side * (r ** 2 - (gate_y - y) ** 2) ** .5
        end = x + side * 166
        dot = tag("circle", cx=gate_x, cy=gate_y, r=4, fill=PAPER if hollow else PALETTE["exit"],
                  stroke=PALETTE["exit"], stroke_width=WEIGHT)
        return line(f"M{number(gate_x + side * 5)} {number(gate_y)}H{end}", "exit", dashed=hollow) + dot

    parts = [
        arc(15, 107, "assistant"), arc(133, 227, "tool"), arc(253, 345, "tool"),
        mark("assistant", *at(0), 28), mark("tool", *at(120), 26), mark("tool", *at(240), 26),
        words(x, y - r - 30, "the model decides", "assistant", 17, True, "middle"),
        words(x + 146, y + r / 2 + 6, "the tool runs", "tool", 17, True),
        words(x + 146, y + r / 2 + 27, "each call, in order", "muted"),
        words(x - 146, y + r / 2 + 6, "the observation", "tool", 17, True, "end"),
        words(x - 146, y + r / 2 + 27, "returns", "tool", 17, True, "end"),
        words(x, y - 56, "the message list", "ink", 16, True, "middle"),
        words(x, y + 72, "only ever grows", "muted", 15, False, "middle"),
        mark("user", left + 18, y, 14), words(left, y + 6, "the task", "ink", 17, True, "end"),
        arrow(left + 30, y, x - r - 5, y, "ink"),
    ]
    for row, role in enumerate(["system", "user", "assistant", "tool"]):
        parts += [mark(role, x - 42, y - 28 + 23 * row, 13), words(x - 26, y - 23 + 23 * row, role, role)]
    for gate_y, name in [(y - r / 2 - 17, "token_budget"), (y - r / 2 + 17, "step_limit")]:
        parts += [gate(gate_y, -1), mark("exit", left + 19, gate_y, 17)]
        parts += [words(left, gate_y + 6, name, "exit", 17, True, "end")]
    parts += [
        line(f"M{x + 20} {y - r}H{x + 166}", "exit"), mark("exit", right - 16, y - r, 17),
        words(right, y - r + 6, "done", "exit", 17, True), words(right, y - r + 27, "no call in the reply", "muted"),
        gate(y - r / 2, 1, hollow=True), mark("exit", right - 16, y - r / 2, 17, hollow=True),
        words(right, y - r / 2 + 6, "repeated_call, …", "exit", 17, True),
        words(right, y - r / 2 + 27, "a wrapper stops it", "muted"),
        words(x, y + r + 46, "Every run leaves by exactly one exit.", "ink", 16, False, "middle"),
    ]
    return paper(760, 428, "The loop and its exits", alt, parts), alt


# --- One loop, two interfaces --------------------------------------------------------------------------------


def two_interfaces() -> tuple[str, str]:
    """Draw the loop between Model and Execute, each wrapped; return the picture and its alt text."""
    model = [("trace", False), ("deadline", True), ("cost_cap", True)]
    execute = [("trace", False), ("with_hooks", False), ("stop_on_repeat", True), ("require_approval", True),
               ("trim_result", False)]

    def names(layers: list[tuple[str, bool]]) -> str:
        return ", ".join(name for name, _ in layers)

    stopping = ", ".join(name for name, stops in model + execute if stops)
    alt = ("Three parts side by side. In the middle is the loop, written once. At its left is the interface Model, "
           "which asks the model: the loop hands over messages and specs, and gets a reply. The model, which is a "
           "script, a provider, a recording or you, lies inside nested outlines, its wrappers: from outside, "
           f"{names(model)}. At its right is the interface Execute, which runs one call: the loop hands over a call, "
           f"and gets a text. The registry with its tools lies inside the wrappers {names(execute)}. A hollow flag "
           f"marks those that may stop the run: {stopping}. A wrapper has the same shape as what it wraps, so the loop "
           "never changes.")
    top, height, band, rim = 92, 264, 29, 10

    def wrapped(x: float, width: float, layers: list[tuple[str, bool]], role: str, core: list[str]) -> list[str]:
        """Draw what is wrapped, filled, and around it an outline with a name for each wrapper."""
        parts = []
        for i, (name, stops) in enumerate(layers):
            parts.append(box(x + rim * i, top + band * i, width - 2 * rim * i, height - (band + rim) * i, role))
            parts.append(words(x + rim * i + 12, top + band * i + 20, name, role, 15, code=True))
            if stops:
                parts.append(mark("exit", x + width - rim * i - 15, top + band * i + 15.5, 14, hollow=True))
        n = len(layers)
        core_top, core_height = top + band * n, height - (band + rim) * n
        parts.append(box(x + rim * n, core_top, width - 2 * rim * n, core_height, role, filled=True))
        first = core_top + core_height / 2 - 10 * (len(core) - 1) + 5
        for i, text in enumerate(core):
            parts.append(words(x + width / 2, first + 20 * i, text, "#FFFFFF", 16 if i == 0 else 14, i == 0, "middle"))
        return parts

    def box(x: float, y: float, width: float, height: float, colour: str, filled: bool = False) -> str:
        return tag("rect", x=float(x), y=float(y), width=float(width), height=float(height), rx=4,
                   fill=PALETTE[colour] if filled else "none", stroke=PALETTE[colour], stroke_width=1.5)

    middle = top + height / 2
    parts = [
        words(36, 50, "Model", "assistant", 18, True), words(36, 73, "asks the model", "muted"),
        *wrapped(36, 172, model, "assistant", ["the model", "a script", "a provider", "a recording", "or you"]),
        box(300, middle - 42, 92, 84, "ink"), words(346, middle + 6, "the loop", "ink", 16, True, "middle"),
        words(476, 50, "Execute", "tool", 18, True), words(476, 73, "runs one call", "muted"),
        *wrapped(476, 248, execute, "tool", ["the registry", "and its tools"]),
        arrow(296, middle - 18, 212, middle - 18, "assistant"), arrow(212, middle + 18, 296, middle + 18, "assistant"),
        arrow(396, middle - 18, 472, middle - 18, "tool"), arrow(472, middle + 18, 396, middle + 18, "tool"),
        words(254, middle - 46, "messages", "assistant", 15, False, "middle", code=True),
        words(254, middle - 29, "specs", "assistant", 15, False, "middle", code=True),
        words(254, middle + 38, "reply", "assistant", 15, False, "middle", code=True),
        words(434, middle - 29, "call", "tool", 15, False, "middle", code=True),
        words(434, middle + 38, "text", "tool", 15, False, "middle", code=True),
        words(36, 400, "A wrapper has the same shape as what it wraps, so the loop never changes.", "ink", 15),
        mark("exit", 43, 425, 14, hollow=True), words(58, 430, "may stop the run", "muted", 15),
    ]
    return paper(760, 458, "One loop, two interfaces", alt, parts), alt


# --- Token spend ---------------------------------------------------------------------------------------------


def token_spend() -> tuple[str, str]:
    """Draw the prompts of a run of eight steps, each the one before and a piece more; return picture and alt text."""
    prompts = [step.prompt for step in steps_of(*fixed_run())]
    start, more, steps = prompts[0], prompts[1] - prompts[0], len(prompts)
    flat, again = steps * start, sum(prompts) - steps * start
    alt = (f"{steps} rows, one for each step, as long as the prompt of that step. The first has {start:,} tokens. Each "
           f"row repeats the whole row above it, in light grey, and adds a block of {more:,} tokens, in dark grey: a "
           f"reply and its observation. So the rows grow to {prompts[-1]:,}. A dashed line marks where all rows would "
           f"end if the list did not grow. The part at its left sums to {steps} times {start:,}, which is {flat:,}; "
           f"the part at its right to {again // more} times {more:,}, which is {again:,}: together {sum(prompts):,} "
           "input tokens.")
    left, top, row, thick = 104, 86, 30, 22
    scale = 500 / prompts[-1]
    edge, foot = left + start * scale, top + row * steps

    def block(tokens_before: int, tokens: int, y: float, new: bool) -> str:
        return tag("rect", x=left + tokens_before * scale + 1, y=float(y), width=tokens * scale - 2, height=thick, rx=2,
                   fill=PALETTE["spent" if new else "track"])

    def key(x: float, colour: str) -> str:
        return tag("rect", x=float(x), y=37, width=13, height=13, rx=2, fill=PALETTE[colour])

    parts = [
        words(36, 48, "Each step sends the whole list again", "ink", 18, True),
        key(520, "spent"), words(540, 48, "new", "muted"),
        key(left + 492, "track"), words(left + 512, 48, "sent again", "muted"),
    ]
    for i, prompt in enumerate(prompts):
        y, middle = top + row * i, top + row * i + thick / 2
        parts += [words(left - 14, middle + 5, f"step {i + 1}", "muted", 15, anchor="end")]
        parts += [block(0, start, y, new=i == 0)]
        parts += [block(start + more * j, more, y, new=j == i - 1) for j in range(i)]
        parts += [words(left + prompt * scale + 12, middle + 5, f"{prompt:,}", "ink", 15)]
        roles = ["assistant", "tool"] if i else ["system", "user"]
        newest = left + (prompt - (more if i else start) / 2) * scale
        parts += [mark(role, newest + dx, middle, 12, colour=PAPER) for role, dx in zip(roles, (-10, 10))]
    parts += [
        line(f"M{number(edge)} {top - 10}V{foot + 52}", "ink", dashed=True),
        words(edge - 12, foot + 28, f"{flat:,}", "ink", 17, True, "end"),
        words(edge - 12, foot + 48, f"{steps} × {start:,}", "muted", 15, False, "end"),
        words(edge + 14, foot + 28, f"+ {again:,}", "ink", 17, True),
        words(edge + 14, foot + 48, f"because the list grows: {again // more} × {more:,}", "muted", 15),
        words(left + 512, foot + 28, f"= {sum(prompts):,}", "ink", 17, True),
        words(left + 512, foot + 48, "input tokens", "muted", 15),
    ]
    return paper(760, foot + 84, "Why input grows", alt, parts), alt


# --- The sheet -----------------------------------------------------------------------------------------------

SHEET_STYLE = """
@page { margin: 10mm; }
* { box-sizing: border-box; margin: 0; padding: 0; }
html { background: #FAFAF8; color: #1F1F1F; color-scheme: light; }
body { width: 186mm; margin: 12mm auto; font: 8pt/11.5pt UI; }
@media print { html { background: none; } body { margin: 0 auto; } }
h1 { font-size: 15pt; line-height: 20pt; font-weight: 600; }
h2 { font-size: 9.5pt; line-height: 14pt; font-weight: 600; margin-bottom: 3pt; }
.second { margin-top: 7pt; }
.about { margin-top: 2pt; }
.columns { display: flex; gap: 7mm; }
section { margin-top: 8pt; padding-top: 6pt; border-top: .75pt solid #DADDE1; }
.columns > * { flex: 1 1 0; min-width: 0; }
.columns > .code { flex: none; }
pre, code { font-family: CODE; font-size: 7.2pt; line-height: 10.6pt; }
pre { line-height: 11.8pt; }
pre b { font-weight: 600; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; white-space: nowrap; padding-right: 8pt; vertical-align: top; }
td { padding-bottom: 1.5pt; vertical-align: top; overflow-wrap: anywhere; }
tr:last-child td { padding-bottom: 0; }
.errors code { font-size: 6.8pt; }
.errors th { font-weight: 400; }
dl { columns: 2; column-gap: 7mm; }
dl div { break-inside: avoid; margin-bottom: 4pt; }
dt { font-weight: 600; }
svg { width: 7.5pt; height: 7.5pt; margin-right: 4pt; vertical-align: -.5pt; overflow: visible; }
""".replace("UI", UI).replace("CODE", CODE)

EXITS = [
    ("done", "the reply holds no call. The model stopped, which is not yet success."),
    ("step_limit", "max_steps replies, and the last still asks."),
    ("token_budget", "spent and the next prompt would pass it. Checked before the call."),
    ("", "a wrapper stops the run: repeated_call, deadline, …"),
]


def questions() -> dict[str, str]:
    """Return five questions of an interview and their answers; the numbers are computed."""
    prompts = [step.prompt for step in steps_of(*fixed_run())]
    steps, start, more = len(prompts), prompts[0], prompts[1] - prompts[0]
    return {
        "Why is the budget checked before the call?": """
            After it the tokens are spent. What a prompt costs can be estimated before it is sent; what the reply costs
            cannot, so lower the budget by the largest reply if it must not be passed.""",
        "Why does an error become an observation?": """
            Because the model can mend its own call: the sentence says what was wrong and what is expected. Exceptions
            are kept for what the model cannot mend: a bug of the harness, an API that is down.""",
        "Why one observation for each call, with its id?": """
            A reply may hold several calls, and only the id says which observation answers which. A provider refuses a
            list with a call left open.""",
        "Why does the cost grow faster than the steps?": f"""
            Each step sends the whole list again. {start:,} tokens at the start and {more:,} more a step make {steps}
            steps send {sum(prompts):,} tokens, not {steps * start:,}.""",
        "What would you add for production?": """
            A check for repeated calls, a timeout on each tool, a cut for long results, approval of risky calls, a saved
            trace. Each wraps the model or the registry; the loop stays as it is.""",
    }


def sheet() -> str:
    """Write the page to learn from and to print: the loop, the messages, the exits, the errors, five questions."""
    roles = "".join(table_row(icon(m["role"]) + word(m["role"]), f"<code>{escape(json_text(m))}</code>")
                    for m in weather_run()[:4])
    exits = "".join(table_row(icon("exit", hollow=not name) + word("exit", name or "others"), escape(when))
                    for name, when in EXITS)
    errors = "".join(table_row(f"<code>{escape(asked)}</code>", f"<code>{colour_error(text)}</code>")
                     for asked, text in error_sentences())
    answers = "".join(f"<div><dt>{escape(question)}</dt><dd>{escape(' '.join(answer.split()))}</dd></div>"
                      for question, answer in questions().items())
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>The agent loop on one page</title>
<style>{SHEET_STYLE}</style>
</head>
<body>
<h1>The agent loop on one page</h1>
<p class="about">A language model in a loop with tools. The model asks for a call, our code runs it and appends the
observation, and the model is asked again, until it replies without a call or a limit stops the run.</p>
<section class="columns">
<div class="code"><h2>The loop</h2>
<pre>{colour_code(interview_loop())}</pre></div>
<div><h2>The messages</h2><table>{roles}</table>
<h2 class="second">The exits: each run takes one</h2><table>{exits}</table></div>
</section>
<section><h2>The registry never raises: what a call gets back</h2><table class="errors">{errors}</table></section>
<section><h2>Five questions</h2><dl>{answers}</dl></section>
</body>
</html>
"""


def interview_loop() -> str:
    """Return the source of the loop as a candidate writes it; tests run it, so the sheet cannot show another."""
    path = FOLDER.parent / "tests" / "fixtures" / "plain.py"
    source = path.read_text(encoding="utf-8")
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    return "".join(ast.get_source_segment(source, node) or "" for node in functions if node.name == "run_agent")


def weather_run() -> list[Json]:
    """Return the messages of the weather task."""
    registry, _ = weather_world()
    return run_agent(WEATHER_TASK, ScriptedModel(weather_script()), registry).messages


def error_sentences() -> list[tuple[str, str]]:
    """Return calls and what the registry really answers."""
    registry, _ = weather_world()
    calls = [("get_weather", {"city": "Pune"}), ("get_forecast", {"city": "Pune"}), ("get_weather", ["Pune"]),
             ("get_weather", {}), ("c_to_f", {"celsius": 30, "unit": "F"}), ("c_to_f", {"celsius": "30"}),
             ("c_to_f", {"celsius": True}), ("get_weather", {"city": "Atlantis"})]
    return [(call_text({"name": name, "args": args}), registry.execute(name, args)) for name, args in calls]


def table_row(head: str, content: str) -> str:
    """Return a row of a table from two pieces of HTML; the first is its head."""
    return f'<tr><th scope="row">{head}</th><td>{content}</td></tr>'


def icon(role: str, hollow: bool = False) -> str:
    """Return the mark of a role as a picture in a line of text."""
    return tag("svg", mark(role, 6, 6, 12, hollow), viewBox="0 0 12 12", aria_hidden="true")


def word(role: str, text: str = "") -> str:
    """Return a word in a role's colour."""
    return f'<span style="color:{PALETTE[role]}">{escape(text or role)}</span>'


def colour_error(text: str) -> str:
    """Return an observation as HTML; its ERROR: is rust."""
    return escape(text).replace("ERROR:", f"<b>{word('error', 'ERROR:')}</b>", 1)


def colour_code(source: str) -> str:
    """Return code as HTML: the model's call blue, the tools' green, the exits plum, the rest black."""
    code = re.sub(r"#.*", f'<span style="color:{PALETTE["muted"]}">\\g<0></span>', html.escape(source, quote=False))
    for pattern, role in [(r"(?<![\w.])model\(.*?\)", "assistant"), (r"registry\.execute\(.*?\)", "tool"),
                          (r'"(done|step_limit|token_budget)"', "exit")]:
        code = re.sub(pattern, f'<b style="color:{PALETTE[role]}">\\g<0></b>', code)
    return re.sub(r"^( *)(def|for|if|return)\b", r"\1<b>\2</b>", code, flags=re.MULTILINE)


# --- Files ---------------------------------------------------------------------------------------------------


def pictures() -> dict[str, str]:
    """Return the name and the content of every file of figures/."""
    files = {"sheet.html": sheet()}
    for draw in (cycle, two_interfaces, token_spend):
        svg, alt = draw()
        files |= {f"{draw.__name__}.svg": svg, f"{draw.__name__}.alt.txt": alt + "\n"}
    return files


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in pictures().items():
        (FOLDER / name).write_text(content, encoding="utf-8", newline="\n")
        print(f"figures/{name}")
