"""Keeps rfc3987_syntax from being imported. Loading this first, as pyproject.toml has pytest do, saves seconds.

Reading a notebook takes jsonschema along, and that takes rfc3987_syntax along where JupyterLab has brought it: it makes
the grammars of web addresses each time it is imported. jsonschema does without it, and no notebook is checked by it.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
