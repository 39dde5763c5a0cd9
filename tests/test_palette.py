"""The colours of look.css: contrast on every ground, and distance as colour-blind readers see it.

Colour blindness is simulated after Machado, Oliveira and Fernandes (2009) at full strength; distance is CIEDE2000.
"""

from __future__ import annotations

import itertools
import math
import re

import pytest

from looplab.view import SHAPES, STYLE

ROLES = ["system", "user", "assistant", "tool", "error", "exit"]
TEXT, GRAPHICS = ["ink", "muted", *ROLES], ["spent", "next", "here", "edge"]
PAGES = {"light": ["#FFFFFF"], "dark": ["#111111", "#212121"]}  # JupyterLab's
SEES = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[.152286, 1.052583, -.204868], [.114503, .786281, .099216], [-.003882, -.048116, 1.051998]],
    "deuteranopia": [[.367322, .860646, -.227968], [.280085, .672501, .047413], [-.011820, .042940, .968881]],
    "tritanopia": [[1.255528, -.076749, -.178779], [-.078411, .930809, .147602], [.004733, .691367, .303900]],
}
THEMES = {theme: dict(re.findall(r"--ll-([a-z-]+): (#[0-9A-F]{6})", block))
          for theme, block in zip(PAGES, re.findall(r"\.ll \{(.*?)\n\}", STYLE, re.S))}


def linear(colour):
    """Return red, green and blue of a hex colour as amounts of light."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= .04045 else ((c + .055) / 1.055) ** 2.4 for c in parts]


def contrast(a, b):
    """Return the contrast ratio of WCAG 2."""
    low, high = sorted(sum(w * c for w, c in zip((.2126, .7152, .0722), linear(x))) for x in (a, b))
    return (high + .05) / (low + .05)


def lab(rgb):
    """Return amounts of light as CIELAB under D65."""
    rows = ((.4124564, .3575761, .1804375), (.2126729, .7151522, .0721750), (.0193339, .1191920, .9503041))
    xyz = [sum(w * c for w, c in zip(row, rgb)) / white for row, white in zip(rows, (.95047, 1, 1.08883))]
    x, y, z = (t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116 for t in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def cosd(degrees):
    return math.cos(math.radians(degrees))


def distance(p, q):
    """Return the CIEDE2000 distance of two CIELAB colours."""
    (l1, a1, b1), (l2, a2, b2) = p, q
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    g = 1 + .5 * (1 - math.sqrt(mean ** 7 / (mean ** 7 + 25 ** 7)))
    c1, c2 = math.hypot(a1 * g, b1), math.hypot(a2 * g, b2)
    h1, h2 = math.degrees(math.atan2(b1, a1 * g)) % 360, math.degrees(math.atan2(b2, a2 * g)) % 360
    turn = (h2 - h1 + 180) % 360 - 180
    lm, cm, hm = (l1 + l2) / 2, (c1 + c2) / 2, (h1 + turn / 2) % 360
    t = 1 - .17 * cosd(hm - 30) + .24 * cosd(2 * hm) + .32 * cosd(3 * hm + 6) - .2 * cosd(4 * hm - 63)
    sl, sc, sh = 1 + .015 * (lm - 50) ** 2 / math.sqrt(20 + (lm - 50) ** 2), 1 + .045 * cm, 1 + .015 * cm * t
    chroma = math.sqrt(cm ** 7 / (cm ** 7 + 25 ** 7))
    twist = -2 * chroma * math.sin(math.radians(60 * math.exp(-((hm - 275) / 25) ** 2)))
    dl, dc = (l2 - l1) / sl, (c2 - c1) / sc
    dh = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / sh
    return math.sqrt(dl ** 2 + dc ** 2 + dh ** 2 + twist * dc * dh)


def seen(colour, matrix):
    """Return a colour as CIELAB, as an eye with this matrix sees it."""
    return lab([min(1, max(0, sum(w * c for w, c in zip(row, linear(colour))))) for row in matrix])


def test_the_measures_are_right():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert distance((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert distance((2.0776, .0795, -1.1350), (.9033, -.0636, -.5514)) == pytest.approx(.9082, abs=1e-4)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", TEXT + GRAPHICS)
def test_text_has_contrast_4_5_and_graphics_3_on_every_ground(theme, name):
    colours = THEMES[theme]
    grounds = [*PAGES[theme], *(colours[ground] for ground in ("quiet", "here-band", "exit-band"))]
    assert min(contrast(colours[name], ground) for ground in grounds) >= (4.5 if name in TEXT else 3)


@pytest.mark.parametrize("theme", THEMES)
def test_what_is_spent_stands_out_from_the_track_of_the_bar(theme):
    assert contrast(THEMES[theme]["spent"], THEMES[theme]["track"]) >= 3


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("eye", SEES)
def test_any_two_roles_can_be_told_apart_by_every_eye(theme, eye):
    colours = {role: seen(THEMES[theme][role], SEES[eye]) for role in ROLES}
    assert min(distance(colours[a], colours[b]) for a, b in itertools.combinations(ROLES, 2)) >= 10


def test_both_themes_name_the_same_colours_and_each_role_has_a_mark():
    assert THEMES["light"].keys() - {"bg", "focus"} == THEMES["dark"].keys() - {"focus"}
    assert list(SHAPES) == ROLES and len(set(SHAPES.values())) == len(ROLES)
