"""The house: rooms that the contracts know, light at the door, one definition per name."""

import ast
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "saverouter"
MODULES = sorted(PACKAGE.rglob("*.py"))
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
HEAVY = (
    "torch",
    "transformers",
    "sentence_transformers",
    "dask",
    "distributed",
    "matplotlib",
    "papermill",
    "unearth",
    "pareto_bandit",
    "openai",
)
# One name, many definitions by design: the converters of the original benchmarks, and command lines.
PROTOCOL = {"convert", "main"}


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def contracts(kind: str, key: str) -> set[str]:
    return {name for contract in CONTRACTS if contract["type"] == kind for name in contract[key]}


def test_every_room_has_its_place():
    layers = {name.strip() for layer in contracts("layers", "layers") for name in layer.replace(":", "|").split("|")}
    rooms = [path for path in PACKAGE.iterdir() if (path / "__init__.py").is_file() or path.suffix == ".py"]
    assert {dotted(path) for path in rooms} - {"saverouter"} == layers


def test_the_package_says_that_it_is_typed():
    assert (PACKAGE / "py.typed").is_file()


def test_every_room_says_what_it_is_for():
    for room in (path for path in PACKAGE.rglob("__init__.py") if path.parent != PACKAGE):
        assert len(ast.get_docstring(ast.parse(room.read_text(encoding="utf-8"))) or "") > 60, room


def test_no_method_and_no_compiled_twin_is_forgotten_by_the_contracts():
    folder = PACKAGE / "routers"
    methods = {path for path in folder.iterdir() if path.suffix == ".py" and path.stem not in ("__init__", "base")}
    assert {dotted(path) for path in (*methods, folder / "saverouter")} == contracts("independence", "modules")
    twins = {dotted(path) for path in MODULES if path.stem.startswith("_") and not path.stem.startswith("__")}
    assert twins == contracts("protected", "protected_modules")


def test_the_contracts_notice_a_step_against_the_direction(tmp_path):
    """The linter reads what it says it reads: one import against the direction, and it fails."""
    (tmp_path / "saverouter").mkdir()
    for path in MODULES:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    command += ["--no-cache"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 0
    for place, line in (
        ("encoders/features.py", "from ..workloads import Queries"),
        ("routers/knn.py", "from .svm import SVM"),
        ("routers/knn.py", "from ..judging import _choices"),
    ):
        copy = tmp_path / "saverouter" / place
        kept = copy.read_text(encoding="utf-8")
        copy.write_text(f"{kept}\n{line}\n", encoding="utf-8")
        assert subprocess.run(command, cwd=tmp_path, capture_output=True).returncode == 1, line
        copy.write_text(kept, encoding="utf-8")


def test_no_import_hides_in_a_function():
    """One of this package inside a function would hide a cycle; other packages may be loaded late."""
    for path in MODULES:
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                inside = [node for node in ast.walk(function) if isinstance(node, ast.ImportFrom)]
                assert not [node for node in inside if node.level or node.module.startswith("saverouter")], path


def test_a_public_name_has_one_definition():
    places = defaultdict(set)
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
                places[node.name].add(dotted(path))
    assert not {name: found for name, found in places.items() if len(found) > 1 and name not in PROTOCOL}


DOOR = "import sys, saverouter as sr\n{}\nprint([name for name in {} if name in sys.modules])"
FITTED = """
sys.path.insert(0, 'tests')
from conftest import make_workload
train, test = make_workload().split()
feedback = train.feedback()
router = sr.SaveRouter(k=2).fit(train.queries, feedback)
sr.evaluate(router, test, supervision_cost=feedback.spent).verdict()
router.route(test.queries)
sr.make_router('knn')
"""


@pytest.mark.parametrize("code, loaded", [
    ("", []),
    ("sr.load('paretobandit')", []),
    ("sr.load('simulated/mmrbench', size=50), list(sr.ROUTERS), sr.SaveRouter", []),
    (FITTED, []),
    ("sr.make_router('embedllm')", ["torch"]),
])  # fmt: skip
def test_light_at_the_door(code, loaded):
    command = [sys.executable, "-c", DOOR.format(code, HEAVY)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == str(loaded)
