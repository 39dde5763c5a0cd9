"""An agent for another process, in a module that is quick to import: it waits until the run of another task is kept."""

import os
import time
from pathlib import Path

from looplab.eval_models import Thoughts, good
from looplab.evals import TASKS


def waits_for_another(prompt: str) -> Thoughts:
    """Do as good does, but end the first task only when another one is in the file SCORES, or after 20 seconds."""
    for _ in range(2000 if prompt == TASKS[0].prompt else 0):
        if Path(os.environ["SCORES"]).read_bytes().count(b"\n") == 2:
            break
        time.sleep(0.01)
    return (yield from good(prompt))
