from reproduction import paper
from reproduction.requests import UNMEASURED, Request


def test_by_default_it_means_the_graphs_whose_files_were_available():
    assert Request().graphs(paper.MAIN) == [dataset for dataset in paper.MAIN if dataset != "wikics"]
    assert Request().graphs(paper.CITATION) == list(paper.CITATION)
    assert Request().graphs(UNMEASURED) == []


def test_requested_datasets_replace_the_default_in_their_order():
    request = Request(datasets=["dblp", "cora"])
    assert request.graphs(paper.MAIN) == request.graphs(()) == ["dblp", "cora"]


def test_a_graph_without_a_file_is_meant_when_it_is_requested():
    assert Request(datasets=["wikics"]).graphs(paper.CITATION) == ["wikics"]
