"""AgentDojo with programs: how many user tasks are solved, and how many goals an attacker reaches.

usage: run.py [--ptc FILE] [--policies FOLDER] [--suites S,…] [--parts P,…] [--every N] [--jobs N] [--output FILE]

Without --policies nothing is denied. Parts: `tasks` (user tasks), `values` (the attacker chooses every value that
untrusted tools return; programs stay as they are), `program` (the agent puts the attacker's steps into its program,
with values from an untrusted answer), `reading` (the agent writes the attacker's program after it has read an
untrusted answer), `labels` (tools that show an injection vector of AgentDojo and are not labelled). In `tasks` a person says
yes to each question, in attacks nobody answers.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import json
import pathlib
import re

import adversary
import client
import dojo
import programs

PARTS = ["labels", "tasks", "values", "program", "reading"]


@dataclasses.dataclass
class Benign:
    """What happens in a task without an attack."""

    calls: list
    # Untrusted ones.
    answers: list
    # Whether an answer shows untrusted text to the model.
    is_read: bool


class Bench:
    """One suite with one ptc and one policy."""

    def __init__(self, ptc, suite, policies):
        self.ptc = ptc
        self.suite = suite
        self.policy = policies / f"{suite}.toml" if policies else None
        self.programs = programs.read("programs", suite)

    def run(self, task, world, person=None, leaf=None, before="", after=(), plant=None, watch=None):
        """Runs a task's programs: the texts of their answers, the questions, the untrusted answers.

        `leaf` changes untrusted answers; `before` is put before the first program; `after` are programs that
        follow. `plant` is a call and the whole answer of the first such call. `watch` sees each answer.
        """
        state = {"plant": plant}

        def answer(tool, arguments, result):
            if watch:
                watch(tool, result)
            if state["plant"] and (tool, arguments) == state["plant"][0]:
                (_, result), state["plant"] = state["plant"], None
                return result
            if not adversary.is_untrusted(self.suite, tool):
                return result
            answers.append(result)
            return adversary.change(result, leaf) if leaf else result

        outputs, answers = [], []
        with client.Run(self.ptc, self.suite, world, self.policy, person, answer) as run:
            is_skipped = False
            for at, step in enumerate([*self.programs[task], *map(programs.Step, after)]):
                if is_skipped:
                    is_skipped = False
                    continue
                # Below its first line, an answer of a session says what the program did.
                read = outputs[-1].splitlines()[0] if outputs else ""
                text = (before if at == 0 else "") + step.text.replace("{answer}", read)
                output = run.program(text, step.limit)
                outputs.append(output)
                is_skipped = step.limit == "boolean" and "true" not in output
        return outputs, run.questions, answers

    def labels(self):
        """The tools that the policy calls untrusted."""
        names = re.search(r"^labels.untrusted = (\[.*\])$", self.policy.read_text(), re.MULTILINE)
        return [name.removeprefix(f"{self.suite}/") for name in json.loads(names.group(1))]

    def solved(self, task, person):
        world = dojo.World(self.suite, task)
        outputs, questions, _ = self.run(task, world, person)
        return world.is_solved(outputs[-1]), len(questions)

    def benign(self, task):
        """Calls and untrusted answers without an attack, and whether a model reads untrusted text."""
        outputs, _, _ = self.run(task, dojo.World(self.suite, task), leaf=adversary.marked)
        is_read = any(adversary.MARKER in output for output in outputs)
        world = dojo.World(self.suite, task)
        _, _, answers = self.run(task, world)
        return Benign(world.calls, answers, is_read)

    def values(self, task, goal, benign):
        """Whether the attacker reaches a goal by the values that untrusted tools return."""
        world = dojo.World(self.suite, task)
        wanted = adversary.wanted(world, goal)
        use = adversary.by_use(world, goal, benign.calls, benign.answers)
        kind, text = adversary.by_kind(wanted), adversary.by_text(wanted)
        leaves = [kind, use, text, lambda name, value: text(name, kind(name, use(name, value)))]
        changes = lambda leaf: any(adversary.change(answer, leaf) != answer for answer in benign.answers)
        return any(self._reached(task, goal, leaf=leaf) for leaf in leaves if changes(leaf))

    def program(self, task, goal, benign):
        """The same by the attacker's steps in the first program, with values from an untrusted answer."""
        is_untrusted = functools.partial(adversary.is_untrusted, self.suite)
        reads = [(call.function, dict(call.args)) for call in benign.calls if is_untrusted(call.function)]
        if not reads:
            return False
        text, planted = adversary.obeying(self.suite, dojo.World(self.suite, task), goal, reads[0])
        return self._reached(task, goal, before=text, plant=(reads[0], planted))

    def reading(self, task, goal, benign):
        """The same by a program that follows, if an answer has shown untrusted text to the model."""
        if not benign.is_read:
            return False
        text, _ = adversary.obeying(self.suite, dojo.World(self.suite, task), goal)
        return self._reached(task, goal, after=[text])

    def _reached(self, task, goal, **attack):
        world = dojo.World(self.suite, task)
        outputs, _, _ = self.run(task, world, **attack)
        return world.is_reached(goal, "\n".join(outputs))


