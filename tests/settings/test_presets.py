import pytest

from costa import settings
from costa.errors import InputError
from costa.graphs.synthetic import planted_partition
from costa.methods import METHODS, get_method
from costa.settings import presets
from reproduction import paper

PUBLISHED = {
    # lr, width, head, edge drop 1/2, mask, τ, ratio, epochs, as the authors released them
    "cora": (1e-4, 256, 256, (0.2, 0.4), 0.3, 0.4, 0.5, 700),
    "citeseer": (1e-3, 256, 256, (0.2, 0.0), 0.3, 0.1, 0.5, 700),
    "wikics": (1e-5, 512, 512, (0.0, 0.1), 0.5, 0.2, 0.8, 30),
    "amazon-photo": (1e-4, 512, 512, (0.0, 0.1), 0.5, 0.3, 0.5, 10),
    "amazon-computers": (1e-4, 512, 512, (0.0, 0.1), 0.5, 1.0, 0.8, 10),
    "coauthor-cs": (1e-3, 512, 512, (0.0, 0.1), 0.5, 0.4, 0.5, 20),
    "coauthor-physics": (1e-3, 512, 512, (0.0, 0.1), 0.5, 0.4, 0.25, 5),
}


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_the_papers_settings_are_the_published_ones(dataset):
    values = presets.load_preset("paper", "costa-mv", dataset)
    merged, _ = settings.merge(get_method("costa-mv").Settings, [("paper", values)])
    lr, width, head, edges, mask, tau, ratio, epochs = PUBLISHED[dataset]
    assert (merged.train.lr, merged.train.epochs, merged.train.weight_decay) == (lr, epochs, 0)
    assert (merged.encoder.width, merged.head.width) == (width, head)
    assert (merged.augment.edge_rate, merged.augment.mask_rate) == (edges, (mask,))
    assert (merged.loss.kind, merged.loss.tau, merged.sketch.ratio) == ("cross", tau, ratio)
    assert (merged.sketch.kind, merged.sketch.center, merged.features.scaling) == ("gaussian", False, "rows")


def test_nothing_is_published_for_one_view_pubmed_or_dblp():
    assert presets.load_preset("paper", "costa-sv", "cora") is None
    assert set(presets.published("paper", "costa-mv")) == set(PUBLISHED)


def test_every_preset_of_every_method_is_valid():
    for name in METHODS:
        for preset in ("paper", "tuned", "strict"):
            for dataset in presets.published(preset, name):
                settings.merge(get_method(name).Settings, [(preset, presets.load_preset(preset, name, dataset))])


def test_a_config_file_is_read_or_refused_in_a_sentence(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[sketch]\nkind = "sparse"\n[train]\nlr = 0.01\n')
    assert presets.load_config(file) == {"sketch.kind": "sparse", "train.lr": 0.01}
    with pytest.raises(InputError, match="there is no settings file"):
        presets.load_config(tmp_path / "other.toml")
    file.write_text("kind = [")
    with pytest.raises(InputError, match="is not a TOML file"):
        presets.load_config(file)
    with pytest.raises(InputError, match="unknown preset"):
        presets.load_preset("best", "costa-sv", "cora")


def test_what_validation_chose_has_a_file_for_each_dataset(tmp_path, monkeypatch):
    assert presets.load_preset("tuned", "costa-mv", "digits")["encoder.norm"] == "batch"
    measured = paper.MEASURED
    for method in ("costa-sv", "costa-mv"):
        assert set(presets.published("tuned", method)) == {"digits", *measured}
        assert set(presets.published("strict", method)) == set(measured)
    for family in ("auto-encoders", "contrastive", "without negatives"):
        for method in paper.FAMILIES[family]:
            assert set(presets.published("tuned", method)) == set(measured)
    monkeypatch.setattr(presets, "ROOT", tmp_path)
    assert presets.published("strict", "costa-sv") == []
    folder = tmp_path / "strict" / "costa-sv"
    folder.mkdir(parents=True)
    (folder / "amazon-photo.toml").write_text("# Chosen.\nloss.tau = 2.0\naugment.edge_rate = [0.1]\n")
    assert presets.published("strict", "costa-sv") == ["amazon-photo"]
    assert presets.load_preset("strict", "costa-sv", "amazon-photo") == {"loss.tau": 2.0, "augment.edge_rate": [0.1]}
    assert presets.load_preset("tuned", "costa-sv", "amazon-photo") is None
    assert presets.load_preset("strict", "costa-sv", "../costa-sv/amazon-photo") is None


@pytest.mark.parametrize(
    ("preset", "message"),
    [
        ("paper", "no settings are published for costa-mv on my-own .*cora.*use the preset tuned or none"),
        ("strict", "there are no strict settings for costa-mv on my-own"),
    ],
)
def test_asking_for_a_preset_that_is_not_there_is_an_error(preset, message):
    graph = planted_partition(40, 2, 4, degree=4, seed=0)
    graph.name = "my-own"
    with pytest.raises(InputError, match=message):
        presets.resolve(get_method("costa-mv"), graph, preset=preset)
    assert presets.resolve(get_method("costa-mv"), graph).note.startswith("no tuned settings for costa-mv on my-own")
