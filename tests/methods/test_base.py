"""What a method is that says nothing of its own."""

import pytest
import torch

from costa.methods import METHODS, get_method
from costa.methods.base import GradientMethod, Method
from costa.methods.costa import TwoViewSettings
from costa.nn import choose_scaling


def test_every_method_says_what_it_is():
    for name in METHODS:
        method = get_method(name)
        assert method.name == name
        assert method.title
        assert method.citation()
    assert get_method("costa-mv").Settings is TwoViewSettings


def test_a_citation_has_its_year_if_there_is_one():
    dated = type("Dated", (Method,), {"paper": "Ann et al.", "year": 2020})
    plain = type("Plain", (Method,), {"paper": "no paper"})
    assert (dated.citation(), plain.citation()) == ("Ann et al., 2020", "no paper")


def test_the_scaling_is_chosen_from_the_features(graph, bag_of_words):
    for each in (graph, bag_of_words):
        assert Method.choose(each) == {"features.scaling": choose_scaling(each.x)}


def test_what_need_not_be_written_does_nothing(graph):
    method = GradientMethod()
    assert method.unused(None) == {}
    assert method.unresumable is None
    assert not method.capturable
    assert method.after_step is None
    for nothing in (method.prepare(graph), method.share(method), method.fit(graph), method.forget()):
        assert nothing is None
    assert method.state_dict() == {}


def test_what_has_to_be_written_is_missed(graph):
    for missing in (lambda: Method.build(None, 3), lambda: Method().embed(graph), lambda: GradientMethod().loss(graph)):
        with pytest.raises(NotImplementedError):
            missing()
    assert isinstance(Method(), torch.nn.Module)