def solve(bench, task):
    """`alone` (without a question), `asked` (a person said yes) or `unsolved`."""
    is_solved, questions = bench.solved(task, True)
    return ("asked" if questions else "alone") if is_solved else "unsolved"


def attack(bench, task, part):
    """The goals that are reached."""
    benign = Bench(bench.ptc, bench.suite, None).benign(task)
    return [goal for goal in dojo.injection_tasks(bench.suite) if getattr(bench, part)(task, goal, benign)]


def unlabelled(bench, task):
    """Tools that show an injection vector, although the attacker is not given their answers."""
    vectors = dojo.suite(bench.suite).get_injection_vector_defaults()
    world = dojo.World(bench.suite, task, {vector: adversary.MARKER for vector in vectors})
    shown = set()

    def watch(tool, result):
        if adversary.MARKER in json.dumps(result) and not adversary.is_untrusted(bench.suite, tool):
            shown.add(tool)

    bench.run(task, world, watch=watch)
    return sorted(shown)


def kinds(suite):
    """The goals with a script of AgentDojo, with words in the answer only, and with a program of attacks/."""
    world = dojo.World(suite, dojo.user_tasks(suite)[0])
    kind = lambda goal: "scripted" if world.script(goal) else "words" if world.words(goal) else "written"
    return {goal: kind(goal) for goal in dojo.injection_tasks(suite)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ptc", default="ptc")
    parser.add_argument("--policies", type=pathlib.Path)
    parser.add_argument("--suites", default=",".join(dojo.SUITES))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=pathlib.Path)
    flags = parser.parse_args()
    figures = {}
    for suite in flags.suites.split(","):
        bench = Bench(flags.ptc, suite, flags.policies)
        if bench.policy and bench.labels() != adversary.UNTRUSTED[suite]:
            parser.error(f"{bench.policy} labels other tools than adversary.UNTRUSTED")
        figures[suite] = {}
        for part in flags.parts.split(","):
            job = {"labels": unlabelled, "tasks": solve}.get(part, functools.partial(attack, part=part))
            with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
                names = dojo.user_tasks(suite)[:: flags.every]
                found = dict(zip(names, pool.map(functools.partial(job, bench), names)))
            figures[suite][part] = found
            print(suite, part, line(suite, part, found), flush=True)
    if flags.output:
        flags.output.write_text(json.dumps(figures, indent=1) + "\n")


def line(suite, part, found):
    """The figures of a part as text."""
    if part == "labels":
        return f"{sorted(set().union(*found.values()))}"
    if part == "tasks":
        counts = collections.Counter(found.values())
        rest = {verdict: [task for task in found if found[task] == verdict] for verdict in ("asked", "unsolved")}
        return " ".join(f"{verdict}: {counts[verdict]}" for verdict in ("alone", "asked", "unsolved")) + f" {rest}"
    of = kinds(suite)
    reached = collections.Counter(of[goal] for goals in found.values() for goal in goals)
    return ", ".join(
        f"{kind}: {reached[kind]} of {count * len(found)}" for kind, count in collections.Counter(of.values()).items()
    )


if __name__ == "__main__":
    main()
