"""The trained model of a RUN folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from costa import settings
from costa.errors import InputError
from costa.methods import get_method
from costa.methods.base import Method
from costa.runs.files import CONFIG, MODEL, read_config
from costa.runs.folder import check_same_nodes


def save_state(folder: Path, state: dict[str, torch.Tensor]) -> None:
    """Write the weights and the buffers of the feature scaling."""
    from safetensors.torch import save_file

    save_file({key: value.cpu().contiguous() for key, value in state.items()}, folder / MODEL)
    # safetensors makes it readable by its owner only; a run may be shared
    (folder / MODEL).chmod((folder / CONFIG).stat().st_mode)


def load_model(folder: Path, device: torch.device) -> Method:
    """The trained method of a RUN folder, ready to embed."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    built = rebuild(read_config(folder))
    try:
        built.load_state_dict(load_file(folder / MODEL))
    except (OSError, SafetensorError, RuntimeError):
        raise InputError(
            f"{folder / MODEL} is missing or is not the model of {folder / CONFIG}; train it again."
        ) from None
    return built.to(device)


def rebuild(config: Mapping[str, Any]) -> Method:
    """The method that a ``config.json`` describes, before its weights are loaded."""
    method = get_method(config["method"])
    return method.build(read_settings(method, config), config["in_features"], torch.Generator())


def read_settings(method: type[Method], config: Mapping[str, Any]) -> Any:
    """The settings that a model was trained with."""
    merged: Any = settings.merge(method.Settings, [(CONFIG, config["settings"])])[0]
    return merged


def embed(model: Method, folder: Path, graph: Data) -> np.ndarray:
    """The vectors of ``graph`` from the model of a run, n × d, float32."""
    return np.concatenate([rows.float().to_dense().cpu().numpy() for rows in embed_rows(model, folder, graph)])


def embed_rows(model: Method, folder: Path, graph: Data) -> Iterator[torch.Tensor]:
    """The same, some rows at a time if the method can."""
    trained_on = read_config(folder)["in_features"]
    if graph.num_features != trained_on:
        raise InputError(
            f"{graph.name} has {graph.num_features} features, but the model of {folder} was trained on {trained_on};"
            " embed a graph with the same features."
        )
    if not model.inductive:
        if graph.name != read_config(folder)["dataset"]:
            raise InputError(
                f"{model.name} gives vectors only for the graph it was trained on; train it on {graph.name}."
            )
        check_same_nodes(folder, graph)
    return model.embed_rows(graph)
