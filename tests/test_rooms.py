"""Which room may know which: every import in the tree, those inside functions too, against one short list."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = [
    *(
        "version",
        "errors",
        "wording",
        "writing",
        "memory",
        "settings",
        "nn",
        "graphs",
        "augment",
        "methods",
        "training",
    ),
    *("evaluate", "runs", "insight", "tuning", "report", "estimator", "demo", "cli", "__init__", "__main__"),
    "reproduction",
]
"""From the foundations up: a room may import those before it, and itself."""

FILES = sorted([*ROOT.glob("src/costa/**/*.py"), *ROOT.glob("reproduction/**/*.py")])


def room_of(module: str) -> str | None:
    """The room of a dotted module name; None for other people's packages."""
    house, _, rest = module.partition(".")
    if house == "reproduction":
        return house
    return (rest.partition(".")[0] or "__init__") if house == "costa" else None


def imported(tree: ast.AST) -> list[tuple[int, str]]:
    """(line, dotted name) of everything that is imported, anywhere in the file."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute here"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_knows_only_the_rooms_before_it(path):
    module = ".".join(path.relative_to(ROOT / "src" if "src" in path.parts else ROOT).with_suffix("").parts)
    own = ROOMS.index(room_of(module))
    upward = [
        f"line {line}: {name}"
        for line, name in imported(ast.parse(path.read_text(encoding="utf-8")))
        if (room := room_of(name)) is not None and ROOMS.index(room) > own
    ]
    assert not upward


def test_every_room_is_in_the_list():
    package = ROOT / "src" / "costa"
    rooms = {path.stem for path in package.glob("*.py")} | {path.parent.name for path in package.glob("*/__init__.py")}
    assert rooms == set(ROOMS) - {"reproduction"}


def test_an_upward_import_would_be_seen():
    hidden = ast.parse("def f():\n    from costa.runs import folder\n    import costa.cli.train\n")
    assert [room_of(name) for _, name in imported(hidden)] == ["runs", "cli"]
    assert room_of("costa") == "__init__"
    assert room_of("torch.nn") is None
