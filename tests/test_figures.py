"""The pictures of figures/ are what the code writes, say what they show, and can be read small and in print."""

import ast
import html
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from looplab import figures
from looplab.plots import PALETTE, PAPER
from looplab.view import SHAPES
from PIL import ImageFont

FILES = figures.pictures()
SVGS = [name for name in FILES if name.endswith(".svg")]
FONTS = Path(matplotlib.get_data_path(), "fonts", "ttf")
NAMESPACE = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter(f"{NAMESPACE}text"))


def width_in_a_wide_font(text: ElementTree.Element) -> float:
    bold, code = "font-weight" in text.attrib, "font-family" in text.attrib
    name = "DejaVuSansMono" if code else "DejaVuSans-Bold" if bold else "DejaVuSans"
    return ImageFont.truetype(FONTS / f"{name}.ttf", int(text.attrib["font-size"])).getlength(text.text or "")


# --- All pictures --------------------------------------------------------------------------------------------


def test_the_committed_files_are_what_the_code_writes_byte_for_byte():
    committed = {path.name: path.read_bytes().decode("utf-8") for path in figures.FOLDER.iterdir()}
    assert committed == FILES, "run python -m looplab.figures"


def test_the_code_writes_the_same_bytes_each_time():
    assert figures.pictures() == FILES


@pytest.mark.parametrize("name", SVGS)
def test_each_picture_carries_its_title_and_its_alt_text(name):
    root = ElementTree.fromstring(FILES[name])
    assert root[0].tag == f"{NAMESPACE}title" and root[0].text
    assert root[1].tag == f"{NAMESPACE}desc" and root[1].text + "\n" == FILES[name.replace(".svg", ".alt.txt")]
    assert root.attrib["role"] == "img"


@pytest.mark.parametrize("name", FILES)
def test_no_file_has_an_id_a_script_or_a_remote_part(name):
    rest = FILES[name].replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"\bid=|<script|\bon\w+=|\bhref=|\bsrc=|url\(|@import|https?:", rest)


@pytest.mark.parametrize("name", [*SVGS, "sheet.html"])
def test_every_colour_is_one_of_the_palette(name):
    assert set(re.findall(r"#[0-9A-Fa-f]{6}\b", FILES[name])) <= {*PALETTE.values(), PAPER, "#FFFFFF"}


@pytest.mark.parametrize("name", SVGS)
def test_every_text_can_be_read_at_half_size(name):
    assert min(int(text.attrib["font-size"]) for text in texts(FILES[name])) >= 14


@pytest.mark.parametrize("name", SVGS)
def test_every_text_keeps_a_margin_even_in_a_wide_font(name):
    assert ElementTree.fromstring(FILES[name]).attrib["width"] == "760"
    for text in texts(FILES[name]):
        x, width = float(text.attrib["x"]), width_in_a_wide_font(text)
        left = x - {"end": width, "middle": width / 2}.get(text.attrib.get("text-anchor", "start"), 0)
        assert left >= 32 and left + width <= 760 - 32, text.text


def test_words_are_escaped():
    assert figures.words(0, 0, "<b> & \"") == ('<text x="0" y="0" fill="#1F1F1F" font-size="15">'
                                               "&lt;b&gt; &amp; &quot;</text>")


# --- Each picture --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool", "exit"])
def test_the_marks_of_the_cycle_are_those_of_the_widgets(role):
    shape = re.match(r"<\w+ [^{]*", SHAPES[role])[0]
    assert shape in FILES["cycle.svg"]


def test_the_cycle_marks_the_exits_of_the_loop_solid_and_a_wrappers_hollow_and_dashed():
    words = {text.text for text in texts(FILES["cycle.svg"])}
    assert {"done", "step_limit", "token_budget", "repeated_call, …"} <= words
    flag = r'<path d="M2\.2 12V\.6[^"]*" fill="(\S+?)"'
    assert sorted(re.findall(flag, FILES["cycle.svg"])) == [PALETTE["exit"]] * 3 + ["none"]
    assert FILES["cycle.svg"].count("stroke-dasharray") == 1


def test_the_two_interfaces_stand_at_either_side_of_the_loop():
    where = {text.text: float(text.attrib["x"]) for text in texts(FILES["two_interfaces.svg"])}
    assert where["Model"] < where["the loop"] < where["Execute"]


def test_the_picture_of_token_spend_shows_what_the_loop_really_sends():
    words = [text.text for text in texts(FILES["token_spend.svg"])]
    prompts = [word for word in words if re.fullmatch(r"\d,\d00", word)]
    assert prompts == ["1,000", "1,500", "2,000", "2,500", "3,000", "3,500", "4,000", "4,500", "8,000"]
    assert {"8 × 1,000", "+ 14,000", "= 22,000", "because the list grows: 28 × 500"} <= set(words)
    assert "together 22,000 input tokens" in FILES["token_spend.alt.txt"]


# --- The sheet -----------------------------------------------------------------------------------------------

SHEET = FILES["sheet.html"]


def plain_text(fragment: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", fragment))


def test_the_sheet_shows_the_interview_loop_that_the_tests_run():
    source = (figures.FOLDER.parent / "tests" / "fixtures" / "plain.py").read_text(encoding="utf-8")
    shown = plain_text(re.search(r"<pre>(.*?)</pre>", SHEET, re.DOTALL)[1])
    assert shown.startswith("def run_agent(") and shown in source
    assert source.split(shown)[1].startswith("\n")


def test_the_sheet_names_exactly_the_exits_of_the_interview_loop():
    returned = {node.args[0].value for node in ast.walk(ast.parse(figures.interview_loop()))
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "AgentResult"}
    assert {name for name, _ in figures.EXITS if name} == returned


@pytest.mark.parametrize("sentence", [
    "ERROR: unknown tool 'get_forecast'. Available tools: ['c_to_f', 'get_weather']",
    "ERROR: arguments must be a JSON object. get_weather expects {\"city\": {\"type\": \"string\"}}",
    "ERROR: missing required argument 'city'. get_weather expects {\"city\": {\"type\": \"string\"}}",
    "ERROR: unexpected argument 'unit'. c_to_f expects {\"celsius\": {\"type\": \"number\"}}",
    "ERROR: argument 'celsius' must be of type number. c_to_f expects {\"celsius\": {\"type\": \"number\"}}",
    "ERROR: get_weather failed: KeyError: 'Atlantis'",
    "{\"city\": \"Pune\", \"celsius\": 30}",
])
def test_the_sheet_has_the_sentence(sentence):
    assert f">{sentence}<" in re.sub(r"</?(b|span)\b[^>]*>", "", SHEET).replace("&quot;", '"').replace("&#x27;", "'")


def test_the_sheet_shows_the_four_shapes_of_messages():
    for role in ["system", "user", "assistant", "tool"]:
        assert f'{{"role": "{role}", ' in html.unescape(SHEET)


def test_the_sheet_asks_five_questions():
    assert len(re.findall(r"<dt>[^<]+\?</dt><dd>[^<]+\.</dd>", SHEET)) == 5


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs a browser")
@pytest.mark.parametrize("paper", ["A4", "Letter"])
def test_the_sheet_prints_on_one_page(paper):
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto((figures.FOLDER / "sheet.html").as_uri())
        margins = dict.fromkeys(["top", "right", "bottom", "left"], "10mm")
        pdf = page.pdf(format=paper, margin=margins)
        browser.close()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 1
