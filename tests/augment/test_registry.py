"""The sketches by name."""

import pytest

from costa.augment import SKETCHES, make_sketch
from costa.errors import InputError


def test_the_registry() -> None:
    assert list(SKETCHES) == ["gaussian", "rademacher", "sparse", "countsketch", "selection", "svd", "noise"]
    assert {name for name, cls in SKETCHES.items() if cls.depends_on_h} == {"selection", "svd"}
    assert all(cls.name == name for name, cls in SKETCHES.items())


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("gaussian", {"density": 0.1}, "'gaussian' has no setting 'density': it takes ratio, k"),
        ("sparse", {"scaling": "printed"}, "'sparse' has no setting 'scaling': it takes density, ratio"),
        ("random", {}, "no sketch 'random': choose one of gaussian, rademacher"),
    ],
)
def test_what_there_is_not_gets_a_sentence(name: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        make_sketch(name, **options)
    assert str(caught.value).endswith(".")
