"""Reads the programs of a suite.

Lines that begin a program:

    ;; TASK                    the first program of a task
    ;; TASK after reading: …   one that a model writes after it has read the answer before
    ;; TASK boolean: …         its answer is limited to a boolean; if it is false, the next program is left out
    ;; TASK integer: …         its answer is limited to an integer, which is {answer} in the next program

What stands before the first such line is put before every program that is not limited: a session shows the beginning of
what a program defines.
"""

import dataclasses
import pathlib

HERE = pathlib.Path(__file__).parent
LIMITS = ("boolean", "integer")


@dataclasses.dataclass
class Step:
    text: str
    limit: str | None = None


def read(folder, suite):
    """The programs of each task, in the order in which they run."""
    tasks, steps, common = {}, None, ""
    for line in (HERE / folder / f"{suite}.ptc").read_text().splitlines():
        words = line.replace(":", " ").split()
        if len(words) > 1 and words[0] == ";;" and "_task_" in words[1]:
            steps = tasks.setdefault(words[1], [])
            limit = words[2] if len(words) > 2 and words[2] in LIMITS else None
            steps.append(Step("" if limit else common, limit))
        elif steps:
            steps[-1].text += line + "\n"
        elif not line.startswith(";;"):
            common += line + "\n"
    return tasks
