"""Reads the programs of a suite.

A line `;; TASK` begins the program of a task, `;; TASK after reading: …` the one that a model writes after it has read
the answer of the first. What stands before the first such line is put before every program.
"""

import pathlib

HERE = pathlib.Path(__file__).parent


def read(folder, suite):
    """The programs of each task, in the order in which they run."""
    programs, task, common = {}, None, ""
    for line in (HERE / folder / f"{suite}.ptc").read_text().splitlines():
        words = line.split()
        is_header = len(words) > 1 and words[0] == ";;" and "_task_" in words[1]
        if is_header:
            task = words[1]
            programs.setdefault(task, []).append(common)
        elif task:
            programs[task][-1] += line + "\n"
        elif not line.startswith(";;"):
            common += line + "\n"
    return programs
