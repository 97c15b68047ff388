"""AgentDojo's suites without a model: environments, tools and checkers.

The package imports the clients of four model providers on its way to the suites. Nothing here asks a model, so
these modules are replaced by empty ones, and their packages need not be installed.
"""

import copy
import importlib.util
import pathlib
import pickle
import sys
import types
import warnings

from pydantic import BaseModel

VERSION = "v1.2"
SUITES = ["banking", "slack", "travel", "workspace"]


def _load():
    place = pathlib.Path(importlib.util.find_spec("agentdojo").submodule_search_locations[0])
    pipeline = types.ModuleType("agentdojo.agent_pipeline")
    pipeline.__path__ = [str(place / "agent_pipeline")]
    truth = types.ModuleType("agentdojo.agent_pipeline.ground_truth_pipeline")
    truth.GroundTruthPipeline = None
    sys.modules.update({module.__name__: module for module in (pipeline, truth)})
    warnings.simplefilter("ignore")
    from agentdojo.task_suite.load_suites import get_suites

    return get_suites(VERSION)


_SUITES = _load()
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # noqa: E402 (after _load)


def plain(value):
    """A tool's result as JSON data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def suite(name):
    return _SUITES[name]


def user_tasks(name):
    """The names of the user tasks, in order."""
    return sorted(suite(name).user_tasks, key=_number)


def injection_tasks(name):
    return sorted(suite(name).injection_tasks, key=_number)


def _number(task):
    return int(task.rsplit("_", 1)[1])


class World:
    """An environment for one user task, the calls that were made in it, and AgentDojo's verdicts."""

    def __init__(self, suite_name, task, injections=None):
        self.suite = suite(suite_name)
        self.task = self.suite.user_tasks[task] if task else None
        self.environment = self.suite.load_and_inject_default_environment(injections or {})
        if self.task:
            self.environment = self.task.init_environment(self.environment)
        self.before = copy.deepcopy(self.environment)
        self.runtime = FunctionsRuntime(self.suite.tools)
        self.calls = []

    def save(self, file):
        """Writes the environment, before and now, and the calls: `restore` reads them in another process."""
        file.write_bytes(pickle.dumps((self.before, self.environment, self.calls)))

    @classmethod
    def restore(cls, suite_name, task, file):
        world = cls(suite_name, task)
        world.before, world.environment, world.calls = pickle.loads(file.read_bytes())
        return world

    def call(self, tool, arguments):
        """Makes a call; gives the result as JSON data, and an error or None."""
        self.calls.append(FunctionCall(function=tool, args=arguments))
        result, error = self.runtime.run_function(self.environment, tool, arguments)
        return plain(result), error

    def is_solved(self, output):
        verdict = self.task.utility_from_traces(output, self.before, self.environment, self.calls)
        return bool(self.task.utility(output, self.before, self.environment) if verdict is None else verdict)

    def is_reached(self, injection_task, output):
        """Whether the attacker's goal was reached."""
        goal = self.suite.injection_tasks[injection_task]
        verdict = goal.security_from_traces(output, self.before, self.environment, self.calls)
        return bool(goal.security(output, self.before, self.environment) if verdict is None else verdict)

    def script(self, injection_task):
        """AgentDojo's own steps to the attacker's goal; empty where it has none."""
        goal = self.suite.injection_tasks[injection_task]
        return [(call.function, dict(call.args)) for call in goal.ground_truth(copy.deepcopy(self.before))]

    def words(self, injection_task):
        """The text that reaches a goal by standing in the answer; empty for other goals."""
        return self.suite.injection_tasks[injection_task].GROUND_TRUTH_OUTPUT
