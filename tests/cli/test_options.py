"""Arguments and options that commands share."""

import typing

import pytest

from costa.cli import options


def test_every_option_has_a_help_text():
    shared = [value for name, value in vars(options).items() if typing.get_origin(value) is typing.Annotated]
    assert len(shared) > 15
    for option in shared:
        (info,) = option.__metadata__
        assert info.help.endswith((".", "…"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "no graph was given"),
        (["cora", "--edges", "e.csv"], "both given"),
        (["cora", "--features", "x.npy"], "--features goes with --edges"),
        (["--edges", "nowhere.csv"], "there is no file"),
    ],
)
def test_options_that_do_not_go_together(arguments, sentence, costa):
    refused = costa("train", *arguments)
    assert refused.code == 2
    assert sentence in refused.err
